"""Python's errors in a model file as sentences about the model, with the line of the mistake."""

import ast
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

from sympy import Basic, IndexedBase

from odesim.base.errors import SpecError, nearest, value_text
from odesim.base.parsing import parse
from odesim.symbolic.functions import CHOICES

NUMPY = {"arccos": "acos", "arcsin": "asin", "arctan": "atan", "absolute": "Abs", "abs": "Abs", "maximum": "Max", "minimum": "Min"}
"""{function of numpy: its name in sympy}, where these differ."""
SHAPED = ("zeros", "ones", "empty", "full", "arange", "linspace", "eye", "identity")
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
    """The error e of the file with this text, as one line. names: {name: value} that the file has defined.

    What is explained is the expression at the place of the error, which Python knows to the column. The messages of numpy and sympy, which
    change with their versions, are read by nobody.
    """
    if isinstance(e, SpecError):
        return " ".join(str(e).split())
    place = Place(e, _node_at(e, path, text), names)
    for explain in _EXPLANATIONS.get(type(e), ()):
        if explanation := explain(place):
            return explanation
    if isinstance(e, NameError | ImportError) and (explanation := _name(place)):
        return explanation
    return one_line(e)


def one_line(e: BaseException) -> str:
    """The kind of an error and what it says, on one line."""
    message = e.msg if isinstance(e, SyntaxError) else str(e)
    return f"{type(e).__name__}: {' '.join(message.split())[:300]}".rstrip(": ")


@dataclass(frozen=True)
class Place:
    """An error, the expression or import in which it was raised, and the names of the file."""

    error: BaseException
    node: ast.AST | None
    names: Mapping[str, Any]

    @property
    def call(self) -> str:
        """What is called there, as it is written: `np.exp`; empty where nothing is."""
        return ast.unparse(self.node.func) if isinstance(self.node, ast.Call) else ""

    def value(self, node: ast.AST) -> Any:
        """The value of a name of the file; None for another expression, which is not computed again."""
        return self.names.get(node.id) if isinstance(node, ast.Name) else None


def _node_at(e: BaseException, path: str, text: str) -> ast.AST | None:
    """The smallest expression, or the import, that Python was computing when e was raised."""
    frames = [frame for frame in traceback.extract_tb(e.__traceback__) if frame.filename == path]
    if not frames or frames[-1].lineno is None:
        return None
    span = (frames[-1].lineno, frames[-1].colno, frames[-1].end_lineno, frames[-1].end_colno)
    kinds = (ast.expr, ast.ImportFrom)
    nodes = [n for n in _parsed(text) if isinstance(n, kinds) and (n.lineno, n.col_offset, n.end_lineno, n.end_col_offset) == span]
    return nodes[-1] if nodes else None


def _number_function(at: Place) -> str | None:
    """A function of numbers, called with symbols: np.exp(w[m]), max(w[m], 0), float(tau), range(M), len(w)."""
    module, _, name = at.call.rpartition(".")
    if name in ("max", "min", "maximum", "minimum") and module in ("", "np", "numpy"):
        return f"{at.call}(...) compares numbers, not symbols: write {name[:3].capitalize()}(a, b), imported from sympy"
    if at.call in ("sum", "any", "all"):
        return f"{at.call}() goes through numbers one by one, and an array has no length before a run: write over(Sum, w[k], (k, M))"
    if at.call == "range" or (module in ("np", "numpy") and name in SHAPED):
        return "range() and shapes take whole numbers, and a size is a symbol until a run: write sums as over(Sum, w[k], (k, M))"
    if module in ("math", "np", "numpy"):
        return f"{at.call} takes numbers, not symbols: write {NUMPY.get(name, name)}, imported from sympy"
    if at.call in ("float", "int", "round", "complex"):
        return f"{at.call}() takes numbers, and a symbol has no value before a run: leave it out"
    return "an array has no length before a run: write its size, such as M" if at.call == "len" else None


def _condition(at: Place) -> str | None:
    """A condition on symbols used as a bool: if w[m] > 0, 0 < w[m] < 1."""
    if not isinstance(at.node, ast.Compare | ast.BoolOp):
        return None
    holds = ast.unparse(at.node)[:80]
    return f"whether {holds} holds is not known before a run: write Piecewise((a, condition), (b, True)), and And(...) for two conditions"


