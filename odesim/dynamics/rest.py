"""`odesim.rest`: the states at which a model rests, how stable each is, and how often it was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from odesim.api.ensemble_request import choose_members
from odesim.api.integrate import integrate
from odesim.api.request import span_of_steps
from odesim.base.arrays import Array
from odesim.base.datasets import with_accessor
from odesim.base.errors import ParamError, no_such
from odesim.base.options import Values
from odesim.dynamics.field import LOSS, MOST_STATES, Field, make_field, with_loss
from odesim.dynamics.large import MOST_LARGE, LargeRoot, find_large_root
from odesim.dynamics.leading import LEADING, LeadingSpectrum, leading_spectrum
from odesim.dynamics.newton import Root, Spectrum, find_root, size_of, spectrum_of
from odesim.inputs.arguments import check_arguments
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.run.problem import dimensions
from odesim.symbolic.parts import key_indices
from odesim.symbolic.system import System
from odesim.targets.observe import Observer

if TYPE_CHECKING:
    import xarray

LOOKED_AT = 201
"""Times of a run at which its speed is looked at."""
RESERVED = ("rest", "mode", "eigenvalue_real", "eigenvalue_imag", "stability", "index", "times", "residual")
NEAR = 1e-6
"""The distance, relative to the largest number and the unit, within which two states are one."""


@dataclass
class Rest:
    """A rest state, its eigenvalues, and how many starts led to it."""

    root: Root | LargeRoot
    spectrum: Spectrum | LeadingSpectrum
    times: int = 1


@check_arguments
def rest(
    model: str | PathLike[str] | System,
    *,
    params: Mapping[str, ArrayLike] | None = None,
    initial: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    steps: int | None = None,
    vary: Mapping[str, Any] | None = None,
    grid: Mapping[str, Any] | None = None,
    zipped: Mapping[str, Any] | None = None,
    members: int | None = None,
    design: str = "random",
    method: str = "auto",
    rtol: float = 1e-6,
    seed: int = 0,
    up_to: str = "",
) -> xarray.Dataset:
    """The rest states of a model, where its right-hand side is 0, or of a Map those that an update leaves.

    Parameters
    ----------
    model, params, initial, sizes
        As of `integrate`.
    span, steps, method, rtol
        Of a run, where neither vary nor grid nor zipped is given: the search begins at its start, its end, and where it is slowest in
        between, so that the plateaus of a training lead to their saddles.
    vary, grid, zipped, members, design, seed
        Initial values where the search begins, as the members of `ensemble` have them.
    up_to : str
        An index; states that differ by the order along it only are one.

    Returns
    -------
    xarray.Dataset
        The states (rest, index names); times, how many starts led there; stability: stable, saddle, unstable or neutral (nothing grows, and
        something neither grows nor decays); index, how many eigenvalues grow; eigenvalue_real and eigenvalue_imag (rest, mode), the fastest
        growing first, of a Map the multipliers; residual, the largest number of the right-hand side there; the observables, and the loss of
        a gradient flow; one whose name stands here is rest_NAME. attrs: starts, failed (starts that led nowhere), outside (rest states
        outside the sets that states assume, which are left out).

    Raises
    ------
    OdesimError
        Where the right-hand side depends on t or has noise, for more than 200000 states, and of more than 2000 where laws hold more than
        64 numbers.

    Notes
    -----
    From each start Newton's method with the exact Jacobian, on the leaf of the start: the linear invariants, and those declared constant,
    keep their values. Eigenvalues are those on the leaf, NaN beyond its dimension. At a kink, where the Jacobian jumps, they and index are
    NaN, and stability is unknown.

    Of more than 2000 states Newton's equation is solved by sparse elimination, and only the laws that a model declares are kept. There are
    then 6 modes: the leading eigenvalues by Arnoldi's method, NaN where it finds none. index is NaN where all 6 grow and the others cannot
    be counted: they are where the Jacobian is blocks alone, or sparse and symmetric. stability is unknown where that says too little.

    Where the Jacobian of more than 5000 states is dense, or elimination would fill it up, there are products with it alone: Newton's
    equation is solved by least residuals (GCR), inexactly at first, and eigenvalues are those of Arnoldi's method, one where it does not
    find 6.

    Examples
    --------
    >>> rests = odesim.rest("joma.nonlinear", params={"mu": [2.0, 1.0]})
    >>> rests["v"].values.round(6).tolist(), rests["stability"].values.tolist()
    ([[2.0, 1.0]], ['stable'])
    """
    system = with_loss(load_model(model))
    times = span_of_steps(system, span, steps)
    values = Values(
        params or {}, initial or {}, sizes, times, vary=vary or {}, grid=grid or {}, zipped=zipped or {}, members=members, design=design
    )
    numbers = bind(system, params=params, initial=initial if not values.has_design else None, sizes=sizes, span=values.span, seed=seed)
    if values.has_design:
        field, starts = starts_of_members(system, values, seed)
    else:
        field = make_field(system, numbers, "rest states", MOST_LARGE)
        atol = 1e-9 * (1.0 if system.discrete else unit_of(field.layout.join(field.numbers.initial)))
        run = integrate(
            system,
            params=params,
            initial=initial,
            sizes=sizes,
            span=values.span,
            save=LOOKED_AT,
            method=method,
            rtol=rtol,
            atol=atol,
            seed=seed,
        )
        starts = slow_states(field, np.array([field.layout.join({name: v[k] for name, v in run.y.items()}) for k in range(len(run.t))]))
    return dataset(field, *distinct(field, starts, Order(field, up_to) if up_to else None))


def starts_of_members(system: System, values: Values, seed: int) -> tuple[Field, Array]:
    """The field, and the initial values of all members (N, n). Raises ParamError where more than these differ."""
    chosen = choose_members(system, values, seed)
    field = make_field(system, chosen.shared, "rest states", MOST_LARGE)
    params, initial = chosen.chunk(0, chosen.source.count)
    if params:
        raise ParamError(
            f"starts are initial values, and {next(iter(params))} is a parameter: find the rest states of each value by itself"
        )
    rows = {name: np.broadcast_to(value, (chosen.source.count, *np.shape(value))) for name, value in chosen.shared.initial.items()}
    starts = np.empty((chosen.source.count, field.n))
    for name, view in field.layout.split(starts).items():
        view[...] = initial.get(name, rows[name])
    return field, starts


def slow_states(field: Field, path: Array) -> Array:
    """Of the states (T, n) of a run the first, the last, and those that are slower than the ones beside them."""
    path = path[np.isfinite(path).all(axis=1)]
    with np.errstate(all="ignore"):
        speeds = np.array([np.linalg.norm(field(y)) for y in path])
    inner = np.flatnonzero((speeds[1:-1] < speeds[:-2]) & (speeds[1:-1] <= speeds[2:])) + 1
    inner = inner[speeds[inner] > 1e-6 * np.max(speeds)]  # where a run has come to rest, its speed is that of rounding
    return np.asarray(path[[*dict.fromkeys((0, *inner.tolist(), len(path) - 1))]])


class Order:
    """The order along one index, up to which states are one. Raises ParamError where the equations have not this symmetry."""

    def __init__(self, field: Field, index: str) -> None:
        self.field, self.index = field, index
        layout, keys = field.layout, dict(zip(field.system.states, map(key_indices, field.system.equations), strict=True))
        names = {i.name for indices in keys.values() for i in indices}
        if index not in names:
            raise ParamError(no_such("index of a state", index, sorted(names), field.system.name))
        count = next(layout.shapes[k][n] for k, at in enumerate(keys.values()) for n, i in enumerate(at) if i.name == index)
        # the places of each entry along the index in the vector (entries, numbers of an entry)
        blocks = layout.split(np.arange(layout.size))
        along = {name: [i.name for i in at].index(index) for name, at in keys.items() if index in (i.name for i in at)}
        self.places = np.hstack([np.moveaxis(blocks[name], axis, 0).reshape(count, -1) for name, axis in along.items()])
        self.check(field.layout.join(field.numbers.initial))

    def check(self, y: Array) -> None:
        """Raises ParamError where the equations have not this symmetry beside y (n,): a condition may break it at other states."""
        field, count = self.field, len(self.places)
        y = y + 0.1 * np.random.default_rng(0).random(len(y))
        f = field(y)
        for order in (np.roll(np.arange(count), 1), [*range(count)[:2][::-1], *range(2, count)]):  # which generate all others
            turned = np.arange(len(y))
            turned[self.places] = self.places[order]
            if not np.allclose(field(y[turned]), f[turned], rtol=1e-9, atol=1e-12 * max(1.0, float(np.max(np.abs(f))))):
                raise ParamError(
                    f"{field.system.name} is not the same in another order along {self.index}: its states cannot be counted up to it"
                )

    def nearest(self, a: Array, b: Array) -> Array:
        """b (n,) in the order along the index in which it is nearest to a (n,)."""
        cost = ((a[self.places][:, None] - b[self.places][None]) ** 2).sum(axis=2)
        out = b.copy()
        out[self.places] = b[self.places][linear_sum_assignment(cost)[1]]
        return out


def unit_of(states: Array) -> float:
    """The size of states, any array of their numbers: 1, or their largest number where that is less and not 0."""
    return min(1.0, float(np.max(np.abs(states)))) or 1.0


def distinct(field: Field, starts: Array, order: Order | None) -> tuple[list[Rest], Mapping[str, int]]:
    """The rest states to which starts (N, n) lead, each once, and how many starts there were, led nowhere, and led outside."""
    rests: list[Rest] = []
    counts = {"starts": len(starts), "failed": 0, "outside": 0}
    unit = unit_of(starts)
    for start in starts:
        root = (find_root if field.n <= MOST_STATES else find_large_root)(field, start, unit)
        if root is None or field.outside(root.y):
            counts["failed" if root is None else "outside"] += 1
            continue
        if order is not None:
            order.check(root.y)
        known = next((r for r in rests if is_same(r.root, root, order, unit)), None)
        if known is not None:
            known.times += 1
        else:
            discrete = field.system.discrete
            rests.append(Rest(root, leading_spectrum(root) if isinstance(root, LargeRoot) else spectrum_of(root, discrete=discrete)))
    return rests, counts


def is_same(a: Root | LargeRoot, b: Root | LargeRoot, order: Order | None, unit: float = 1.0) -> bool:
    """Whether two roots are one state. unit: a size of states."""
    y = b.y if order is None else order.nearest(a.y, b.y)
    return bool(np.max(np.abs(a.y - y)) <= NEAR * size_of(a.y, unit))


def labels_of(system: System) -> dict[str, str]:
    """{state, observable or index: its name in the Dataset}: the same, and with a _ more where the Dataset has that name already."""
    names = [*system.states, *system.observables, *(i.name for i in system.axes)]
    labels = dict[str, str]()
    for name in names:
        label = name
        while label in RESERVED or (label != name and label in names):
            label += "_"
        labels[name] = label
    return labels


def observed(field: Field, states: Sequence[Array]) -> Iterator[tuple[str, Array]]:
    """(observable, its values (R, *shape)) at these states."""
    y = field.layout.split(np.array(states).reshape(-1, field.n))

    def slopes(t: float, now: Mapping[str, Array]) -> Mapping[str, Array]:
        state = field.layout.join(now)
        return field.layout.split(field(state) + (state if field.system.discrete else 0.0))

    if states:
        times = np.full(len(states), field.numbers.t0)
        yield from Observer(field.system)(times, y, field.numbers.sizes, field.numbers.params, slopes).items()


def dataset(field: Field, rests: list[Rest], counts: Mapping[str, int]) -> xarray.Dataset:
    """Rest states as a Dataset: by their loss where there is one, else by how many eigenvalues grow."""
    import xarray as xr

    values = dict(observed(field, [r.root.y for r in rests]))
    ranks = [(float(np.nan_to_num(r.spectrum.growing, nan=np.inf)), -r.times) for r in rests]
    by_loss = np.ravel(values[LOSS]) if LOSS in values and values[LOSS].ndim == 1 else np.zeros(len(rests))
    order = sorted(range(len(rests)), key=lambda k: (round(float(by_loss[k]), 12), *ranks[k]))
    rests = [rests[k] for k in order]
    labels = labels_of(field.system)
    dims, data = {name: tuple(labels[d] for d in axes) for name, axes in dimensions(field.system).items()}, dict[str, Any]()
    for name, array in field.layout.split(np.array([r.root.y for r in rests]).reshape(-1, field.n)).items():
        data[labels[name]] = (("rest", *dims[name]), array)
    for name, array in values.items():
        axes = dims[name] if len(dims[name]) == array.ndim - 1 else tuple(f"{name}_{k}" for k in range(array.ndim - 1))
        data[labels[name]] = (("rest", *axes), array[order])
    large = field.n > MOST_STATES
    modes = np.full((2, len(rests), LEADING if large else field.n), np.nan)
    for k, r in enumerate(rests):
        modes[:, k, : len(r.spectrum.values)] = r.spectrum.values.real, r.spectrum.values.imag
    data |= {"eigenvalue_real": (("rest", "mode"), modes[0]), "eigenvalue_imag": (("rest", "mode"), modes[1])}
    data["stability"] = ("rest", np.array([r.spectrum.stability for r in rests], "U8"))
    growing = np.array([r.spectrum.growing for r in rests], np.float64)  # NaN is not known
    data["index"] = ("rest", growing if large or np.isnan(growing).any() else growing.astype(np.int64))
    data["times"] = ("rest", np.array([r.times for r in rests], np.int64))
    data["residual"] = ("rest", np.array([r.root.residual for r in rests], np.float64))
    about = {
        "model": field.system.name,
        "discrete": int(field.system.discrete),
        "rest_states": " ".join(labels[name] for name in field.layout.names),
        **counts,
    }
    return with_accessor(xr.Dataset(data, coords={"rest": np.arange(len(rests))}, attrs=about))
