"""The mistakes that people make in a model file: each is one sentence that says what to write, with the line where it was written."""

import json
import re
import warnings
from typing import Any

import pytest
from click.testing import CliRunner

import odesim
from odesim.base.errors import ModelError, ModelWarning, OdesimError, SpecError, no_such
from odesim.cli import cli

FILE = '''"""A model with one mistake."""
import math
import numpy as np
from sympy import IndexedBase, Interval, Sum, exp, oo, symbols
from odesim.symbolic import Event, Invariant, Param, Source, System, index, over, sizes

m, k = index("m k")
(M,) = sizes("M")
w, s, T = (IndexedBase(name, shape=(M,)) for name in "wsT")
tau, mu = symbols("tau", positive=True), symbols("mu")
REAL = Interval(-oo, oo)
{before}
SYSTEM = System(
    name="my.linear",
    source=Source("my_notes", "eq. 4"),
    axes={axes},
    equations={{
        {equation},
    }},
    params={params},
    initial={{{initial}}},
    {more}
)
'''
GOOD = {
    "before": "", "axes": "{m: M}", "equation": "w[m]: (s[m] - w[m]) / tau", "initial": "w[m]: 0.0", "more": "",
    "params": '(Param(s, 1.0, REAL, "target"), Param(tau, 1.0, Interval.open(0, oo), "time"))',
}  # fmt: skip
WITH_T = GOOD["params"].replace("))", '), Param(T, 1.0, REAL, "weight"))')


def param(text: str) -> dict[str, str]:
    return {"params": f'({text}, Param(tau, 1.0, Interval.open(0, oo), "time"))'}


def rhs(text: str) -> dict[str, str]:
    return {"equation": f"w[m]: {text} * s[m] / tau"}


NESTED = "from sympy import sin\ne = w[m]\nfor _ in range(300):\n    e = sin(e)"

