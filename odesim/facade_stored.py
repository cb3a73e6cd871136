"""Ensembles on disk: begun, gone on with, tried again where members failed, and reproduced."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from odesim.ensembles.lane_engine import LaneEngine
from odesim.ensembles.members import Members, make_members
from odesim.ensembles.result import UNDONE, Chunk, Request
from odesim.ensembles.run import GOOD, Engine, Progress, Tally, chunk_size, open_chunks, run_chunks, shard_chunks, tally
from odesim.ensembles.single_engine import SingleEngine
from odesim.errors import ParamError, StoreError
from odesim.facade import dimensions, versions
from odesim.facade_members import as_design, axis_names, check_threads, engine_key, label_of, make_engine, make_request
from odesim.facade_sensitivity import with_sensitivities
from odesim.facade_train import stopping
from odesim.registry import load_model
from odesim.sizes import make_extent
from odesim.store.ensemble import EnsembleStore, Manifest, check_same, create_ensemble, ensemble_attributes
from odesim.store.lock import RunLock
from odesim.store.paths import check_run
from odesim.symbolic.system import System

AGAIN = "odesim resume goes on"


@dataclass(frozen=True)
class EnsembleRun:
    """What became of a run, or of a shard of it. retried: failed members that were tried again."""

    path: Path
    model: str
    method: str
    lanes: bool
    tally: Tally
    seconds: float = 0.0
    retried: int = 0

    @classmethod
    def of(cls, store: EnsembleStore, tally: Tally, seconds: float = 0.0, retried: int = 0) -> "EnsembleRun":
        said = store.said
        methods = [said["method"], *(attempt.get("method") for attempt in said["attempts"][1:])]
        names = ", then ".join(dict.fromkeys(filter(None, methods)))
        return cls(store.path, said["model"], names, bool(said["lanes"]), tally, seconds, retried)

    @property
    def status(self) -> str:
        """`interrupted` where members are left to do, `failed` where some did not come to their end, else `ok`."""
        return "interrupted" if self.tally.done < self.tally.total else "failed" if self.tally.failed else "ok"

    @property
    def message(self) -> str:
        """One sentence on what is missing or failed."""
        t = self.tally
        failed = f"{t.failed} of {t.done} members failed ({t.failures})" if t.failed else ""
        if t.done < t.total:
            return "; ".join(filter(None, (f"stopped after {t.done} of {t.total} members", failed, f"what is done is kept in {self.path}")))
        return f"{failed}; what was computed is in {self.path}" if failed else f"{t.total} members are done"


def begin(
    system: System,
    ref: str | None,
    members: Members,
    request: Request,
    seed: int,
    out: Path,
    *,
    overwrite: bool = False,
    resume: bool = False,
    shard: tuple[int, int] | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    fail_fast: bool = False,
) -> EnsembleRun:
    """Makes the run at out, or joins the one that is there (a shard, or resume), and integrates what is not done.

    ref: how the model is named to another process, None where it cannot be. Raises an OdesimError.
    """
    check_threads(threads)
    if overwrite and (resume or shard):
        raise ParamError(f"--overwrite throws away what is there, which {'--resume' if resume else '--shard'} would go on with; choose one")
    engine = make_engine(request, members)
    manifest = make_manifest(system, ref, members, seed, engine)
    shard_chunks(manifest.design.count, manifest.chunk, shard or (1, 1))
    joins = (resume or shard is not None) and out.exists()
    lock = RunLock()
    try:
        if joins:
            check_same(out, manifest.identity())
        else:
            check_run(out, overwrite=overwrite)
            check_members(members, manifest.chunk)
            if out.exists():
                lock.take(out, what="ensemble")
            create_ensemble(out, manifest, overwrite=overwrite)
            check_same(out, manifest.identity())  # of another process, which was first
        lock.take(out, what="ensemble", shared=shard is not None)
        return integrate(EnsembleStore(out, request.layout), members, engine, shard or (1, 1), threads, progress, fail_fast)
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror or error}; {AGAIN}") from error
    finally:
        lock.release()


def integrate(
    store: EnsembleStore,
    members: Members,
    engine: Any,
    shard: tuple[int, int],
    threads: int,
    progress: Progress | None,
    fail_fast: bool,
    retried: int = 0,
) -> EnsembleRun:
    """Does what is not done of a shard."""
    began, chunks = time.perf_counter(), shard_chunks(store.count, store.chunk, shard)
    if next(open_chunks(store, chunks), None) is None:
        return EnsembleRun.of(store, tally(store, chunks), 0.0, retried)
    with stopping() as asked:
        found = run_chunks(
            store,
            members,
            engines(store, members, engine),
            chunks,
            threads=threads,
            asked=asked,
            progress=progress,
            fail_fast=fail_fast,
        )
    return EnsembleRun.of(store, found, time.perf_counter() - began, retried)


def engines(store: EnsembleStore, members: Members, first: Any) -> Callable[[int], Engine]:
    """The engine of each attempt, compiled when it is needed."""

    @cache
    def engine(attempt: int) -> Engine:
        made = first if attempt == 0 else make_engine(replace(first.request, **store.said["attempts"][attempt]), members)
        made.prepare()
        return made  # type: ignore[no-any-return]

    return engine


def resume(
    path: Path,
    *,
    retry_failed: bool = False,
    method: str | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    fail_fast: bool = False,
) -> EnsembleRun:
    """Goes on with the ensemble at path; of a finished one nothing is done. Raises an OdesimError.

    retry_failed: members that failed are integrated again, by another method where one is given.
    """
    check_threads(threads)
    if method is not None and not retry_failed:
        raise ParamError("--method is for members that failed: --retry-failed --method NAME")
    lock = RunLock()
    try:
        ensemble_attributes(path)
        lock.take(path, what="ensemble")
        store = EnsembleStore(path)
        found = tally(store, shard_chunks(store.count, store.chunk))
        if found.done == found.total and not (retry_failed and found.failed):
            return EnsembleRun.of(store, found)
        members, request, engine = restore(store)
        retried = 0
        if retry_failed:
            changed = {"method": method if method != "auto" else "tsit5"} if method else {}
            if method is not None:
                make_request(request.system, members, None, **{**options_of(store.said), "method": method})
            retried = store.retry(changed, GOOD)
        return integrate(store, members, engine, (1, 1), threads, progress, fail_fast, retried)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; {AGAIN}") from error
    finally:
        lock.release()


def look(path: Path) -> EnsembleRun:
    """How far the ensemble at path is; another process may be at it. Raises StoreError."""
    store = EnsembleStore(path)
    return EnsembleRun.of(store, tally(store, shard_chunks(store.count, store.chunk)))


@dataclass(frozen=True)
class Rerun:
    """A stored ensemble and the same computed again. first: (member, name) of the first difference; largest: of all."""

    path: Path
    members: int
    different: int
    first: tuple[int, str] | None
    largest: float
    stopped: bool = False

    @property
    def same(self) -> bool:
        """Whether all of it was computed again and every bit is the same."""
        return self.first is None and not self.stopped

    @property
    def message(self) -> str:
        head = f"stopped after {self.members} members" if self.stopped else f"{self.members} members computed again"
        if self.first is None:
            return f"{head}: every bit is the same"
        member, name = self.first
        return f"{head}: {self.different} differ, the first is {name} of member {member}; the largest difference is {self.largest:.3g}"


def rerun(path: Path, *, threads: int = 1, progress: Progress | None = None) -> Rerun:
    """Computes every member of the ensemble at path again that is done there, and compares; writes nothing. Raises an OdesimError."""
    check_threads(threads)
    store = EnsembleStore(path)
    members, _, first_engine = restore(store)
    shadow = Shadow(store)
    with stopping() as asked:
        done = run_chunks(
            shadow,
            members,
            engines(store, members, first_engine),
            shard_chunks(store.count, store.chunk),
            threads=threads,
            asked=asked,
            progress=progress,
        )
    return Rerun(path, shadow.compared, shadow.different, shadow.first, shadow.largest, done.stopped)


class Shadow:
    """A Ledger beside a stored one: at first nothing is done, and what is handed in is compared, not kept."""

    def __init__(self, store: EnsembleStore) -> None:
        self.store, self.chunk, self.count = store, store.chunk, store.count
        self.compared, self.different, self.largest = 0, 0, 0.0
        self.first: tuple[int, str] | None = None

    def status(self, first: int, end: int) -> Any:
        """Not done where the store is done, done where it is not."""
        return np.where(self.store.status(first, end) == UNDONE, 0, UNDONE).astype(np.int8)

    def attempts(self, first: int, end: int) -> Any:
        return self.store.attempts(first, end)

    def read(self, first: int, end: int) -> Chunk:
        return self.store.read(first, end)

    def write(self, first: int, chunk: Chunk) -> None:
        """Compares the members of chunk with those stored, where they are done."""
        old = self.store.read(first, first + len(chunk.status))
        done = old.status != UNDONE
        bad = np.zeros(len(done), bool)
        names = {}
        kept = {name: self.store.arrays[name].dtype for name in self.store.layout.names}
        new = {name: v.astype(kept[name]) for name, v in self.store.layout.split(chunk.y).items()}
        pairs = {name: (v, new[name]) for name, v in self.store.layout.split(old.y).items()}
        pairs |= {f.name: (getattr(old, f.name), getattr(chunk, f.name)) for f in fields(Chunk) if f.name != "y"}
        for name, (a, b) in pairs.items():
            same = (a == b) | ((a != a) & (b != b))
            differs = done & ~same.reshape(len(done), -1).all(axis=1)
            with np.errstate(invalid="ignore"):
                gap = np.abs(np.asarray(a, float) - b)[differs]
            if np.isfinite(gap).any():
                self.largest = max(self.largest, float(np.nanmax(gap[np.isfinite(gap)])))
            for i in np.flatnonzero(differs & ~bad):
                names[int(i)] = name
            bad |= differs
        self.compared += int(done.sum())
        self.different += int(bad.sum())
        if self.first is None and bad.any():
            at = int(np.argmax(bad))
            self.first = (first + at, names[at])


def restore(store: EnsembleStore) -> tuple[Members, Request, Any]:
    """Members, request and engine of a stored ensemble. Raises an OdesimError where they cannot be had again."""
    said = store.said
    if said.get("ref") is None:
        raise ParamError(f"{store.path} was made in Python from a System: call odesim.ensemble with it again, and resume=True")
    system, _ = with_sensitivities(load_model(said["ref"]), said.get("sensitivities", ()), ())
    params, initial = store.shared()
    numbers = {"sizes": said["sizes"], "span": tuple(said["span"]), "seed": said["seed"]}
    try:
        shapes = shapes_of(system, store)
        members = make_members(system, params, initial, source=store.design.shaped(shapes), **numbers)
        request = make_request(system, members, None, **options_of(said))
    except (KeyError, TypeError, IndexError) as error:
        raise StoreError(f"{store.path} is damaged and cannot be read: {type(error).__name__}: {error}") from error
    request = replace(request, times=store.times)
    engine = make_engine(request, members)
    if engine_key(engine) != said["kernel"]:
        raise ParamError(
            f"{store.path} was computed by other code ({said['kernel']}, now {engine_key(engine)}): "
            "the model, odesim or this machine is another one, and its bits would be others; compute it anew"
        )
    return members, request, engine


def shapes_of(system: System, store: EnsembleStore) -> dict[str, tuple[int, ...]]:
    """{name: shape} of what is a member's own."""
    shapes = dict(zip(store.layout.names, store.layout.shapes, strict=True))
    for part in store.design.parts:
        if part.name not in shapes:
            param = next((p for p in system.params if p.name == part.name), None)
            if param is None:
                raise StoreError(f"{store.path} varies {part.name}, which {system.name} does not have: the model is another one")
            shapes[part.name] = tuple(make_extent(extent).value(store.said["sizes"]) for extent in param.shape)
    return shapes


