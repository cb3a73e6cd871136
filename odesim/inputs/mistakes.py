"""Python's errors in a model file as sentences about the model, with the line of the mistake."""

import ast
import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any

from odesim.base.errors import SpecError, nearest, value_text
from odesim.base.parsing import parse
from odesim.symbolic.functions import CHOICES

NUMPY = {"arccos": "acos", "arcsin": "asin", "arctan": "atan", "absolute": "Abs", "abs": "Abs", "maximum": "Max", "minimum": "Min"}
"""{function of numpy: its name in sympy}, where these differ."""
SYMPY = ("Abs", "Eq", "IndexedBase", "Interval", "KroneckerDelta", "Max", "Min", "Ne", "Piecewise", "Range", "Rational", "S", "Sum",
         "Symbol", "cos", "exp", "log", "oo", "pi", "sin", "sqrt", "symbols", "tanh")  # fmt: skip


def error_place(e: BaseException, path: str, text: str) -> str:
    """The place in the file with this text at which e was raised, such as `my.py, line 5`. An error of a System's part has its line."""
    lines = [frame.lineno for frame in traceback.extract_tb(e.__traceback__) if frame.filename == path]
    line = e.lineno if isinstance(e, SyntaxError) and e.filename == path else lines[-1] if lines else None
    if isinstance(e, SpecError) and e.part and line:
        line = line_of(text, line, *e.part) or line
    return f"{path}, line {line}" if line else path


def line_of(text: str, line: int, field: str, number: int | None) -> int | None:
    """The line of item `number` of the argument `field` of the call on this line; None where the text does not show it."""
    calls = [node for node in _parsed(text) if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno)]
    values = [keyword.value for node in calls for keyword in node.keywords if keyword.arg == field]
    if not values:
        return None
    value = values[-1]
    items: list[Any] = []
    if number is not None and isinstance(value, ast.Dict):
        items = [key or item for key, item in zip(value.keys, value.values, strict=True)]
    elif number is not None and isinstance(value, ast.Tuple | ast.List):
        items = list(value.elts)
    starred = any(isinstance(item, ast.Starred) for item in items) or (isinstance(value, ast.Dict) and None in value.keys)
    return int(items[number].lineno) if number is not None and not starred and number < len(items) else int(value.lineno)


def param_line(text: str, name: str) -> int:
    """The line on which the Param of this name is written; 1 where the text does not show it."""
    for node in _parsed(text):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Param") and node.args and ast.unparse(node.args[0]) == name:
            return node.lineno
    return 1


def error_sentence(e: BaseException, path: str, text: str, names: Mapping[str, Any]) -> str:
    """The error e of the file with this text, as one line. names: {name: value} that the file has defined."""
    if isinstance(e, SpecError):
        return " ".join(str(e).split())
    frames = [frame for frame in traceback.extract_tb(e.__traceback__) if frame.filename == path]
    code = _statement(text, frames[-1].lineno, frames[-1].end_lineno) if frames else ""
    message = e.msg if isinstance(e, SyntaxError) else " ".join(str(e).split())
    for explain in _EXPLANATIONS:
        if explanation := explain(e, message, code, names):
            return explanation
    return f"{type(e).__name__}: {message[:300]}".rstrip(": ")


def _statement(text: str, first: int | None, last: int | None) -> str:
    lines = text.splitlines()
    return "\n".join(lines[(first or 1) - 1 : last or first]) if first else ""


def _number_function(e: BaseException, message: str, code: str, _: Mapping[str, Any]) -> str | None:
    """A function of numbers, called with symbols: np.exp(w[m]), math.exp(tau), float(tau), int(M)."""
    if not isinstance(e, TypeError):
        return None
    if ufunc := re.search(r"argument 0 of type \w+ which has no callable (\w+) method", message):
        return f"np.{ufunc[1]} takes numbers, not symbols: write {NUMPY.get(ufunc[1], ufunc[1])}, imported from sympy"
    if "Cannot convert" not in message and "must be real number" not in message:
        return None
    if call := re.search(r"\b(math|np|numpy)\.(\w+)\(", code):
        return f"{call[1]}.{call[2]} takes numbers, not symbols: write {NUMPY.get(call[2], call[2])}, imported from sympy"
    if call := re.search(r"\b(float|int|round|complex)\(", code):
        return f"{call[1]}() takes numbers, and a symbol has no value before a run: leave it out"
    return None


def _range(e: BaseException, message: str, *_: Any) -> str | None:
    """A size used as a number: sum(w[k] for k in range(M)), np.zeros(M)."""
    if not isinstance(e, TypeError) or not re.search("cannot be interpreted as an integer|expected a sequence of integers", message):
        return None
    return "range() and shapes take whole numbers, and a size is a symbol until a run: write sums as over(Sum, w[k], (k, M))"


def _condition(e: BaseException, message: str, code: str, _: Mapping[str, Any]) -> str | None:
    """A condition on symbols used as a bool: if w[m] > 0, max(w[m], 0), 0 < w[m] < 1."""
    match = re.search(r"cannot determine truth value of Relational: (.{0,80})", message)
    if not isinstance(e, TypeError) or not match:
        return None
    if call := re.search(r"\b(?:(?:np|numpy)\.)?(max|min|maximum|minimum)\(", code):
        name = call[1][:3].capitalize()
        return f"{call[0]}...) compares numbers, not symbols: write {name}(a, b), imported from sympy"
    return (
        f"whether {match[1]} holds is not known before a run: write Piecewise((a, condition), (b, True)), and And(...) for two conditions"
    )


