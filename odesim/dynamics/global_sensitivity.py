"""`odesim.sensitivity` and `odesim.screening`: on which parameters and initial values a result depends, over whole ranges of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from odesim.api.ensemble import ensemble
from odesim.api.ensemble_request import choose_members, label_of
from odesim.api.request import span_of_steps
from odesim.base.arrays import Array, entry
from odesim.base.datasets import with_accessor
from odesim.base.errors import ParamError, SolveError, counted, no_such, value_text
from odesim.base.options import MAX_MEMBERS, Values
from odesim.ensembles.design import LEAST, Random, check_names, quantiles
from odesim.ensembles.sequences import sequence
from odesim.inputs.arguments import check_arguments
from odesim.inputs.grammar import parse_value
from odesim.inputs.registry import load_model
from odesim.inputs.schema import make_schema
from odesim.store.curves import COLUMN
from odesim.store.export import entries, place
from odesim.symbolic.system import System

if TYPE_CHECKING:
    import xarray

BOOTSTRAPS = 200
"""Resamplings of the rows of a design: the error of an error is 5 % then."""
LEVELS = 4
"""Levels of the grid on which paths of a screening move; a step is two of their distances (Morris 1991, section 4)."""
FLAT = 10.0
"""The standard deviation of a result, in relative tolerances of its largest value, below which it is the error of the runs."""
INNER = 0.005
"""The part that a screening leaves out at either side of a normal distribution, which has no ends."""
FINISHED = ("ok", "event")


@check_arguments
def sensitivity(
    model: str | PathLike[str] | System,
    *,
    vary: Mapping[str, Any],
    of: str | Iterable[str],
    samples: int = 1024,
    params: Mapping[str, ArrayLike] | None = None,
    initial: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    steps: int | None = None,
    method: str = "auto",
    rtol: float = 1e-6,
    atol: float = 1e-9,
    events: str | Iterable[str] = (),
    threads: int = 1,
    seed: int = 0,
) -> xarray.Dataset:
    """Sobol's indices: which parts of the variance of a result come from which numbers.

    Parameters
    ----------
    model, params, initial, sizes, span, steps, method, rtol, atol, events, threads, seed
        As of `ensemble`.
    vary : {name: "uniform(a,b)", "loguniform(a,b)" or "normal(m,s)"}
        Ranges; each entry of an array is a factor of its own.
    of : str or list of str
        States and observables at the end of the run, of an array all entries, or one as "v[0]"; t_end; or NAME_t, the time at which an
        event first happens.
    samples : int
        Points, a power of 2: they give samples (factors + 2) runs.

    Returns
    -------
    xarray.Dataset
        (quantity, factor): first, the part of the variance that a factor explains alone; total, the part that would be left if all others
        were fixed; first_error and total_error, their standard errors by bootstrap, as if the points were independent: those of Sobol are
        nearer. mean and deviation (quantity,). NaN for a quantity that varies by no more than the errors of the runs.

    Raises
    ------
    OdesimError
        Where a run ends early or has no such value, since the indices would be those of other ranges, and for noise.

    References
    ----------
    Points of Sobol in twice as many dimensions as factors. Estimators: Saltelli et al. 2010, table 2: (b) for first, (f), of Jansen, for
    total, as in scipy.stats.sobol_indices.

    Examples
    --------
    >>> indices = odesim.sensitivity("joma.nonlinear", vary={"mu": "uniform(1,2)"}, of="v[0]", sizes={"M": 2}, samples=64)
    >>> indices["total"].sel(quantity="v[0]").values.round(1).tolist()  # v[0] rests at mu[0]
    [1.0, 0.0]
    """
    if samples < 2 or samples & (samples - 1):
        raise ParamError(f"samples is a power of 2, which points of Sobol fill evenly, such as 512 or 1024, not {samples}")
    study = make_study(model, Values(params or {}, initial or {}, sizes, span, steps, vary=vary), of, seed)
    d = len(study.factors)
    pairs = sequence("sobol", seed, 2 * d, samples, 0, samples)
    points = np.repeat(pairs[:, None, :d], d + 2, axis=1)  # of each pair: A, B, and A with one number of B for each factor
    points[:, 1] = pairs[:, d:]
    for i in range(d):
        points[:, 2 + i, i] = pairs[:, d + i]
    f = study.results(points.reshape(-1, d), of, events, threads, method=method, rtol=rtol, atol=atol)
    values = f.values.reshape(samples, d + 2, -1)
    first, total = indices_of(values)
    rng = np.random.default_rng(seed)
    again = np.array([indices_of(values[rng.integers(samples, size=samples)]) for _ in range(BOOTSTRAPS)])
    errors = again.std(axis=0, ddof=1)
    sampled = values[:, :2].reshape(2 * samples, -1)
    flat = sampled.std(axis=0) <= FLAT * rtol * np.max(np.abs(sampled), axis=0)
    tables = {"first": first, "total": total, "first_error": errors[0], "total_error": errors[1]}
    one = {"mean": sampled.mean(axis=0), "deviation": sampled.std(axis=0)}
    return dataset(study, f.labels, {name: np.where(flat[:, None], np.nan, v) for name, v in tables.items()}, one, "sobol", samples)


def indices_of(f: Array) -> tuple[Array, Array]:
    """First and total indices (Q, d) of results (N, d + 2, Q) at A, B, and A with one number of B."""
    f = f - f[:, :2].mean(axis=(0, 1))
    A, B, AB = f[:, 0], f[:, 1], f[:, 2:]
    variance = f[:, :2].var(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.mean(B[:, None] * (AB - A[:, None]), axis=0) / variance
        total = np.mean((A[:, None] - AB) ** 2, axis=0) / (2 * variance)
    return first.T, total.T


@check_arguments
def screening(
    model: str | PathLike[str] | System,
    *,
    vary: Mapping[str, Any],
    of: str | Iterable[str],
    paths: int = 20,
    params: Mapping[str, ArrayLike] | None = None,
    initial: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    steps: int | None = None,
    method: str = "auto",
    rtol: float = 1e-6,
    atol: float = 1e-9,
    events: str | Iterable[str] = (),
    threads: int = 1,
    seed: int = 0,
) -> xarray.Dataset:
    """The screening of Morris: which of many numbers matter at all, from few runs.

    Parameters
    ----------
    model, vary, of, params, initial, sizes, span, steps, method, rtol, atol, events, threads, seed
        As of `sensitivity`; a range of normal(m, s) is that of its quantiles from 0.5 to 99.5 %.
    paths : int
        A path changes one factor after the other, in random order, by two thirds of its range: there are paths (factors + 1) runs.

    Returns
    -------
    xarray.Dataset
        (quantity, factor): effect, the mean over the paths of the change of the result by the part of the range; size, that of absolute
        values; spread, the standard deviation, 0 where the effect is the same everywhere: large where it is nonlinear, or another factor
        changes it. effect_error and size_error are standard errors.

    Raises
    ------
    OdesimError
        As `sensitivity` does.

    References
    ----------
    Morris 1991, Technometrics 33, 161; size is mu* of Campolongo et al. 2007.

    Examples
    --------
    >>> indices = odesim.screening("joma.nonlinear", vary={"mu": "uniform(1,2)"}, of="v[0]", sizes={"M": 2}, paths=4)
    >>> indices["size"].sel(quantity="v[0]").values.round(2).tolist()
    [1.0, 0.0]
    """
    if paths < 2:
        raise ParamError(f"paths is at least 2, of which a spread is known, not {paths}")
    study = make_study(model, Values(params or {}, initial or {}, sizes, span, steps, vary=vary), of, seed)
    d, rng = len(study.factors), np.random.default_rng(seed)
    move = LEVELS / (2 * (LEVELS - 1))
    low = rng.integers(LEVELS // 2, size=(paths, d)) / (LEVELS - 1)
    down = rng.integers(2, size=(paths, d)).astype(bool)
    order = rng.permuted(np.tile(np.arange(d), (paths, 1)), axis=1)
    when = np.argsort(order, axis=1)  # at which step a factor moves
    moved = when[:, None, :] < np.arange(d + 1)[None, :, None]
    points = low[:, None] + move * (moved != down[:, None])
    f = study.results(
        np.where(study.endless, INNER + (1 - 2 * INNER) * points, points).reshape(-1, d),
        of,
        events,
        threads,
        method=method,
        rtol=rtol,
        atol=atol,
    )
    values = f.values.reshape(paths, d + 1, -1)
    changes = np.take_along_axis(np.diff(values, axis=1), when[:, :, None], axis=1)
    effects = changes / np.where(down, -move, move)[:, :, None]
    effect, size, spread = effects.mean(axis=0).T, np.abs(effects).mean(axis=0).T, effects.std(axis=0, ddof=1).T
    errors = {"effect_error": spread / np.sqrt(paths), "size_error": np.abs(effects).std(axis=0, ddof=1).T / np.sqrt(paths)}
    flat = values.reshape(-1, values.shape[2])
    one = {"mean": flat.mean(axis=0), "deviation": flat.std(axis=0)}
    return dataset(study, f.labels, {"effect": effect, "size": size, "spread": spread, **errors}, one, "morris", paths)


@dataclass(frozen=True)
class Results:
    """Quantities (Q) with their labels, of each member: values (N, Q)."""

    labels: list[str]
    values: Array


@dataclass(frozen=True)
class Study:
    """A System with the ranges of what varies; factors: a label for each number of a member."""

    system: System
    request: Values
    parts: tuple[Random, ...]
    factors: tuple[str, ...]
    seed: int

    @property
    def endless(self) -> Array:
        """Whether the range of a factor has no ends (d,)."""
        return np.repeat([part.function == "normal" for part in self.parts], [prod(part.shape) for part in self.parts])

    def results(self, u: Array, of: str | Iterable[str], events: str | Iterable[str], threads: int, **options: Any) -> Results:
        """What members at these places u (N, d) of their ranges, in [0, 1], come to. Raises an OdesimError where one has no such value."""
        if len(u) > MAX_MEMBERS:
            raise ParamError(f"{counted(len(u), 'run')} are more than {MAX_MEMBERS}")
        u = np.where(self.endless, np.clip(u, LEAST, 1 - LEAST), u)
        names = [of] if isinstance(of, str) else list(of)
        places = [COLUMN.fullmatch(name.strip()) for name in names]
        heads = [match[1].strip() if match else name for name, match in zip(names, places, strict=True)]
        observe = [name for name in dict.fromkeys(heads) if name in self.system.observables]

        def parts_of(members: xarray.Dataset) -> list[tuple[list[str], Array]]:
            return [quantity(self.system, members, head, match[2] if match else "") for head, match in zip(heads, places, strict=True)]

        parts_of(self.members(u[:1], observe, events, threads, **options))  # a wrong name is said after one run, not after all
        members = self.members(u, observe, events, threads, **options)
        check_ended(members)
        parts = parts_of(members)
        labels = [label for those, _ in parts for label in those]
        values = np.concatenate([rows for _, rows in parts], axis=1)
        missing = ~np.isfinite(values)
        if missing.any():
            k = int(np.argmax(missing.any(axis=0)))
            many = int(missing[:, k].sum())
            raise SolveError(
                f"{labels[k]} has no value in {many} of {counted(len(u), 'run')}, and without them these are other ranges: "
                "give narrower ones, or another span"
            )
        return Results(labels, values)

    def members(self, u: Array, observe: Sequence[str], events: str | Iterable[str], threads: int, **options: Any) -> xarray.Dataset:
        """The runs at these places u (N, d) of the ranges."""
        ends = np.cumsum([0, *(prod(part.shape) for part in self.parts)])
        tables = {
            part.name: quantiles(part.function, part.a, part.b, u[:, a:b]).reshape(len(u), *part.shape)
            for part, a, b in zip(self.parts, ends[:-1], ends[1:], strict=True)
        }
        request = self.request
        return ensemble(
            self.system,
            params=request.params,
            initial=request.initial,
            sizes=request.sizes,
            span=request.span,
            vary=tables,
            observe=observe,
            events=events,
            max_events=1,
            seed=self.seed,
            threads=threads,
            **options,
        )


def make_study(model: str | PathLike[str] | System, request: Values, of: str | Iterable[str], seed: int) -> Study:
    """The Study of a model with these ranges. Raises an OdesimError: what is wrong comes before what is missing."""
    system = load_model(model)
    if system.noise:
        raise ParamError(f"{system.name} has noise, of which no number is the cause; replace(system, noise={{}}) has none")
    span = span_of_steps(system, request.span, request.steps)
    values = Values(request.params, request.initial, request.sizes, span, vary=request.vary, members=1)
    check_names(make_schema(system), {"vary": request.vary})
    for name, value in request.vary.items():
        if not isinstance(value, str) or parse_value(value, f"--vary {name}").kind != "fill":
            raise ParamError(
                f"--vary {name} takes a range, such as uniform(0.1,2), loguniform(0.1,10) or normal(0,1), not {value_text(value)}"
            )
    if not request.vary:
        raise ParamError("--vary names what changes and its range, as in --vary 'mu=uniform(0.1,2)'")
    design: Any = choose_members(system, values, seed).source
    if not of:
        raise ParamError("--of names what is looked at: a state, an observable, t_end, or the time of an event")
    labels = [label for part in design.parts for label in entries(label_of(system, part.name), part.shape)]
    return Study(system, values, design.parts, tuple(labels), seed)


def check_ended(members: xarray.Dataset) -> None:
    """Raises SolveError where a member ended early."""
    names = members.attrs["status_names"]
    status = members["status"].values
    counts = {names[k]: int(np.sum(status == k)) for k in np.unique(status).tolist() if names[k] not in FINISHED}
    if counts:
        words = ", ".join(f"{name} {n}" for name, n in counts.items())
        raise SolveError(
            f"{sum(counts.values())} of {counted(len(status), 'run')} ended early ({words}), and without them these are other ranges: "
            "give narrower ones, or another method"
        )


def quantity(system: System, members: xarray.Dataset, name: str, index: str) -> tuple[list[str], Array]:
    """Labels and values (N, Q) at the end of what `of` names. Raises ParamError for a name or an entry that is none."""
    times = [str(v) for v in members.data_vars if str(v).endswith("_t") and members[v].dims[1:] == ("occurrence",)]
    known = [*system.states, *system.observables, "t_end", *times]
    if name not in known:
        raise ParamError(no_such("state, observable or time of an event", name, known, system.name))
    values = members[name].values
    if name in times:
        values = values[:, 0]
    elif name != "t_end":
        values = values[:, -1]
    shape = values.shape[1:]
    if not index:
        return list(entries(name, shape)), values.reshape(len(values), -1)
    at = place(name, index, shape)
    return [entry(name, at)], values.reshape(len(values), -1)[:, [np.ravel_multi_index(at, shape)]]


def dataset(
    study: Study, labels: Sequence[str], tables: Mapping[str, Array], one: Mapping[str, Array], kind: str, samples: int
) -> xarray.Dataset:
    """Tables (Q, d) and numbers (Q,) as a Dataset. kind: sobol or morris."""
    import xarray as xr

    runs = samples * (len(study.factors) + (2 if kind == "sobol" else 1))

    data: dict[str, Any] = {name: (("quantity", "factor"), table) for name, table in tables.items()}
    data |= {name: ("quantity", row) for name, row in one.items()}
    ranges = "; ".join(f"{part.name}={part.function}({part.a:g},{part.b:g})" for part in study.parts)
    about = {"model": study.system.name, "sensitivity": kind, "samples": samples, "runs": runs, "ranges": ranges}
    return with_accessor(xr.Dataset(data, coords={"quantity": list(labels), "factor": list(study.factors)}, attrs=about))
