"""Programs as expressions of whole numpy or cupy arrays: the simple version that other backends are tested against."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from string import ascii_letters
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, IndexedBase, KroneckerDelta, Symbol

from odesim.base.arrays import Array, array_namespace
from odesim.ir.passes import lower_expressions
from odesim.ir.program import Program, Statement
from odesim.symbolic.indices import Neighbour, base_name
from odesim.symbolic.reductions import subexpressions
from odesim.targets.expressions import ATOM, Printer
from odesim.targets.numpy_text import SPECIAL

WORDS = {
    "abs": "abs",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "pow": "power",
    "powi": "power",
}


class ArrayPrinter(Printer):
    """A printer of expressions on whole arrays: each index is one axis of the loop space, and arrays are broadcast to it.

    Names that are not the model's begin with _. places: names of the arrays whose elements are used as indices, and stay integers.
    """

    def __init__(self, space: tuple[Symbol, ...], integers: set[str], index_arrays: set[str]):
        super().__init__(integers)
        self.space, self.index_arrays = space, index_arrays

    def constant(self, name: str) -> str:
        return f"_xp.{name}"

    def call(self, name: str, *args: str) -> str:
        if name in SPECIAL:
            return f"_{name}({', '.join(args)})"
        return f"_xp.{WORDS.get(name, name)}({', '.join(args)})"

    def choice(self, condition: str, yes: str, no: str) -> str:
        return f"_xp.where({condition}, {yes}, {no})"

    def both(self, parts: list[str]) -> str:
        return f"({' & '.join(f'({p})' for p in parts)})"

    def either(self, parts: list[str]) -> str:
        return f"({' | '.join(f'({p})' for p in parts)})"

    def whole(self, name: str) -> str:
        return self._along(f"_{name}_", [name]) if name in {i.name for i in self.space} else f"_xp.float64({name})"

    def _Indexed(self, e: Indexed) -> tuple[str, int]:
        return f"{self.element(e)}{'.astype(_xp.float64)' if base_name(e) in self.index_arrays else ''}", ATOM

    def subscript(self, i: Any) -> str:
        return self.whole(i.name) if i in self.space else super().subscript(i)

    def place(self, i: Any) -> str:
        """An index as an integer array along its axes of the loop space."""
        return f"{self.whole(i.name)}.astype(_xp.int64)" if i in self.space else self.subscript(i)

    def element(self, e: Indexed) -> str:
        """The text of an element: z[psi[n], l] as z[psi, :] with its axes in the loop space; otherwise with one array per index."""
        if any(isinstance(j, Neighbour) for i in e.indices for j in sp.preorder_traversal(i)):
            return self._at_places(e)
        others = [i for i in e.indices if i not in self.space]
        inside = {i: i.indices if isinstance(i, Indexed) else () for i in others}
        axes = [j for i in e.indices for j in inside.get(i, (i,))]
        if len(others) > 1 or len(set(axes)) < len(axes) or not set(axes) <= set(self.space):
            return self._at_places(e)
        part = ", ".join((base_name(i) if inside[i] else str(i)) if i in inside else ":" for i in e.indices)
        return self._along(f"{base_name(e)}[{part}]" if others else base_name(e), [j.name for j in axes])

    def _at_places(self, e: Indexed) -> str:
        return f"{base_name(e)}[{', '.join(map(self.place, e.indices))}]"

    def wrap(self, place: str, length: str) -> str:
        return f"(({place}) % int({length}))"

    def clip(self, place: str, length: str) -> str:
        return f"_xp.clip({place}, 0, int({length}) - 1)"

    def on_axis(self, place: str, length: str) -> str:
        return f"(({place} >= 0) & ({place} < int({length})))"

    def _along(self, text: str, axes: list[str]) -> str:
        """The text of an array with these axes, transposed and widened to the loop space."""
        order = [i.name for i in self.space]
        want = sorted(axes, key=order.index)
        turn = "" if want == axes else f".transpose({', '.join(str(axes.index(a)) for a in want)})"
        widen = f"[{', '.join(':' if a in axes else 'None' for a in order)}]" if len(axes) < len(order) else ""
        return f"{text}{turn}{widen}"


def array_text(program: Program, name: str, inputs: list[str], products: bool = True) -> str:
    """The text of the function name(_xp, inputs...) -> {output: array}. products: whether sums of products are einsums."""
    sizes = sorted(program.sizes)
    lines = [f"def {name}({', '.join(['_xp', *sizes, *inputs])}):"]
    used = {i for s in program.statements() for i in (*s.loops, *s.free)}
    lines += [f"    _{i}_ = _xp.arange({program.extents[i]}, dtype=_xp.float64)" for i in sorted(used, key=str)]
    integers, index_names = set(sizes) | {i.name for i in program.extents}, index_arrays(program)
    for s in program.statements():
        lines += _statement(s, program, lambda space: ArrayPrinter(space, integers, index_names), products)
    lines.append(f"    return {{{', '.join(f'{o!r}: {o}' for o in program.outputs)}}}")
    return "\n".join(lines)


def index_arrays(program: Program) -> set[str]:
    """Names of the arrays that are used in an index or a Kronecker delta."""
    indices = {s.via for s in program.statements() if s.via is not None and s.op == "scatter"}
    written = subexpressions((e for s in program.statements() for e in (s.body, s.via) if e is not None), Indexed, KroneckerDelta)
    indices |= {i for e in written for i in (e.indices if isinstance(e, Indexed) else e.args)}
    return {base_name(i) for i in indices if isinstance(i, Indexed)}


def _statement(s: Statement, program: Program, printer: Callable[[tuple[Symbol, ...]], ArrayPrinter], products: bool) -> list[str]:
    shape = "".join(f"{program.extents[i]}, " for i in s.free)
    words = printer(s.loops)
    text = words.text(s.body)
    if s.op == "scatter":
        place = "".join(f"{words.place(i)}, " for i in (s.via, *s.free[1:]))
        return [f"    {s.name} = _xp.zeros(({shape}))", f"    _xp.add.at({s.name}, ({place}), {text})"]
    if s.op == "dot" and products:
        letters = dict(zip(s.loops, ascii_letters, strict=False))
        left, right, out = ("".join(letters[i] for i in indices) for indices in (*(f.indices for f in s.body.args), s.free))
        factors = ", ".join(
            f"_xp.asarray({base_name(f)}, _xp.float64)" if base_name(f) in words.index_arrays else base_name(f) for f in s.body.args
        )
        return [f"    {s.name} = _xp.einsum('{left},{right}->{out}', {factors}, optimize=True)"]
    if s.op == "inverse":
        return [f"    {s.name} = _inverse({base_name(s.body)})"]
    if s.along is not None:
        whole, axis = f"_xp.broadcast_to({text}, ({shape}))", s.free.index(s.along)
        if s.op == "prefix":
            return [f"    {s.name} = _xp.cumsum({whole}, axis={axis})"]
        return [f"    {s.name} = _xp.flip(_xp.cumsum(_xp.flip({whole}, {axis}), axis={axis}), {axis})"]
    if s.op in ("sum", "dot", "max"):
        whole = f"_xp.broadcast_to({text}, ({shape}{program.extents[s.bound]},))" if _needs_broadcast(s) else text
        return [f"    {s.name} = _xp.{'max' if s.op == 'max' else 'sum'}({whole}, axis=-1)"]
    return [f"    {s.name} = _xp.broadcast_to({text}, ({shape}))" if s.free and _needs_broadcast(s) else f"    {s.name} = {text}"]


def _needs_broadcast(s: Statement) -> bool:
    """Whether the body lacks an axis of the loop space, so that its value has to be broadcast."""
    read_indices = {i for a in s.body.atoms(Indexed) for i in a.free_symbols}
    return not all(i in read_indices for i in s.loops)


@lru_cache(maxsize=256)
def _compiled(text: str) -> Callable[..., dict[str, Any]]:
    names: dict[str, Any] = {f"_{name}": function for name, function in SPECIAL.items()}
    exec(compile(text, "<odesim arrays>", "exec"), names)
    return names["f"]  # type: ignore[no-any-return]


class ArrayFunction:
    """A Program as a function of whole arrays: called with sizes and {input: value}, it returns {output: array}.

    products: whether sums of products are einsums. These are fast, but a row's last bits vary with the number of rows.
    """

    def __init__(self, program: Program, products: bool = True):
        self.inputs = sorted(program.inputs())
        self.sizes = sorted(program.sizes)
        self.source = array_text(program, "f", self.inputs, products)
        self._call = _compiled(self.source)
        self._index_arrays = index_arrays(program)

    def __call__(self, sizes: Mapping[str, int], values: Mapping[str, Any]) -> dict[str, Any]:
        """{output: array} for values {input: numpy or cupy array of the declared shape, or number}."""
        xp = array_namespace(*values.values())
        inputs = ((n, values[n] if n in values else sizes[n]) for n in self.inputs)
        numbers = [x if n in self._index_arrays else _as_real(x) for n, x in inputs]
        extents = [sizes[n] for n in self.sizes]
        with xp.errstate(all="ignore"):
            try:
                return self._call(xp, *extents, *numbers)
            except (ZeroDivisionError, OverflowError):  # of Python's own numbers, such as t; numpy's are inf or nan there
                import numpy as np

                return self._call(xp, *extents, *(np.float64(x) if isinstance(x, float) else x for x in numbers))


def _as_real(x: Any) -> Any:
    """x with integers as float64, because their powers would overflow."""
    if isinstance(x, int):
        return float(x)
    return x.astype("float64") if getattr(x, "dtype", None) is not None and x.dtype.kind in "iu" else x


def value_at(indices: tuple[Symbol, ...], axes: Mapping[Symbol, Any]) -> Any:
    """The target for an expression without a name: _value, or _value[i]."""
    return IndexedBase("_value", shape=tuple(axes[i] for i in indices))[indices] if indices else Symbol("_value")


@lru_cache(maxsize=512)
def _expression(e: Expr, indices: tuple[Symbol, ...], axes: tuple[tuple[Symbol, Any], ...]) -> ArrayFunction:
    extents = dict(axes)
    return ArrayFunction(lower_expressions({value_at(indices, extents): e}, extents))


def evaluate(
    expr: Expr, indices: tuple[Symbol, ...], axes: Mapping[Symbol, Any], sizes: Mapping[str, int], values: Mapping[str, Any], t: float = 0.0
) -> Array:
    """The values of expr: an array with one axis for each of the indices, in their order."""
    import numpy as np

    f = _expression(sp.sympify(expr), tuple(indices), tuple(axes.items()))
    shape = tuple(int(sp.sympify(axes[i]).subs({s: sizes[str(s)] for s in sp.sympify(axes[i]).free_symbols})) for i in indices)
    return np.broadcast_to(np.asarray(f(sizes, {"t": t, **sizes, **values})["_value"], dtype=np.float64), shape)
