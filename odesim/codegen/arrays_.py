"""Programs as whole-array expressions for numpy or cupy: the plain truth that other backends are tested against."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, IndexedBase, Symbol

from odesim.arrays import Array, array_namespace
from odesim.codegen.printers import Printer
from odesim.symbolic.expr import base_name
from odesim.symbolic.lower import lower_expressions
from odesim.symbolic.program import Program, Statement

WORDS = {
    "abs": "abs",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "atan2": "arctan2",
    "pow": "power",
    "powi": "power",
}


class ArrayPrinter(Printer):
    """Broadcast whole arrays: every index is one axis of the loop space, in order."""

    def __init__(self, space: tuple[Symbol, ...], integers: set[str]):
        super().__init__(integers)
        self.space = space

    def constant(self, name: str) -> str:
        return f"xp.{name}"

    def call(self, name: str, *args: str) -> str:
        if name == "erf":
            return f"erf({', '.join(args)})"
        return f"xp.{WORDS.get(name, name)}({', '.join(args)})"

    def choice(self, condition: str, yes: str, no: str) -> str:
        return f"xp.where({condition}, {yes}, {no})"

    def both(self, parts: list[str]) -> str:
        return f"({' & '.join(f'({p})' for p in parts)})"

    def either(self, parts: list[str]) -> str:
        return f"({' | '.join(f'({p})' for p in parts)})"

    def whole(self, name: str) -> str:
        return self._along(f"{name}_", [name]) if name in {i.name for i in self.space} else f"float({name})"

    def subscript(self, i: Any) -> str:
        if isinstance(i, Symbol) and i in self.space:
            return self._along(f"{i.name}_", [i.name])
        return super().subscript(i)

    def element(self, e: Indexed) -> str:
        """z[psi[n], l] as z[psi_, :] with its axes where the loop space has them."""
        text, axes = base_name(e), []
        for axis, i in enumerate(e.indices):
            if isinstance(i, Symbol):
                axes.append(i.name)
            elif isinstance(i, Indexed) and len(i.indices) == 1 and isinstance(i.indices[0], Symbol):
                text = f"xp.take({text}, {base_name(i)}, axis={axis})"
                axes.append(i.indices[0].name)
            else:
                text = f"xp.take({text}, [{i}], axis={axis})"
                axes.append("")
        return self._along(text, axes)

    def _along(self, text: str, axes: list[str]) -> str:
        """An array whose axes carry these indices, turned and widened to the loop space; "" is an axis of one element."""
        order = [i.name for i in self.space]
        kept = [a for a in axes if a]
        if len(set(kept)) < len(kept):
            text, kept = f"xp.diagonal({text})", kept[:1]
        elif "" in axes:
            text = f"{text}.reshape({', '.join('-1' if len(kept) == 1 else f'{text}.shape[{axes.index(a)}]' for a in kept) or '()'})"
        want = sorted(kept, key=order.index)
        turn = "" if want == kept else f".transpose({', '.join(str(kept.index(a)) for a in want)})"
        widen = f"[{', '.join(':' if a in kept else 'None' for a in order)}]" if len(kept) < len(order) and order else ""
        return f"{text}{turn}{widen}"


def array_text(program: Program, name: str, inputs: list[str]) -> str:
    """The function name(xp, inputs...) -> {output: array} as text."""
    sizes = sorted(program.sizes)
    integers = set(sizes) | {i.name for i in program.extents}
    lines = [f"def {name}({', '.join(['xp', *sizes, *inputs])}):"]
    used = {i for s in program.statements() for i in (*s.loops, *s.free)}
    lines += [f"    {i}_ = xp.arange({program.extents[i]})" for i in sorted(used, key=str)]
    for s in program.statements():
        lines += _statement(s, program, integers)
    lines.append(f"    return {{{', '.join(f'{o!r}: {o}' for o in program.outputs)}}}")
    return "\n".join(lines)


def _statement(s: Statement, program: Program, integers: set[str]) -> list[str]:
    shape = "".join(f"{program.extents[i]}, " for i in s.free)
    if s.op == "scatter":
        assert s.via is not None
        text = ArrayPrinter(s.loops, integers).text(s.body)
        return [
            f"    {s.name} = xp.zeros(({shape}))",
            f"    xp.add.at({s.name}, {base_name(s.via)}, {text})",
        ]
    space = (*s.free, *((s.bound,) if s.bound is not None else ()))
    text = ArrayPrinter(space, integers).text(s.body)
    if s.op in ("sum", "dot", "max"):
        whole = f"xp.broadcast_to({text}, ({shape}{program.extents[s.bound]},))" if _flat(s) else text
        return [f"    {s.name} = xp.{'max' if s.op == 'max' else 'sum'}({whole}, axis=-1)"]
    return [f"    {s.name} = xp.broadcast_to({text}, ({shape}))" if s.free and _flat(s) else f"    {s.name} = {text}"]


def _flat(s: Statement) -> bool:
    """Whether the body may lack an axis of the loop space."""
    seen = {i for a in s.body.atoms(Indexed) for i in a.free_symbols}
    return not all(i in seen for i in s.loops)


@lru_cache(maxsize=256)
def _compiled(text: str) -> Callable[..., dict[str, Any]]:
    names: dict[str, Any] = {"erf": _erf}
    exec(compile(text, "<odesim arrays>", "exec"), names)
    return names["f"]  # type: ignore[no-any-return]


def _erf(x: Any) -> Any:
    if array_namespace(x).__name__ == "cupy":
        from cupyx.scipy.special import erf
    else:
        from scipy.special import erf
    return erf(x)


class ArrayFunction:
    """A Program on whole arrays: called with sizes and named inputs it returns {output: array}."""

    def __init__(self, program: Program):
        self.inputs = sorted(program.inputs())
        self.sizes = sorted(program.sizes)
        self.source = array_text(program, "f", self.inputs)
        self._call = _compiled(self.source)

    def __call__(self, sizes: Mapping[str, int], values: Mapping[str, Any]) -> dict[str, Any]:
        """values holds every input by name: numpy or cupy arrays of the declared shapes, and numbers."""
        xp = array_namespace(*values.values())
        with xp.errstate(all="ignore"):
            return self._call(xp, *(sizes[n] for n in self.sizes), *(values[n] if n in values else sizes[n] for n in self.inputs))


@lru_cache(maxsize=512)
def _expression(e: Expr, indices: tuple[Symbol, ...], axes: tuple[tuple[Symbol, Any], ...]) -> ArrayFunction:
    extents = dict(axes)
    target = IndexedBase("value", shape=tuple(extents[i] for i in indices))[indices] if indices else Symbol("value")
    return ArrayFunction(lower_expressions({target: e}, extents))


def evaluate(
    expr: Expr, indices: tuple[Symbol, ...], axes: Mapping[Symbol, Any], sizes: Mapping[str, int], values: Mapping[str, Any], t: float = 0.0
) -> Array:
    """expr for every value of its indices: an array with one axis for each of them, in their order."""
    import numpy as np

    f = _expression(sp.sympify(expr), tuple(indices), tuple(axes.items()))
    shape = tuple(int(sp.sympify(axes[i]).subs({s: sizes[str(s)] for s in sp.sympify(axes[i]).free_symbols})) for i in indices)
    return np.broadcast_to(np.asarray(f(sizes, {"t": t, **sizes, **values})["value"], dtype=np.float64), shape)
