"""Programs as expressions of whole numpy or cupy arrays: the simple version that other backends are tested against.

Special functions are those of scipy or cupyx, and own ones where these lose digits: near branch points, 0 and overflow. The coefficients
of series are imported where they are used: that imports numba, which a run without these functions does not need.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from string import ascii_letters
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, KroneckerDelta, Symbol

from odesim.base.arrays import Array, array_namespace
from odesim.ir.passes import lower_expressions
from odesim.ir.program import Program, Statement
from odesim.runtime.constants import GROWN, LOST, SMALL
from odesim.symbolic.indices import Neighbour, array_at, base_name
from odesim.symbolic.reductions import subexpressions
from odesim.targets.expressions import Printer, PythonText, Tree, call, element, name

WORDS = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")}
WORDS |= dict.fromkeys(("pow", "powi"), "power")
ONE_OVER_E, ONE_OVER_E_TAIL = 0.36787944117144233, -1.2428753672788363e-17


class ArrayPrinter(Printer):
    """A printer of expressions on whole arrays: each index is one axis of the loop space, and arrays are broadcast to it.

    Names that are not the model's begin with _. places: names of the arrays whose elements are used as indices, and stay integers.
    """

    def __init__(self, space: tuple[Symbol, ...], integers: set[str], index_arrays: set[str]):
        super().__init__(integers)
        self.space, self.index_arrays = space, index_arrays

    def constant(self, word: str) -> Tree:
        return name(f"_xp.{word}")

    def call(self, function: str, *args: Tree) -> Tree:
        return call(f"_{function}" if function in SPECIAL else f"_xp.{WORDS.get(function, function)}", *args)

    def _jn(self, e: Any) -> Tree:
        return self.call("spherical_jn", *map(self.tree, e.args))

    def choice(self, condition: Tree, yes: Tree, no: Tree) -> Tree:
        return call("_xp.where", condition, yes, no)

    def both(self, parts: Sequence[Tree]) -> Tree:
        return self._logical(" & ", parts)

    def either(self, parts: Sequence[Tree]) -> Tree:
        return self._logical(" | ", parts)

    @staticmethod
    def _logical(sign: str, parts: Sequence[Tree]) -> Tree:
        text = PythonText()
        return name(f"({sign.join(f'({text(p)})' for p in parts)})")

    def whole(self, e: Tree) -> Tree:
        if isinstance(e, ast.Name) and e.id in {i.name for i in self.space}:
            return self._along(f"_{e.id}_", [e.id])
        return call("_xp.float64", e)

    def _Indexed(self, e: Indexed) -> Tree:
        return _as_type(self.element(e), "float64") if base_name(e) in self.index_arrays else self.element(e)

    def scattered(self, target: str, shape: str, place: str, text: str) -> list[str]:
        """The lines of target (shape) = 0 with text added at the places."""
        return [f"{target} = _xp.zeros(({shape}))", f"_xp.add.at({target}, ({place}), {text})"]

    def subscript(self, i: Any) -> Tree:
        return self.whole(name(i.name)) if i in self.space else super().subscript(i)

    def place(self, i: Any) -> Tree:
        """An index as an integer array along its axes of the loop space."""
        return _as_type(self.whole(name(i.name)), "int64") if i in self.space else self.subscript(i)

    def element(self, e: Indexed) -> Tree:
        """An element: z[psi[n], l] as z[psi, :] with its axes in the loop space; otherwise with one array per index."""
        if any(isinstance(j, Neighbour) for i in e.indices for j in sp.preorder_traversal(i)):
            return self._at_places(e)
        others = [i for i in e.indices if i not in self.space]
        inside = {i: i.indices if isinstance(i, Indexed) else () for i in others}
        axes = [j for i in e.indices for j in inside.get(i, (i,))]
        if len(others) > 1 or len(set(axes)) < len(axes) or not set(axes) <= set(self.space):
            return self._at_places(e)
        part = ", ".join((base_name(i) if inside[i] else str(i)) if i in inside else ":" for i in e.indices)
        return self._along(f"{base_name(e)}[{part}]" if others else base_name(e), [j.name for j in axes])

    def _at_places(self, e: Indexed) -> Tree:
        return element(base_name(e), *map(self.place, e.indices))

    def on_axis(self, what: str, place: Tree, length: Tree) -> Tree:
        text = PythonText()
        at, n = text(place), text(length)
        inside = f"(({at} >= 0) & ({at} < int({n})))"
        return name({"wrap": f"(({at}) % int({n}))", "clip": f"_xp.clip({at}, 0, int({n}) - 1)", "on_axis": inside}[what])

    def _along(self, text: str, axes: list[str]) -> Tree:
        """An array with these axes, transposed and widened to the loop space."""
        order = [i.name for i in self.space]
        want = sorted(axes, key=order.index)
        turn = "" if want == axes else f".transpose({', '.join(str(axes.index(a)) for a in want)})"
        widen = f"[{', '.join(':' if a in axes else 'None' for a in order)}]" if len(axes) < len(order) else ""
        return name(f"{text}{turn}{widen}")


def _as_type(e: Tree, kind: str) -> Tree:
    return name(f"{PythonText()(e)}.astype(_xp.{kind})")


def array_text(
    program: Program, name: str, inputs: list[str], products: bool = True, printer: Callable[..., ArrayPrinter] = ArrayPrinter
) -> str:
    """The text of the function name(_xp, inputs...) -> {output: array}. products: whether sums of products are einsums."""
    sizes = sorted(program.sizes)
    lines = [f"def {name}({', '.join(['_xp', *sizes, *inputs])}):"]
    used = {i for s in program.statements() for i in (*s.loops, *s.free)}
    lines += [f"    _{i}_ = _xp.arange({program.extents[i]}, dtype=_xp.float64)" for i in sorted(used, key=str)]
    integers, index_names = set(sizes) | {i.name for i in program.extents}, index_arrays(program)
    for s in program.statements():
        lines += _statement(s, program, lambda space: printer(space, integers, index_names), products)
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
        place = "".join(f"{PythonText()(words.place(i))}, " for i in (s.via, *s.free[1:]))
        return [f"    {line}" for line in words.scattered(s.name, shape, place, text)]
    # einsum finds BLAS by itself; where bits of a row must not depend on the number of rows, `products` is off
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
    return names["f"]


class ArrayFunction:
    """A Program as a function of whole arrays: called with sizes and {input: value}, it returns {output: array}.

    products: whether sums of products are einsums. These are fast, but a row's last bits vary with the number of rows
    and with the processor, whose BLAS multiplies.
    """

    def __init__(self, program: Program, products: bool = True):
        self.program = program
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
        # a trial step may overflow: the integrator sees inf or nan and takes a smaller step, as compiled code does without a word
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


@lru_cache(maxsize=512)
def expression_function(e: Expr, indices: tuple[Symbol, ...], axes: tuple[tuple[Symbol, Any], ...], products: bool = True) -> ArrayFunction:
    """An expression as a function of whole arrays, whose output is _value along these indices. axes: items of {index: extent}."""
    extents = dict(axes)
    return ArrayFunction(lower_expressions({array_at("_value", indices, extents): e}, extents), products)


def evaluate(
    expr: Expr, indices: tuple[Symbol, ...], axes: Mapping[Symbol, Any], sizes: Mapping[str, int], values: Mapping[str, Any]
) -> Array:
    """The values of expr, at time 0 unless values say t: an array with one axis for each of the indices, in their order."""
    import numpy as np

    f = expression_function(sp.sympify(expr), tuple(indices), tuple(axes.items()))
    shape = tuple(int(sp.sympify(axes[i]).subs({s: sizes[str(s)] for s in sp.sympify(axes[i]).free_symbols})) for i in indices)
    return np.broadcast_to(np.asarray(f(sizes, {"t": 0.0, **sizes, **values})["_value"], dtype=np.float64), shape)


def _library(*arguments: Any) -> Any:
    """The special functions of scipy, or those of cupy."""
    if array_namespace(*arguments).__name__ == "cupy":
        from cupyx.scipy import special
    else:
        from scipy import special
    return special


def _erfc(x: Any) -> Any:
    """Beyond 3 by the scaled function and an exact square."""
    xp, special, far = array_namespace(x), _library(x), x > 3
    y = xp.where(far, xp.minimum(x, 28.0), 3.0)
    h = y.astype(xp.float32).astype(y.dtype)
    return xp.where(far, special.erfcx(y) * xp.exp(-h * h) * xp.exp((h - y) * (h + y)), special.erfc(x))


def _sinc(x: Any) -> Any:
    xp = array_namespace(x)
    return xp.where(x == 0, 1.0, xp.sin(x) / xp.where(x == 0, 1.0, x))


def _in_float64(f: Callable[..., Any]) -> Callable[..., Any]:
    """f(x) or f(n, x) computed in float64, with the type of x."""

    def wide(*arguments: Any) -> Any:
        xp, x = array_namespace(*arguments), arguments[-1]
        value = f(*arguments[:-1], xp.asarray(x, dtype=xp.float64))
        return value.astype(x.dtype) if hasattr(x, "dtype") and x.dtype.kind == "f" else value

    return wide


def _spherical_jn(n: float, x: Any) -> Any:
    """Near 0 the first two terms of its series."""
    xp, small = array_namespace(x), abs(x) < 1e-4
    y = xp.where(small, x, 0.0)
    series = 1 - y * y / (4 * n + 6)
    for m in range(1, int(n) + 1):
        series = series * (y / (2 * m + 1))
    return xp.where(small, series, _library(x).spherical_jn(int(n), xp.where(small, 1.0, x)))


def _binomial(n: Any, k: Any) -> Any:
    """The product of (n - j)/(j + 1), whose first factors are whole numbers."""
    xp = array_namespace(n, k)
    least = xp.minimum(k, n - k)
    value = xp.where(least < 0, 0.0, 1.0)
    for j in range(int(xp.max(least, initial=0.0))):
        more = xp.where(value < 1e290, value * (n - j) / (j + 1), value / (j + 1) * (n - j))
        value = xp.where(j < least, more, value)
    return value


def _polynomial(t: Any, coefficients: tuple[float, ...]) -> Any:
    value = 0.0
    for c in reversed(coefficients):
        value = value * t + c
    return value


def _lambertw(x: Any, branch: int = 0) -> Any:
    """Near the branch point -1/e its series, near 0 on the lower branch steps of Newton for w + log(-w) = log(-x)."""
    from odesim.runtime.special import BRANCH, E

    xp = array_namespace(x)
    w = _library(x).lambertw(x, branch)
    w = xp.where(w.imag == 0, w.real, float("nan"))
    near = x + ONE_OVER_E < 0.02
    distance = xp.where(near, (xp.where(near, x, 0.0) + ONE_OVER_E) + ONE_OVER_E_TAIL, 0.0)
    p = (2 * branch + 1) * xp.sqrt(2 * E * xp.where(distance >= 0, distance, float("nan")))
    series = p * _polynomial(p, BRANCH) - 1
    w = xp.where(near, series, w)
    if branch == 0:
        return w
    tiny = (x < 0) & (x > -1e-290)
    log = xp.log(xp.where(tiny, -x, 1e-300))
    low = log
    for _ in range(5):
        low = low - (low + xp.log(-low) - log) / (1 + 1 / low)
    return xp.where(tiny, low, w)


def _inverse(a: Any) -> Any:
    """The inverses of matrices (..., K, K); of one that is singular to rounding all entries are nan (runtime.inverse)."""
    xp = array_namespace(a)
    try:
        x = xp.linalg.inv(a)
        if a.shape[-1] == 1:
            return x
        size, largest = xp.abs(x), xp.max(xp.abs(x), axis=-1)
        worst = xp.max((size @ (xp.abs(a) @ largest[..., None]))[..., 0] / largest, axis=-1)[..., None, None]
        invertible = 1 + 1 / (LOST * worst) > 1
        return xp.where(invertible & ~_has_grown(xp, a, x) if a.shape[-1] > SMALL else invertible, x, xp.nan)
    except xp.linalg.LinAlgError:
        if a.ndim == 2:
            return xp.full(a.shape, xp.nan)
        return xp.stack([_inverse(one) for one in a])


def _has_grown(xp: Any, a: Any, x: Any) -> Any:
    """runtime.inverse.has_grown for matrices (..., K, K): (..., 1, 1)."""
    k = xp.arange(a.shape[-1])
    v = (xp.max(xp.abs(a), axis=-1) * (1.0 + 0.0625 * (k * k % 11)).astype(a.dtype))[..., None]
    size = xp.abs(a) @ (xp.abs(x) @ v)
    error = xp.abs(a @ (x @ v) - v)
    return xp.any(size + error / GROWN > size, axis=(-2, -1), keepdims=True)


SPECIAL: dict[str, Callable[..., Any]] = {
    "erf": lambda x: _library(x).erf(x),
    "erfc": _in_float64(_erfc),
    "lambertw": _in_float64(_lambertw),
    "lambertw_lower": _in_float64(lambda x: _lambertw(x, -1)),
    "sinc": _sinc,
    "spherical_jn": _spherical_jn,
    "binomial": _binomial,
    "inverse": _inverse,
}
"""{name in generated code: function}."""