# what is written instead -> a part of the line that the message names, and what the message says
MISTAKES: dict[str, tuple[dict[str, str], str, str]] = {
    "np.exp": (rhs("np.exp(-w[m])"), "np.exp", "np.exp takes numbers, not symbols: write exp, imported from sympy"),
    "np.arctan": (rhs("np.arctan(w[m])"), "np.arctan", "np.arctan takes numbers, not symbols: write atan"),
    "np.maximum": (rhs("np.maximum(w[m], 0)"), "np.maximum", r"compares numbers, not symbols: write Max\(a, b\)"),
    "np.sum": (rhs("np.sum(w)"), "np.sum", r"w is an array; did you mean w\[m\]\?"),
    "np.dot": (rhs("np.dot(w, s)"), "np.dot", r"is an array; did you mean [ws]\[m\]\?"),
    "np.array": (rhs("np.array([1.0, 2.0])"), "np.array", "the equation of .* must be an expression, not array"),
    "math.exp of an element": (rhs("math.exp(-w[m])"), "math.exp", "math.exp takes numbers, not symbols: write exp"),
    "math.sqrt of a size": (rhs("math.sqrt(M)"), "math.sqrt", "math.sqrt takes numbers, not symbols: write sqrt"),
    "float": (rhs("float(mu)"), "float", r"float\(\) takes numbers, and a symbol has no value before a run"),
    "int of a size": (rhs("int(M)"), "int(M)", r"int\(\) takes numbers"),
    "sum of an element": (rhs("sum(w[m])"), "sum(", r"write over\(Sum, w\[k\], \(k, M\)\)"),
    "sum over range": (rhs("sum(w[k] for k in range(M))"), "sum(", r"write sums as over\(Sum, w\[k\], \(k, M\)\)"),
    "loop over range": ({"before": "for i in range(M): pass"}, "for i", r"range\(\) and shapes take whole numbers, and a size is a symbol"),
    "zeros": ({"before": "start = np.zeros(M)"}, "np.zeros", "shapes take whole numbers"),
    "len": (rhs("len(w)"), "len(w)", "an array has no length before a run: write its size"),
    "max": (rhs("max(w[m], 0)"), "max(", r"max\(...\) compares numbers, not symbols: write Max\(a, b\)"),
    "if": (rhs("(1 if w[m] > 0 else 0)"), "if w[m]", r"whether w\[m\] > 0 holds is not known before a run: write Piecewise"),
    "and": (rhs("(1 if w[m] > 0 and w[m] < 1 else 0)"), "and w[m]", "not known before a run: write Piecewise.*And"),
    "condition": ({"equation": "w[m]: s[m] > w[m] / tau"}, "s[m] >", r"must be an expression, not .*; write Piecewise\("),
    "parentheses": (rhs("s(m)"), "s(m)", r"written in brackets, w\[m\], not in parentheses"),
    "no times": (rhs("tau(1 + w[m])"), "tau(1", r"is a \* missing\?"),
    "3 over an index": ({"before": "m = 3"}, "axes=", "axes has the key 3, which is no index.*give its name to nothing else"),
    "index in a tuple": ({"before": 'm = index("m")'}, "axes=", r'axes has the key \(m,\), which is a tuple: .*\(i,\) = index\("i"\)'),
    "size in a tuple": ({"before": 'M = sizes("M")'}, "axes=", r'runs over \(M,\), a tuple: .*\(M,\) = sizes\("M"\)'),
    "axes as text": ({"axes": '{"m": M}'}, "axes=", "axes has the key 'm', which is no index"),
    "axes as a list": ({"axes": "[(m, M)]"}, "axes=", r"axes must be a dict, such as \{i: M\}, not \[\(m, M\)\]"),
    "comma after a Param": ({"params": '(Param(s, 1.0, REAL, "target"))'}, "params=", r"a comma is missing after it, params=\(Param"),
    "comma after an Invariant": ({"more": 'invariants=(Invariant("d", w[m], "constant")),'}, "invariants=", "a comma is missing"),
    "params as a dict": ({"params": '{"s": 1.0}'}, "params=", r"params must be a tuple, such as \(Param\(...\),\), not \{'s': 1.0\}"),
    "params as a set": ({"params": '{Param(s, 1.0, REAL, "target")}'}, "params=", "params must be a tuple"),
    "symbols as params": ({"params": "(s, tau)"}, "params=", r"params holds s, which is no Param: write Param\(symbol, default"),
    "T for T[m]": ({"params": WITH_T, **rhs("T")}, "T * s[m]", r"T is an array; did you mean T\[m\]\?"),
    "symbol for an array": ({"params": WITH_T, **rhs('symbols("T")')}, 'symbols("T")', r"T is an array; did you mean T\[m\]\?"),
    "state without index": (rhs("w"), "w * s[m]", r"w is an array; did you mean w\[m\]\?"),
    "key without index": ({"equation": "w: -w[m]"}, "w: -w", r"w is an array and cannot be a state: write an element, such as w\[m\]"),
    "key as text": ({"equation": '"w[m]": -w[m]'}, '"w[m]"', r"equations has the text 'w\[m\]' as a key: write it without quotes, w\[m\]"),
    "start as text": ({"initial": '"w[m]": 0.0'}, "initial", r"initial has the text 'w\[m\]' as a key: write it without quotes"),
    "two starts": ({"initial": "w[m]: 0.0, w[k]: 1.0", "axes": "{m: M, k: M}"}, "initial", "initial has two values for w"),
    "start of one element": ({"initial": "w[0]: 0.0"}, "initial", r"index 0 of w\[0\] has no axis"),
    "undeclared parameter": (rhs("mu"), "mu * s", "no symbol 'mu': declare it in params, or write one of M, tau"),
    "undeclared array": (rhs("T[m]"), "T[m]", "no array 'T': declare it in params, or write one of s, w"),
    "undeclared start": ({"initial": "w[m]: mu"}, "initial", "in the initial value of .*no symbol 'mu': declare it in params"),
    "time of their own": (rhs('symbols("t")'), 'symbols("t")', "'t' is the time: take it from odesim.symbolic"),
    "array as a start": ({"initial": "w[m]: np.zeros(3)"}, "initial", "for an array give a Param with that default"),
    "list as a start": ({"initial": "w[m]: [0.0, 1.0]"}, "initial", "for an array give a Param with that default"),
    "sum without limits": (rhs("Sum(w[k])"), "Sum(w", r"a sum needs its index and its size: write over\(Sum, w\[k\], \(k, M\)\)"),
    "sum without an end": (rhs("Sum(w[k], k)"), "Sum(w", "a sum needs its index and its size"),
    "not in odesim.symbolic": ({"before": "from odesim.symbolic import Systm"}, "Systm", "not in odesim.symbolic; did you mean 'System'"),
    "in sympy": ({"before": "from odesim.symbolic import Sum"}, "import Sum", "not in odesim.symbolic: from sympy import Sum"),
    "default that is no number": (param('Param(s, float("nan"), REAL, "x")'), "Param(s", "the default nan is not a finite number"),
    "misspelled name": (rhs("tua"), "tua", "name 'tua' is not defined; did you mean 'tau'?"),
    "not imported": (rhs("Piecewise((1, True))"), "Piecewise", "'Piecewise' is not defined: from sympy import Piecewise"),
    "not imported from odesim": (rhs("softmax(w[m], (m, M))"), "softmax", "from odesim.symbolic import softmax"),
    "unknown keyword": ({"more": "parameters=(),"}, "SYSTEM", "System has no parameters; it takes name, .*did you mean 'params'"),
    "too few arguments": (param("Param(s)"), "Param(s", "Param needs default too: Param"),
    "domain as a tuple": (param('Param(s, 1.0, (0, 1), "target")'), "Param(s", r"the domain must be Interval\(0, 1\), not \(0, 1\)"),
    "domain as text": (param('Param(s, 1.0, "real", "target")'), "Param(s", "the domain must be a set of sympy"),
    "element as a Param": (param('Param(s[m], 1.0, REAL, "target")'), "Param(s", r"the symbol of a Param is s\[m\]: write its array, s"),
    "text as a Param": (param('Param("s", 1.0, REAL, "target")'), 'Param("s', "the symbol of a Param is 's': write a symbol"),
    "list as a default": (param('Param(s, [1, 2], REAL, "target")'), "Param(s", r"write lambda sizes: \[...\] for an array"),
    "None as a default": (param('Param(s, None, REAL, "target")'), "Param(s", "the default must be a number or a function of the sizes"),
    "text as a default": (param('Param(s, "1", REAL, "target")'), "Param(s", "the default must be a number"),
    "default of nothing": (param('Param(s, lambda: 1.0, REAL, "target")'), "Param(s", r"called with \(sizes\) or .*takes 0 arguments"),
    "default outside": (param('Param(s, -1.0, Interval(0, oo), "x")'), "Param(s", r"the default -1 is outside its domain, I"),
    "observable as a list": ({"more": "observables=[w[m]],"}, "observables=", "observables must be a dict"),
    "observable without a name": ({"more": "observables={1: w[m]},"}, "observables=", "the name of an observable is a text, not 1"),
    "event that is none": ({"more": "events=(w[m],),"}, "events=", r"events holds w\[m\], which is no Event: write Event\("),
    "view that is none": ({"more": 'views=("w",),'}, "views=", r"views holds 'w', which is no View: write Lines\(name\) or Log\(name\)"),
    "view without a tuple": ({"more": 'views="w",'}, "views=", r"views must be a tuple, such as \(Lines\(...\),\)"),
    "matrix of a vector": ({"before": "from odesim.symbolic import Matrix", "more": 'views=(Matrix("w"),),'}, "views=",
                           "Matrix shows an array of at least 2 axes, and w has 1 axis: write Lines"),
    "event either way": ({"more": 'events=(Event("e", w[m], terminal=1),),'}, "events=", "terminal is True or False, not 1"),
    "size with a keyword": ({"before": 'M, = sizes("lambda"); w = IndexedBase("w", shape=(M,)); s = IndexedBase("s", shape=(M,))'},
                            "SYSTEM", "'lambda' is a keyword of Python; write lambda_"),
    "source as text": ({"before": "Source = lambda *_: 'notes'"}, "source=", "source must be a Source"),
    "size below 1": ({"more": "sizes={M: -3},"}, "sizes=", "size M must be a whole number of at least 1, not -3"),
    "caret": (rhs("w[m]^2"), "w[m]^2", r"\^ is no power in Python: write \*\*, as in w\[m\]\*\*2"),
    "matrix product": (rhs("(w @ s)"), "w @ s", "symbols have no matrix product @: write over"),
    "method of an array": (rhs("w.sum()"), "w.sum", r"symbols have no .sum: write over\(Sum, w\[k\], \(k, M\)\)"),
    "method of an element": (rhs("w[m].max()"), "w[m].max", r"symbols have no .max: write over\(MaxOver"),
    "other method": (rhs("w.T"), "w.T", "symbols have no .T, which is one of numpy's arrays"),
    "in": ({"before": "found = 1 in w"}, "in w", r"write over\(Sum, w\[i\], \(i, M\)\) for its sum"),
    "slice": (rhs("w[:]"), "w[:]", r"w\[:\] is no element of w: write one with an index"),
    "name of a function given away": ({"before": "exp = 3", **rhs("exp(w[m])")}, "exp(w", "exp is 3 here: the file has given the name"),
    "name of an array given away": ({"before": "s = 3"}, "s[m]", "s is 3 here: the file has given the name of the array to something else"),
    "300 functions in each other": ({"before": NESTED, **rhs("e")}, "e * s[m]", "an expression is nested 30. deep"),
    "300 in an event": ({"before": NESTED, "more": 'events=(Event("e", e),),'}, "events=", "in event 'e': an .* is nested 30. deep"),
    "function not imported": (rhs("erf(w[m])"), "erf", "'erf' is not defined: from sympy import erf"),
    "syntax": ({"before": "x = = 3"}, "x = =", "invalid syntax"),
}  # fmt: skip