def _call(e: BaseException, message: str, *_: Any) -> str | None:
    """A symbol called like a function: w(m), tau(1 + w[m]), w[m](2)."""
    kind = re.fullmatch(r"'(\w+)' object is not callable", message)
    if not isinstance(e, TypeError) or not kind or kind[1] in ("function", "tuple"):
        return None
    if kind[1].endswith("IndexedBase"):
        return "an element of an array is written in brackets, w[m], not in parentheses"
    return "a symbol or number stands before parentheses as if it were a function: is a * missing?"


def _overwritten(e: BaseException, message: str, code: str, names: Mapping[str, Any]) -> str | None:
    """A function or an array whose name has been given to something else: exp = 3, then exp(w[m]); w = 3, then w[m]."""
    if not isinstance(e, TypeError):
        return None
    if message.endswith("object is not subscriptable"):
        for name in re.findall(r"(?<![\w.\])])([A-Za-z_]\w*)\[", code):
            if name in names and not hasattr(names[name], "__getitem__"):
                return f"{name} is {value_text(names[name])} here: the file has given the name of the array to something else"
    if not message.endswith("object is not callable"):
        return None
    for name in re.findall(r"(?<![\w.])([A-Za-z_]\w*)\(", code):
        if name in (*SYMPY, *CHOICES) and name in names and not callable(names[name]):
            return f"{name} is {value_text(names[name])} here: the file has given the name of the function to something else"
    return None


def _operator(e: BaseException, message: str, *_: Any) -> str | None:
    """An operator that symbols do not have: w[m]^2, A @ x."""
    sign = re.match(r"unsupported operand type\(s\) for (\^|@)=?:", message)
    if not isinstance(e, TypeError) or not sign:
        return None
    if sign[1] == "^":
        return "^ is no power in Python: write **, as in w[m]**2"
    return "symbols have no matrix product @: write over(Sum, A[i, k]*x[k], (k, M))"


def _method(e: BaseException, message: str, *_: Any) -> str | None:
    """A method of numpy's arrays: w.sum(), w.T, w[m].max()."""
    found = re.fullmatch(r"'\w*(?:IndexedBase|Indexed|Symbol|Add|Mul|Pow)' object has no attribute '(\w+)'.*", message)
    if not isinstance(e, AttributeError) or not found:
        return None
    many = {"sum": "Sum", "max": "MaxOver", "mean": "Sum", "dot": "Sum"}.get(found[1])
    advice = f": write over({many}, w[k], (k, M)){' / M' * (found[1] == 'mean')}" if many else ", which is one of numpy's arrays"
    return f"symbols have no .{found[1]}{advice}"


def _limits(e: BaseException, message: str, code: str, _: Mapping[str, Any]) -> str | None:
    """A sum without its index or its end: Sum(w[k]), Sum(w[k], k)."""
    if not isinstance(e, ValueError) or not re.match("specify dummy variables|Sum requires values for lower and upper", message):
        return None
    return "a sum needs its index and its size: write over(Sum, w[k], (k, M))"


def _length(e: BaseException, message: str, *_: Any) -> str | None:
    """The length of an array of symbols: len(w)."""
    if isinstance(e, TypeError) and re.fullmatch(r"object of type '\w*(IndexedBase|Symbol|Indexed)' has no len\(\)", message):
        return "an array has no length before a run: write its size, such as M"
    return None


def _name(e: BaseException, message: str, _: str, names: Mapping[str, Any]) -> str | None:
    """A name that is not defined, or not imported."""
    import odesim.symbolic

    if isinstance(e, ImportError) and e.name == "odesim.symbolic" and (missing := re.match(r"cannot import name '(\w+)'", message)):
        if missing[1] in SYMPY:
            return f"{missing[1]!r} is not in odesim.symbolic: from sympy import {missing[1]}"
        return f"{missing[1]!r} is not in odesim.symbolic{nearest(missing[1], odesim.symbolic.__all__)}"
    if not isinstance(e, NameError) or not e.name:
        return None
    for module, exports in (("odesim.symbolic", odesim.symbolic.__all__), ("sympy", (*SYMPY, *CHOICES))):
        if e.name in exports:
            return f"{e.name!r} is not defined: from {module} import {e.name}"
    choices = [name for name in names if not name.startswith("__")]
    return f"{message}{nearest(e.name, choices)}"


def _argument(e: BaseException, message: str, *_: Any) -> str | None:
    """Wrong arguments of a part of a System: System(parameters=...), Param(s, 1.0)."""
    from odesim.symbolic import ClosedForm, Constraint, Event, Invariant, Map, Param, Source, System

    match = re.match(r"(\w+)(?:\.__init__)?\(\) (.*)", message)
    kinds: dict[str, Any] = {kind.__name__: kind for kind in (ClosedForm, Constraint, Event, Invariant, Map, Param, Source, System)}
    if not isinstance(e, TypeError) or not match or match[1] not in kinds:
        return None
    fields = list(signature(kinds[match[1]]).parameters)
    if unknown := re.search(r"unexpected keyword argument '(\w+)'", message):
        return f"{match[1]} has no {unknown[1]}; it takes {', '.join(fields)}{nearest(unknown[1], fields)}"
    if missing := re.search(r"missing \d+ required positional arguments?: (.*)", message):
        return f"{match[1]} needs {missing[1].replace(chr(39), '')} too: {match[1]}({', '.join(fields)})"
    return f"{match[1]} takes {', '.join(fields)}: {match[2]}"


_EXPLANATIONS: tuple[Callable[..., str | None], ...] = (
    _number_function, _range, _condition, _overwritten, _call, _operator, _method, _limits, _length, _name, _argument,
)  # fmt: skip


def _parsed(text: str) -> Iterable[ast.AST]:
    try:
        return list(ast.walk(parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return []
