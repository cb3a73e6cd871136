"""`odesim.ensemble`: one System, many members, in memory or on disk."""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.ensembles.design import Design
from odesim.ensembles.lane_engine import make_pool
from odesim.ensembles.members import Members
from odesim.ensembles.result import STATUSES, Chunk, Request
from odesim.ensembles.run import GOOD
from odesim.errors import ParamError
from odesim.facade import dimensions, versions
from odesim.facade_members import axis_names, check_threads, choose_members, label_of, make_engine, make_request
from odesim.facade_sensitivity import check_sensitivities, with_sensitivities
from odesim.memory import check_room
from odesim.registry import list_models, load_model
from odesim.symbolic.system import System

if TYPE_CHECKING:
    import xarray

    from odesim.facade_stored import EnsembleRun

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
    sensitivities: str | Iterable[str] = (),
    threads: int = 1,
    vary: Mapping[str, Any] | None = None,
    grid: Mapping[str, Any] | None = None,
    zipped: Mapping[str, Any] | None = None,
    members: int | None = None,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    shard: tuple[int, int] | None = None,
    fail_fast: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
) -> "xarray.Dataset":
    """Many members of a model, each as `integrate` would do it: {state: (member, time, *index names)}, status (member,).

    params, initial: an array of a parameter's own rank is shared by all members, one rank more is one value a member.
    vary: {parameter or state: "uniform(a,b)" or "normal(m,s)"}, drawn from seed and the number of the member for each of `members`, or
    an array with a row a member. grid: {name: points}, all combinations, the first name the slowest; zipped: points that go together.
    Points fill a shape, and may be a text such as "linspace(0,1,5)".

    sensitivities: parameters, and states for their initial values: dv_dp is the derivative of a state v with respect to p, as
    `integrate` has it, with dimensions (member, time, *those of v, *axes of p); for the initial value of a state u, dv_du_start.

    save: None keeps the end, an int that many times with both ends, an array those times. status: 0 ok, else the place in the attribute
    `status_names`; a member that did not come to its end has NaN where it was not, and the last time it reached in t_end. A member
    has the same bits whatever the others are and however many threads there are, and in strict mode those of `integrate`.

    out: a folder, written chunk by chunk; the Dataset then reads it when used, and holds -1 as the status of members not done.
    overwrite replaces the run that is there, resume goes on with it, shard=(i, n) does the i-th of n parts of it, fail_fast ends it
    after the first chunk with a failed member; Ctrl-C and SIGTERM lose the chunk in flight. progress: called with (members done, of
    how many, how many of these failed). Raises an OdesimError with one sentence where the request is wrong.
    """
    options: dict[str, Any] = {"params": params or {}, "initial": initial or {}, "vary": vary or {}, "grid": grid or {}}
    options |= {"zipped": zipped or {}, "members": members, "sizes": sizes, "span": span, "seed": seed, "save": save, "method": method}
    options |= {"step": step, "rtol": rtol, "atol": atol, "backend": backend, "dtype": dtype, "strict": strict, "max_steps": max_steps}
    options["sensitivities"] = sensitivities
    check_threads(threads)
    if out is not None:
        from odesim.store.read import open_run

        ways: dict[str, Any] = {"overwrite": overwrite, "resume": resume, "shard": shard, "fail_fast": fail_fast}
        run = run_ensemble(model, out, threads=threads, progress=progress, **ways, **options)
        return open_run(run.path)
    for name, given in (("overwrite", overwrite), ("resume", resume), ("shard", shard), ("fail_fast", fail_fast)):
        if given:
            raise ParamError(f"{name} needs the folder of a run: out='run.zarr'")
    chosen, request = ask(load_model(model), **options)
    check_room(chosen.source.count * len(request.times), request.layout.size, 8)
    engine = make_engine(request, chosen)
    engine.prepare()
    pool, stop = make_pool(threads), np.zeros(1, np.int64)
    total, failed, chunks = chosen.source.count, 0, []
    try:
        for first in range(0, total, CHUNK * max(threads, 1)):
            end = min(first + CHUNK * max(threads, 1), total)
            chunks.append(engine.integrate(*chosen.chunk(first, end), end - first, stop, pool))
            failed += int((~np.isin(chunks[-1].status, GOOD)).sum())
            if progress:
                progress(end, total, failed)
    finally:
        stop[0] = 1
        if pool is not None:
            pool.shutdown()
    return dataset(request, chosen, joined(chunks))


def run_ensemble(model: str | PathLike[str] | System, out: str | PathLike[str], *, seed: int = 0, **options: Any) -> "EnsembleRun":
    """What became of an ensemble with the arguments of `ensemble`, all of them given, in the folder out. Raises an OdesimError."""
    from odesim.facade_stored import begin

    names = ("overwrite", "resume", "shard", "threads", "progress", "fail_fast")
    ways = {name: options.pop(name) for name in names}
    system = load_model(model)
    chosen, request = ask(system, seed=seed, **options)
    return begin(request.system, reference(model), chosen, request, seed, Path(out), **ways)


def ask(system: System, *, save: Any, sensitivities: str | Iterable[str] = (), **options: Any) -> tuple[Members, Request]:
    """Members and request of the arguments of `ensemble`. Raises an OdesimError."""
    how = ("method", "step", "rtol", "atol", "backend", "dtype", "strict", "max_steps")
    request = {name: options.pop(name) for name in how}
    given = {name for what in ("initial", "vary", "grid", "zipped") for name in options[what]}
    system, still = with_sensitivities(system, sensitivities, given)
    options["initial"] = {**still, **options["initial"]}
    chosen = choose_members(system, **options)
    check_sensitivities(system, chosen.shared)
    return chosen, make_request(system, chosen, save, **request)


def reference(model: str | PathLike[str] | System) -> str | None:
    """How another process names the model; None for a System of this one."""
    if isinstance(model, System):
        return None
    text = fspath(model)
    return text if text in list_models() else str(Path(text).expanduser().absolute())


def joined(chunks: list[Chunk]) -> Chunk:
    """All members of consecutive chunks."""
    return Chunk(*(np.concatenate([getattr(c, name) for c in chunks]) for name in ("y", "status", "t_end", "steps", "rejected")))


def dataset(request: Request, members: Members, chunk: Chunk) -> "xarray.Dataset":
    """The members as xarray holds them, with what was a member's own."""
    import xarray as xr

    dims, source, system = dimensions(request.system), members.source, request.system
    own = source.labels(0, source.count) if isinstance(source, Design) else source.rows(0, source.count)
    data: dict[str, Any] = {}
    for name, values in request.layout.split(chunk.y).items():
        data[name] = (("member", "time", *dims[name]), values.astype(request.dtype, copy=False))
    for name in ("status", "t_end", "steps", "rejected"):
        data[name] = ("member", getattr(chunk, name))
    coords: dict[str, Any] = {"member": np.arange(len(chunk.status)), "time": request.times}
    for name, values in own.items():
        label = label_of(system, name)
        coords[label] = (("member", *axis_names(system, name, label, values.ndim - 1)), values)
    options = {"method": request.method, "rtol": request.rtol, "atol": request.atol, "max_steps": request.max_steps}
    about = {"model": system.name, **options, "dtype": request.dtype, "strict": int(request.strict)}
    about |= {"sensitivities": list(system.sensitivities)} if system.sensitivities else {}
    attrs = {**about, "status_names": [str(s) for s in STATUSES], "versions": str(versions())}
    return xr.Dataset(data, coords=coords, attrs=attrs)