def write(folder, changes: dict[str, str]):
    path = folder / "model.py"
    path.write_text(FILE.format(**GOOD | changes))
    return path


@pytest.mark.first(22)
@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_in_a_file(name, tmp_path):
    """One line: the file, the line where the mistake stands, and what to write instead; never a bare exception of Python."""
    changes, code, message = MISTAKES[name]
    path = write(tmp_path, changes)
    with pytest.raises(ModelError) as caught:
        odesim.load_model(path)
    told = str(caught.value)
    found = re.fullmatch(rf"model file {re.escape(str(path))}, line (\d+): (.*)", told)
    assert found, told
    assert re.search(message, found[2]), told
    assert code in path.read_text().splitlines()[int(found[1]) - 1], told
    assert not re.search(r"\b(TypeError|AttributeError|ValueError|NameError|KeyError|SpecError)\b", told)
    assert len(told) < 500 + len(str(path))


def test_file_without_a_mistake(tmp_path):
    """The file of this table itself is a model, and nothing is said about it."""
    assert odesim.load_model(write(tmp_path, {})).name == "my.linear"


def test_line_is_that_of_the_part(tmp_path):
    """Of many equations, the line of the wrong one is named, also where a comprehension made the others."""
    lines = ["w[m]: -w[m] / tau", "symbols('a'): s[0]", "symbols('b'): mu"]
    path = write(tmp_path, {"equation": ",\n        ".join(lines), "initial": "w[m]: 0, symbols('a'): 0, symbols('b'): 0"})
    with pytest.raises(ModelError) as caught:
        odesim.load_model(path)
    number = int(re.search(r"line (\d+)", str(caught.value))[1])  # type: ignore[index]
    assert lines[2] in path.read_text().splitlines()[number - 1]