def _call(at: Place) -> str | None:
    """A symbol called like a function, or a function or array whose name was given to something else: w(m), tau(2), exp = 3."""
    subscripted = at.node.value if isinstance(at.node, ast.Subscript) else None
    if isinstance(subscripted, ast.Name) and subscripted.id in at.names and not hasattr(at.value(subscripted), "__getitem__"):
        name = subscripted.id
        return f"{name} is {value_text(at.names.get(name))} here: the file has given the name of the array to something else"
    if not isinstance(at.node, ast.Call):
        return None
    value = at.value(at.node.func)
    if at.call in (*SYMPY, *CHOICES) and at.call in at.names and not callable(value):
        return f"{at.call} is {value_text(value)} here: the file has given the name of the function to something else"
    if isinstance(value, IndexedBase):
        return "an element of an array is written in brackets, w[m], not in parentheses"
    if (value is not None and not callable(value)) or isinstance(at.node.func, ast.Subscript | ast.Constant | ast.BinOp | ast.Call):
        return "a symbol or number stands before parentheses as if it were a function: is a * missing?"
    return None


def _operator(at: Place) -> str | None:
    """An operator that symbols do not have: w[m]^2, A @ x."""
    if isinstance(at.node, ast.BinOp) and isinstance(at.node.op, ast.BitXor):
        return "^ is no power in Python: write **, as in w[m]**2"
    if isinstance(at.node, ast.BinOp) and isinstance(at.node.op, ast.MatMult):
        return "symbols have no matrix product @: write over(Sum, A[i, k]*x[k], (k, M))"
    return None


def _method(at: Place) -> str | None:
    """A method of numpy's arrays: w.sum(), w.T, w[m].max()."""
    node = at.node.func if isinstance(at.node, ast.Call) else at.node
    if not isinstance(node, ast.Attribute) or not isinstance(getattr(at.error, "obj", None), Basic):
        return None
    many = {"sum": "Sum", "max": "MaxOver", "mean": "Sum", "dot": "Sum"}.get(node.attr)
    advice = f": write over({many}, w[k], (k, M)){' / M' * (node.attr == 'mean')}" if many else ", which is one of numpy's arrays"
    return f"symbols have no .{node.attr}{advice}"


def _limits(at: Place) -> str | None:
    """A sum without its index or its end: Sum(w[k]), Sum(w[k], k)."""
    if at.call.rpartition(".")[2] not in ("Sum", "Product"):
        return None
    return "a sum needs its index and its size: write over(Sum, w[k], (k, M))"


def _name(at: Place) -> str | None:
    """A name that is not defined, or not imported."""
    import odesim.symbolic

    if isinstance(at.node, ast.ImportFrom) and at.node.module == "odesim.symbolic":
        missing = next((alias.name for alias in at.node.names if not hasattr(odesim.symbolic, alias.name)), "")
        if not missing:
            return None
        if missing in SYMPY:
            return f"{missing!r} is not in odesim.symbolic: from sympy import {missing}"
        return f"{missing!r} is not in odesim.symbolic{nearest(missing, odesim.symbolic.__all__)}"
    if not isinstance(at.error, NameError) or not at.error.name:
        return None
    name = at.error.name
    for module, exports in (("odesim.symbolic", odesim.symbolic.__all__), ("sympy", (*SYMPY, *CHOICES))):
        if name in exports:
            return f"{name!r} is not defined: from {module} import {name}"
    return f"name {name!r} is not defined{nearest(name, [known for known in at.names if not known.startswith('__')])}"


def _argument(at: Place) -> str | None:
    """Wrong arguments of a part of a System: System(parameters=...), Param(s, 1.0)."""
    from odesim.symbolic import ClosedForm, Constraint, Event, Invariant, Map, Param, Source, System

    kinds = (ClosedForm, Constraint, Event, Invariant, Map, Param, Source, System)
    if not isinstance(at.node, ast.Call) or not any(at.value(at.node.func) is kind for kind in kinds):
        return None
    parameters = signature(at.value(at.node.func)).parameters
    fields, words = list(parameters), [keyword.arg for keyword in at.node.keywords if keyword.arg]
    if unknown := [word for word in words if word not in fields]:
        return f"{at.call} has no {unknown[0]}; it takes {', '.join(fields)}{nearest(unknown[0], fields)}"
    written = {*fields[: len(at.node.args)], *words}
    missing = [name for name, p in parameters.items() if p.default is p.empty and name not in written]
    if missing:
        listed = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
        return f"{at.call} needs {listed} too: {at.call}({', '.join(fields)})"
    return f"{at.call} takes {', '.join(fields)}"


_EXPLANATIONS: dict[type, tuple[Callable[[Place], str | None], ...]] = {
    TypeError: (_number_function, _condition, _call, _operator, _argument),
    AttributeError: (_method,),
    ValueError: (_limits,),
}


def _parsed(text: str) -> Iterable[ast.AST]:
    try:
        return list(ast.walk(parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return []