def options_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """The options of make_request that a run was made with."""
    names = ("method", "step", "rtol", "atol", "max_steps", "dtype")
    return {**{name: said[name] for name in names}, "backend": "numba", "strict": bool(said["strict"])}


def make_manifest(system: System, ref: str | None, members: Members, seed: int, engine: LaneEngine | SingleEngine) -> Manifest:
    """What is to be said of the run before it is there."""
    design, shared, request = as_design(members), members.shared, engine.request
    about = {
        "model": system.name,
        "ref": ref,
        "source": " ".join(filter(None, (system.source.key, system.source.where, system.source.note))),
        "time_unit": system.time,
        "sizes": shared.sizes,
        "span": [shared.t0, shared.t1],
        "method": request.method,
        "step": None if request.step is None else float(request.step),
        "rtol": float(request.rtol),
        "atol": float(request.atol),
        "max_steps": int(request.max_steps),
        "seed": seed,
        "dtype": request.dtype,
        "strict": int(request.strict),
        "sensitivities": list(system.sensitivities),
        "kernel": engine_key(engine),
        "lanes": int(isinstance(engine, LaneEngine)),
        "versions": versions(),
    }
    own = {*design.names, *(slot.name for slot in members.following)}
    labels = {}
    for name, values in design.labels(0, 1).items():
        label = label_of(system, name)
        labels[name] = (label, axis_names(system, name, label, values.ndim - 1))
    row = len(request.times) * request.layout.size * np.dtype(request.dtype).itemsize
    return Manifest(
        about=about,
        design=design,
        params={name: value for name, value in shared.params.items() if name not in own},
        initial={name: value for name, value in shared.initial.items() if name not in own},
        times=request.times,
        layout=request.layout,
        dtype=request.dtype,
        chunk=chunk_size(design.count, row),
        dims=dimensions(system),
        labels=labels,
    )


def check_members(members: Members, chunk: int) -> None:
    """Raises ParamError where any member has a value outside its domain, before anything is written."""
    for first in range(0, members.source.count, chunk):
        members.chunk(first, min(first + chunk, members.source.count))