def test_unused_parameter_is_a_warning(tmp_path):
    """A parameter that nothing uses is named, with its line; the model is loaded. Functions may use any: then nothing is said."""
    path = write(tmp_path, {"params": WITH_T.replace(", Param(T", ",\n    Param(T")})
    with pytest.warns(ModelWarning, match="my.linear: parameter T is declared, and no equation, .* uses it") as caught:
        odesim.load_model(path)
    assert "Param(T" in path.read_text().splitlines()[caught[0].lineno - 1]
    write(tmp_path, {"params": WITH_T, "more": "observables={'total': lambda t, y, d, params: params['T'].sum()},"})
    odesim.load_model(path)


def test_warning_on_the_command_line(tmp_path):
    """On the command line a warning is one line of stderr, and the exit code is 0."""
    path = write(tmp_path, {"params": WITH_T})
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = CliRunner().invoke(cli, ["show", str(path)])
    assert done.exit_code == 0
    assert re.fullmatch(rf"odesim: warning: {re.escape(str(path))}, line \d+: my.linear: parameter T is declared.*\n", done.stderr)


def test_long_words_are_cut():
    """No word of a message is longer than 200 characters, and a wrong name is shown by its first and last letters."""
    assert max(map(len, str(SpecError("no " + "q" * 5000 + " here")).split())) <= 200
    assert len(no_such("model", "q" * 5000, ["a"])) < 120
    with pytest.raises(OdesimError) as caught:
        odesim.integrate("joma.nonlinear", params={"q" * 5000: 1.0})
    assert len(str(caught.value)) < 300


@pytest.mark.first(1)
@pytest.mark.parametrize("method", ["euler", "tsit5", "rodas5p"])
@pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=pytest.mark.slow)])
def test_component_that_is_not_finite(method, backend, tmp_path):
    """For T = 0 in one entry the message names the component whose derivative is not finite, its value and the time."""
    equation = "w[m]: (s[m] - w[m]) / T[m]"
    path = write(tmp_path, {"equation": equation, "params": WITH_T.replace('Param(tau, 1.0, Interval.open(0, oo), "time"), ', "")})
    step: Any = {"step": 0.5} if method == "euler" else {}
    run = odesim.integrate(path, params={"T": [1.0, 2.0, 0.0]}, method=method, backend=backend, **step)
    assert run.status == "non_finite"
    assert "the derivative of w[2] is inf (w[2] = 0) at t = 0" in run.message


def test_what_a_file_prints_is_no_result(tmp_path):
    """print() in a model file goes to stderr, so that --json on stdout stays JSON."""
    path = write(tmp_path, {"before": "print('hello')", "more": "sizes={M: 2},"})
    done = CliRunner().invoke(cli, ["show", str(path), "--json"])
    assert done.exit_code == 0 and done.stderr == "hello\n"
    assert json.loads(done.stdout)["name"] == "my.linear"


def test_wrong_arguments_of_a_map(tmp_path):
    """Its own names, which are not those of a System."""
    file = tmp_path / "my.py"
    file.write_text("from odesim.symbolic import Map\nSYSTEM = Map(name='x', equations={})\n")
    with pytest.raises(ModelError, match=r"my.py, line 2: Map has no equations; it takes name, source, axes, updates, params, initial"):
        odesim.load_model(file)
