"""`odesim.branch`: rest states along one parameter: folds, branch points, Hopf points, and how stable each part is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, count
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sympy import Expr, Float, Indexed, S, Symbol

from odesim.api.integrate import integrate
from odesim.base.arrays import Array, entry
from odesim.base.datasets import with_accessor
from odesim.base.errors import ParamError, no_such
from odesim.dynamics.continuation import Curve, Point, Special, branches_at, is_near, walk
from odesim.dynamics.field import Field, check_defaults, make_field, with_loss
from odesim.dynamics.newton import find_root
from odesim.dynamics.rest import Order, observed
from odesim.inputs.arguments import check_arguments
from odesim.inputs.bind import Numbers, bind
from odesim.inputs.registry import load_model
from odesim.run.problem import dimensions
from odesim.store.curves import COLUMN
from odesim.store.export import place
from odesim.symbolic.indices import IndexedBase, base_name
from odesim.symbolic.layered import changed
from odesim.symbolic.parts import Param
from odesim.symbolic.system import System
from odesim.transforms.sensitivity import used_names

if TYPE_CHECKING:
    import xarray

PARTS = ("rest", "unit", "entry")
"""Of an array one of whose entries is followed: the others, where it is, and the entry."""
MOST_BRANCHES = 20
STEPS = 200
"""The longest step is the span by this."""
ASIDE = 0.01
"""How far beside a branch point others are looked for, as a part of the span and of the largest number."""
NOT_ALONE = 1e-9
"""The smallest singular value of the derivatives, as a part of the largest, at which a rest state is not the only one near it."""
APART = 1e-7
"""The least angle between branches that cross: small where states are far smaller than the range; points are exact to less."""
LEAVING = 10
"""The first points of a branch, near the branch point at which it begins: only after them a branch point that is met ends it."""


@dataclass
class Branch:
    """The points of a branch in order, and its special points."""

    points: list[Point]
    specials: list[Special]


@check_arguments
def branch(
    model: str | PathLike[str] | System,
    name: str,
    span: tuple[float, float],
    *,
    params: Mapping[str, ArrayLike] | None = None,
    initial: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    most_points: int = 1000,
    method: str = "auto",
    rtol: float = 1e-6,
    seed: int = 0,
    up_to: str = "",
) -> xarray.Dataset:
    """The rest states of a model along one of its parameters, through folds and onto the branches that cross.

    Parameters
    ----------
    model, params, initial, sizes, method, rtol, seed
        As of `integrate`: it starts where a run with the parameter at span[0] comes to rest.
    name : str
        The parameter, of an array an entry: "mu[0]"; where it has one only, "mu" will do.
    span : (float, float)
        From where to where it goes; the first may be the larger one.
    most_points : int
        Of a branch.
    up_to : str
        An index; branches that differ by the order along it only are followed once.

    Returns
    -------
    xarray.Dataset
        The parameter and the states (point, index names), branch (its number), growing (how many eigenvalues grow: 0 is stable), eigenvalue
        (the largest real part), and the observables that are expressions, with the loss of a gradient flow; one whose name is taken is
        NAME_. Special points: kind (special,), fold, branch or hopf; special_NAME of parameter, states and observables;
        special_branch; frequency, 2 pi over the period of what begins at a Hopf point. Of its orbit: lyapunov, the first Lyapunov
        coefficient (below 0 it attracts), side (1: it exists above the parameter of the point, -1: below) and amplitude_NAME, half the
        range of a state by the root of the distance from there. attrs: parameter.

    Raises
    ------
    OdesimError
        For a Map, a parameter that is no real number, what `rest` refuses, and where the run comes to no rest, or to one on a kink.

    Notes
    -----
    Pseudo-arclength with the exact derivatives by states and parameter. Linear invariants keep their values. A branch ends where a state
    leaves the set that its symbol assumes.

    Examples
    --------
    >>> branch = odesim.branch("hopfield.potts", "c", (3, 10), up_to="k")
    >>> branch["kind"].values.tolist(), branch["special_c"].values.round(6).tolist()
    (['branch', 'fold'], [8.0, 4.249799])
    """
    system, (begin, end) = load_model(model), map(float, span)
    low, high = sorted((begin, end))
    if not low < high:
        raise ParamError(f"span is the range of {name}, two different numbers, not {begin:g} and {end:g}")
    values: dict[str, Any] = {"initial": initial, "sizes": sizes, "seed": seed}
    curve, start, name, unit = curve_of(with_loss(system), name, (begin, end), method=method, rtol=rtol, params=params, **values)
    low, high = low / unit, high / unit
    order = Order(curve.field, up_to) if up_to else None
    forward = np.eye(len(start))[-1] * (1.0 if begin < end else -1.0)
    first = curve.point(start, forward, forward)
    if first is None:
        raise ParamError(f"{system.name}: the rest state at {name} = {begin:g} has no branch; begin at another {name}")
    if np.linalg.matrix_rank(first.jacobian, tol=NOT_ALONE * float(np.linalg.norm(first.jacobian, 2))) < len(start) - 1:
        raise ParamError(
            f"{system.name}: the rest state at {name} = {begin:g} is one of a whole line of them, and branches are those of single ones"
        )
    todo, done = [[first]], list[Branch]()
    while todo and len(done) < MOST_BRANCHES:
        points = todo.pop(0)
        if not low <= points[-1].z[-1] <= high or curve.field.outside(points[-1].z):
            continue
        if len(points) > 1:
            most = APART * float(np.linalg.norm(points[-1].z - points[0].z))
            if any(is_on(points[-1], other, order, most) for other in done):
                continue
        followed = Branch(points, [])
        for point, specials in walk(points[-1], low, high, (high - low) / STEPS, most_points):
            known = [s.point for b in done for s in b.specials if s.kind == "branch"]
            new = [s for s in specials if not any(distance(p, s.point, order) <= 1e-4 * (high - low) for p in known)]
            followed.specials += [s for s in new if not curve.field.outside(s.point.z)]
            if curve.field.outside(point.z):  # where the equations may be others: sqrt(x**2) of a positive x was written as x
                break
            if order is not None:
                order.check(point.z)
            followed.points.append(point)
            before = followed.points[-2]  # a branch that begins at a point near it goes away from it
            near = [p for p in known if distance(p, point, order) <= (high - low) / STEPS]
            met = len(new) < len(specials) or any(distance(p, point, order) < distance(p, before, order) for p in near)
            if met and len(followed.points) > LEAVING:
                break
        done.append(followed)
        for special in followed.specials:
            if special.kind == "branch":
                size = ASIDE * min(high - low, max(1.0, float(np.max(np.abs(special.point.z)))))
                todo += [[special.point, beside] for beside in branches_at(special, size)]
    return dataset(system, name, curve.field, done, unit)


def curve_of(
    system: System, name: str, span: tuple[float, float], *, method: str, rtol: float, **values: Any
) -> tuple[Curve, Array, str, float]:
    """The curve of rest states with the parameter as its last state, one of them (n + 1,), what the parameter is called, and its unit.

    The unit, a power of 2, makes a range that is small beside the states about as long as these: else all ways are along the states, and
    those of two branches that cross look alike. Raises an OdesimError.
    """
    if system.discrete:
        raise ParamError(f"branches are those of differential equations, and {system.name} is a Map")
    params, begin = dict(values.pop("params") or {}), span[0]
    array, at, name = entry_of(system, name, params, values)

    def bound(number: float) -> dict[str, Any]:
        """The parameters where the one that is followed has this value."""
        if not at:
            return {**params, array: number}
        whole = np.array(bind(system, **values, params=params).params[array], np.float64)
        whole[at] = number
        return {**params, array: whole}

    numbers, moved = (bind(system, **values, params=bound(end)) for end in span)  # its domain and the constraints of the model
    check_defaults(system, numbers, moved, [array])
    values["params"] = bound(begin)
    plain = make_field(system, numbers, "branches")
    run = integrate(system, **values, method=method, rtol=rtol)
    last = plain.layout.join(run.final)
    root = find_root(plain, last) if np.isfinite(last).all() else None
    if root is None:
        raise ParamError(
            f"{system.name}: the run at {name} = {begin:g} leads to no rest state; give other starts, or begin at another {name}"
        )
    if root.kink:  # all that follows may be one, with the eigenvalues of one side
        raise ParamError(
            f"{system.name}: the rest state at {name} = {begin:g} lies on a kink, where the Jacobian jumps: give other starts, or begin at "
            f"another {name}"
        )
    weights = [np.empty((0, plain.n))]
    moved = root.y + np.random.default_rng(0).uniform(0.1, 1.0, plain.n) * (1 + np.abs(root.y))
    for law in plain.constants(root.y):
        weights.append(plain.slopes(law, root.y))
        if not np.allclose(weights[-1], plain.slopes(law, moved), rtol=1e-12, atol=0):
            raise ParamError(
                f"{system.name} declares that {law.name!r} holds its value, and branches are followed on the leaves of linear laws only"
            )
    natural = max(1.0, float(np.max(np.abs(root.y))))
    unit = 2.0 ** min(0, math.floor(math.log2(abs(span[1] - begin) / natural)))
    field = with_parameter(system, array, at, numbers, unit)
    z = field.layout.join({**plain.layout.split(root.y), field.layout.names[-1]: begin / unit})
    return Curve(field, z, np.vstack(weights)), z, name, unit


def entry_of(system: System, text: str, params: dict[str, Any], values: dict[str, Any]) -> tuple[str, tuple[int, ...], str]:
    """The parameter that text names, the place of the number in it, and what that is called: mu[0]. Raises ParamError."""
    real = {p.name: p for p in system.params if not p.integer}
    match = COLUMN.fullmatch(text)
    array, index = (match[1].strip(), match[2]) if match else (text, "")
    if array not in real:
        named = [entry(name, [0] * len(p.shape)) for name, p in real.items()]
        raise ParamError(no_such("real parameter", text, named, system.name))
    if not (real[array].shape or index):
        return array, (), array
    shape = np.shape(bind(system, **values, params=params).params[array])
    if not index and math.prod(shape) == 1:
        return array, (0,) * len(shape), array
    at = place(array, index, shape)
    return array, at, entry(array, at)


def with_parameter(system: System, name: str, at: tuple[int, ...], numbers: Numbers, unit: float) -> Field:
    """The field with a parameter, in this unit, as one more state, the last, which rests: so its exact Jacobian has the derivatives by it.

    at: of an array the place of the number. The array p is then p_rest, which is 0 there, with the state times p_unit, which is the unit
    there.
    """
    param, taken = system.param(name), used_names(system)
    params = {key: value for key, value in numbers.params.items() if key != name}
    more: tuple[Param, ...] = ()
    symbol: Any = param.symbol
    value = np.array(numbers.params[name], np.float64)
    arrays: list[IndexedBase] = []
    if at:
        labels = [next(x for x in chain([f"{name}_{part}"], (f"{name}_{part}{k}" for k in count())) if x not in taken) for part in PARTS]
        units, rest = np.zeros_like(value), value.copy()
        units[at], rest[at], value = unit, 0.0, value[at]
        arrays = [IndexedBase(label, shape=param.shape) for label in labels[:2]]
        symbol = Symbol(labels[2], real=True)
        more = tuple(Param(x, 0.0, S.Reals, "what an entry of an array and the others are") for x in arrays)
        params |= {labels[0]: rest, labels[1]: units}
    value = value / unit

    def is_entry(e: Any) -> bool:
        return isinstance(e, Indexed) and base_name(e) == name

    def change(e: Any) -> Any:
        if not arrays:
            return e if unit == 1 else changed(e, lambda part, _: part.xreplace({symbol: unit * symbol}))
        return changed(e, lambda part, _: part.replace(is_entry, lambda x: arrays[0][x.indices] + symbol * arrays[1][x.indices]))

    extended = replace(
        system,
        equations={**{key: change(e) for key, e in system.equations.items()}, symbol: S.Zero},
        params=tuple(p for p in system.params if p.name != name) + more,
        initial={key: change(S(e)).xreplace({symbol: Float(value)}) for key, e in system.initial.items()} | {symbol: Float(value)},
        invariants=(),
        events=(),
        closed_forms=(),
        constraints=(),
        observables={key: change(e) for key, e in system.observables.items() if isinstance(e, Expr)},
        display={},
        views=(),
        growth=None,
    )
    return Field(extended, replace(numbers, params=params, initial={**numbers.initial, symbol.name: np.asarray(value)}))


def distance(a: Point, b: Point, order: Order | None) -> float:
    """The distance between two points, in the nearest order along an index."""
    return float(np.linalg.norm(a.z - (b.z if order is None else order.nearest(a.z, b.z))))


def is_on(point: Point, other: Branch, order: Order | None, most: float) -> bool:
    """Whether a point lies on a branch that has been followed: what that branch has in the plane through the point is the point.

    most: as of is_near.
    """
    z = np.array([p.z for p in other.points])
    nearest = int(np.argmin([np.linalg.norm(p - (point.z if order is None else order.nearest(p, point.z))) for p in z]))
    mine, close = point.z if order is None else order.nearest(z[nearest], point.z), other.points[nearest]
    there = close.curve.point(close.z + ((mine - close.z) @ close.tangent) * close.tangent, close.tangent)
    return there is not None and is_near(there, replace(point, z=mine), most)


def dataset(system: System, name: str, field: Field, branches: list[Branch], unit: float) -> xarray.Dataset:
    """Branches as a Dataset. unit: of the parameter in the field."""
    import xarray as xr

    dims, data, parameter = dimensions(field.system), dict[str, Any](), field.layout.names[-1]
    points = [(k, p) for k, b in enumerate(branches) for p in b.points]
    specials = [(k, s) for k, b in enumerate(branches) for s in b.specials]
    seen = dict[str, Any]()
    for prefix, dim, rows in (("", "point", [p.z for _, p in points]), ("special_", "special", [s.point.z for _, s in specials])):
        for state, values in field.layout.split(np.array(rows).reshape(-1, field.n)).items():
            label, values = (name, unit * values) if state == parameter else (state, values)
            data[f"{prefix}{label}"] = ((dim, *dims.get(state, ())), values)
        for observable, values in observed(field, rows):
            seen[f"{prefix}{observable}"] = ((dim, *dims[observable]), values)
    for label, dim, numbers in (
        ("branch", "point", [k for k, _ in points]),
        # a branch that begins at another one begins where an eigenvalue is 0: its stability is that of what follows
        ("growing", "point", [(b.points[1] if k and p is b.points[0] else p).growing for k, b in enumerate(branches) for p in b.points]),
        ("special_branch", "special", [k for k, _ in specials]),
    ):
        data[label] = (dim, np.array(numbers, np.int64))
    data["eigenvalue"] = ("point", np.array([p.eigenvalues[0].real for _, p in points]))
    data["kind"] = ("special", np.array([s.kind for _, s in specials], "U6"))
    data["frequency"] = ("special", np.array([s.frequency for _, s in specials], np.float64))
    orbits = [orbit_of(s) if s.kind == "hopf" else Orbit(np.nan, np.nan, np.full(field.n, np.nan)) for _, s in specials]
    data["lyapunov"] = ("special", np.array([o.lyapunov for o in orbits], np.float64))
    data["side"] = ("special", np.array([o.side for o in orbits], np.float64))
    for state, values in field.layout.split(np.array([o.amplitudes for o in orbits]).reshape(-1, field.n)).items():
        if state != parameter:
            data[f"amplitude_{state}"] = (("special", *dims.get(state, ())), values / math.sqrt(unit))
    for observable, column in seen.items():
        label = observable
        while label in data or label in ("point", "special", *(i.name for i in system.axes)):
            label += "_"
        data[label] = column
    about = {"model": system.name, "parameter": name, "rest_branches": " ".join(n for n in field.layout.names if n != parameter)}
    return with_accessor(xr.Dataset(data, attrs=about))


BESIDE = 1e-4
"""How far beside a Hopf point derivatives of the exact Jacobian are taken, relative to the largest number and 1: the second difference has
an error of 1e-8 by truncation, and as much by rounding."""


@dataclass(frozen=True)
class Orbit:
    """The first orbit at a Hopf point.

    lyapunov: the first Lyapunov coefficient, for an eigenvector of length 1; below 0 the orbit attracts in its plane. side: 1 where it
    exists above the parameter of the point, -1 below. amplitudes (n + 1,): half the range of each state, by the root of the distance
    from that parameter; 0 for the parameter. NaN where there is no such orbit.
    """

    lyapunov: float
    side: float
    amplitudes: Array


def orbit_of(special: Special) -> Orbit:
    """The Orbit at a Hopf point, by the normal form (Kuznetsov, Elements of applied bifurcation theory, 2004, eq. 3.20).

    With A q = i w q, A^T p = -i w p, |q| = 1 and <p, q> = 1, and the forms B and C of the second and third derivatives,
    l = Re(<p, C(q, q, q*)> - 2 <p, B(q, A^-1 B(q, q*))> + <p, B(q*, (2 i w - A)^-1 B(q, q))>) / (2 w).
    """
    point, w = special.point, special.frequency
    curve, z = point.curve, point.z
    inside = curve.inside
    h = BESIDE * max(1.0, float(np.max(np.abs(z))))

    def matrix(x: Array) -> Array:
        return np.asarray(curve.jacobian(x)[: inside.shape[1], :-1] @ inside)

    def shifted(u: Array) -> tuple[Array, Array]:
        """The Jacobians on both sides of the point along a real u."""
        step = np.append(h * (inside @ u), 0.0)
        return matrix(z + step), matrix(z - step)

    def second(u: Array, v: Array) -> Array:
        """B(u, v)."""
        parts = [(np.subtract(*shifted(part)) / (2 * h)) @ v for part in (u.real, u.imag)]
        return np.asarray(parts[0] + 1j * parts[1])

    A = matrix(z)

    def along(u: Array) -> Array:
        """The second derivative of the Jacobian along a real u."""
        return np.asarray((sum(shifted(u)) - 2 * A) / h**2)

    def closest(M: Array, value: complex) -> Array:
        values, vectors = np.linalg.eig(M)
        return np.asarray(vectors[:, np.argmin(np.abs(values - value))])

    q, p = closest(A, 1j * w), closest(A.T, -1j * w)
    q = q / np.linalg.norm(q)
    p = p / np.conj(np.vdot(p, q))
    # C(q, q, q*) = (C(a, a) + C(b, b)) q for q = a + i b
    cubic = (along(q.real) + along(q.imag)) @ q
    eye = np.eye(len(A))
    l1 = np.vdot(p, cubic - 2 * second(q, np.linalg.solve(A, second(q, q.conj())).astype(complex)))
    l1 += np.vdot(p, second(q.conj(), np.linalg.solve(2j * w * eye - A, second(q, q))))
    lyapunov = float(l1.real) / (2 * w)
    beside = [curve.point(z + side * h * point.tangent, point.tangent) for side in (1, -1)]
    if lyapunov == 0 or any(b is None for b in beside):
        return Orbit(lyapunov, np.nan, np.full(len(z), np.nan))
    (up, p1), (down, p0) = ((float(b.eigenvalues[np.argmin(np.abs(b.eigenvalues - 1j * w))].real), float(b.z[-1])) for b in beside if b)
    if p1 == p0:
        return Orbit(lyapunov, np.nan, np.full(len(z), np.nan))
    crossing = (up - down) / (p1 - p0)
    # r' = crossing (parameter - that of the point) r + w l r^3
    size = 2 * np.sqrt(abs(crossing / (w * lyapunov)))
    return Orbit(lyapunov, float(-np.sign(crossing * lyapunov)), np.append(size * np.abs(inside @ q), 0.0))
