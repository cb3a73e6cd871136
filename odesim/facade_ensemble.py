"""`odesim.ensemble`: one System, many members, in memory."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.ensembles.lane_engine import LaneEngine, lane_engine, make_pool
from odesim.ensembles.members import Members, make_members
from odesim.ensembles.result import STATUSES, Chunk, Request
from odesim.ensembles.single_engine import SingleEngine
from odesim.errors import ParamError, SolveError, no_such
from odesim.facade import compiled_parts, dimensions, versions
from odesim.memory import check_room
from odesim.registry import load_model
from odesim.solve.explicit.integrate import check_options
from odesim.solve.tableau import METHODS
from odesim.symbolic.system import System
from odesim.times import save_times

if TYPE_CHECKING:
    import xarray

CHUNK = 4096


def ensemble(
    model: str | PathLike[str] | System,
    *,
    params: Mapping[str, Any] | None = None,
    initial: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    save: Any = None,
    method: str = "auto",
    step: float | None = None,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    backend: str = "numba",
    dtype: str = "float64",
    strict: bool = False,
    seed: int = 0,
    max_steps: int = 1_000_000,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> "xarray.Dataset":
    """Many members of a model, each as `integrate` would do it: {state: (member, time, *index names)}, status (member,).

    params, initial: an array of a parameter's own rank is shared by all members, one rank more is one value a member. save: None keeps
    the end, an int that many times with both ends, an array those times. status: 0 ok, else the place in the attribute
    `status_names`; a member that did not come to its end has NaN where it was not, and the last time it reached in t_end. A member
    has the same bits whatever the others are and however many threads there are, and in strict mode those of `integrate`.
    Raises an OdesimError with one sentence where the request is wrong.
    """
    check_threads(threads)
    system = load_model(model)
    members = make_members(system, params or {}, initial or {}, sizes=sizes, span=span, seed=seed)
    request = make_request(system, members, save, method, step, rtol, atol, backend, dtype, strict, max_steps)
    check_room(members.source.count * len(request.times), request.layout.size, 8)
    engine = make_engine(request, members)
    engine.prepare()
    pool, stop = make_pool(threads), np.zeros(1, np.int64)
    total, chunks = members.source.count, []
    try:
        for first in range(0, total, CHUNK * max(threads, 1)):
            end = min(first + CHUNK * max(threads, 1), total)
            chunks.append(engine.integrate(*members.chunk(first, end), end - first, stop, pool))
            if progress:
                progress(end, total)
    finally:
        stop[0] = 1
        if pool is not None:
            pool.shutdown()
    return dataset(request, members, joined(chunks))


def make_request(
    system: System,
    members: Members,
    save: Any,
    method: str,
    step: float | None,
    rtol: float,
    atol: float,
    backend: str,
    dtype: str,
    strict: bool,
    max_steps: int,
) -> Request:
    """The request, checked. Raises an OdesimError."""
    chosen = "tsit5" if method == "auto" else method
    if chosen not in METHODS:
        raise SolveError(no_such("method", method, [*METHODS, "auto"]))
    if step is None and not METHODS[chosen].adaptive:
        raise SolveError(f"{chosen} has no error estimate: give a fixed step")
    check_options(step, rtol, atol, max_steps)
    if backend != "numba":
        raise ParamError(f"an ensemble has the backend numba only, not {backend!r}")
    shared = members.shared
    times = np.array([shared.t1]) if save is None else save_times(save, shared.t0, shared.t1)
    compiled, _, _ = compiled_parts(system, backend, dtype, strict)
    compiled.check_sizes(shared.sizes)
    return Request(compiled, shared.sizes, shared.t0, shared.t1, times, chosen, rtol, atol, max_steps, step)


def make_engine(request: Request, members: Members) -> LaneEngine | SingleEngine:
    """Lanes where they can do it; which one does not depend on how many members there are."""
    return lane_engine(request, members.shared, members.source.names) or SingleEngine(request, members.shared)


def axis_names(system: System, name: str, label: str, rank: int) -> tuple[str, ...]:
    """Names of the axes of a parameter's or a start's own values: the System's index of that extent, where there is just one."""
    shapes = {**system.shapes, **{p.name: p.shape for p in system.params}}
    names = []
    for k in range(rank):
        found = [i.name for i, extent in system.axes.items() if extent == shapes[name][k]]
        names.append(found[0] if found and found[0] not in names else f"{label}_{k}")
    return tuple(names)


def check_threads(threads: Any) -> int:
    """threads as an int of at least 1. Raises ParamError."""
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= 1024:
        raise ParamError(f"threads must be a whole number, 1 to 1024, not {threads!r}")
    return int(threads)


def joined(chunks: list[Chunk]) -> Chunk:
    """All members of consecutive chunks."""
    return Chunk(*(np.concatenate([getattr(c, name) for c in chunks]) for name in ("y", "status", "t_end", "steps", "rejected")))


def dataset(request: Request, members: Members, chunk: Chunk) -> "xarray.Dataset":
    """The members as xarray holds them, with what was a member's own."""
    import xarray as xr

    dims = dimensions(request.system)
    rows = members.source.rows(0, members.source.count)
    data: dict[str, Any] = {}
    for name, values in request.layout.split(chunk.y).items():
        data[name] = (("member", "time", *dims[name]), values.astype(request.dtype, copy=False))
    for name in ("status", "t_end", "steps", "rejected"):
        data[name] = ("member", getattr(chunk, name))
    for name, values in rows.items():
        label = name if name not in data else f"{name}_start"
        data[label] = (("member", *axis_names(request.system, name, label, values.ndim - 1)), values)
    options = {"method": request.method, "rtol": request.rtol, "atol": request.atol, "max_steps": request.max_steps}
    about = {"model": request.system.name, **options, "dtype": request.dtype, "strict": int(request.strict)}
    attrs = {**about, "status_names": [str(s) for s in STATUSES], "versions": str(versions())}
    return xr.Dataset(data, coords={"member": np.arange(len(chunk.status)), "time": request.times}, attrs=attrs)
