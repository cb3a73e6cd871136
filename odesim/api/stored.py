"""Ensembles on disk: started, continued, and failed members tried again."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from odesim.api.ensemble_request import make_ensemble_request
from odesim.api.manifest import check_members, check_unchanged, engines, make_manifest, names_of_codes, outputs_of, restore
from odesim.base.errors import ClusterError, DeviceError, ParamError, StoreError, counted
from odesim.base.options import RunOptions, options_of
from odesim.base.signals import stop_signals, time_limit
from odesim.ensembles.ledger import SUCCESSES, Tally, count_members, shard_chunks
from odesim.ensembles.members import Members
from odesim.ensembles.request import EnsembleRequest
from odesim.inputs.arguments import check_count
from odesim.inputs.registry import CarriedFile, carried_model, with_constant
from odesim.run.auto import STIFF
from odesim.run.choose import make_engine, members_at_once
from odesim.run.chunks import Execution, open_chunks, run_chunks
from odesim.stepper.codes import UNDONE, Status
from odesim.stepper.methods import METHODS
from odesim.store.ensemble import EnsembleStore, lost_sentence
from odesim.store.manifest import check_same_ensemble, create_ensemble, ensemble_attributes
from odesim.store.paths import Destination, RunLock, check_new_run, is_taken
from odesim.symbolic.system import System

AGAIN = "odesim resume continues it"


@dataclass(frozen=True)
class EnsembleRun:
    """The result of an ensemble, or of one shard. path: None if it is not kept.

    retried: failed members that were tried again; auto: by which rule members have their methods; methods {status: {method: members}};
    lost: members said to be done, but not there; meanings: {status: what it says of a member}. limit: the max_seconds that stopped it.
    """

    path: Path | None
    model: str
    method: str
    lanes: bool
    tally: Tally
    seconds: float = 0.0
    retried: int = 0
    auto: str = ""
    lost: int = 0
    limit: float | None = None
    backend: str = RunOptions.backend
    meanings: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, store: EnsembleStore, tally: Tally, chunks: range, **more: Any) -> "EnsembleRun":
        """The EnsembleRun of the members in these chunks."""
        attributes = store.attributes
        methods = store.methods(chunks.start * store.chunk, min(chunks.stop * store.chunk, store.count))
        more |= {"auto": attributes.get("auto", ""), "backend": attributes["backend"], "methods": methods}
        more["meanings"] = dict(zip(attributes["status_names"], attributes["status_meanings"], strict=False))
        return cls(store.path, attributes["model"], attributes["method"], bool(attributes["lanes"]), tally, **more)

    @property
    def by_method(self) -> dict[str, int]:
        """{method: number of members that it completed}, the most frequent first."""
        counts: dict[str, int] = {}
        for methods in self.methods.values():
            for name, count in methods.items():
                counts[name] = counts.get(name, 0) + count
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    def may_be_stiff(self, status: str) -> bool:
        """Whether an explicit method alone was tried on some members with this status: auto tries a stiff one after max_steps steps."""
        explicit = any(name in METHODS for name in self.methods.get(status, {}))
        return explicit and not (self.method == "auto" and status == Status.MAX_STEPS and STIFF in self.auto)

    @property
    def status(self) -> str:
        """The status of the run in one word: `interrupted`, `unfinished`, `failed` or `ok`.

        It is `interrupted` if this command was stopped, `unfinished` if members are left for another shard or resume. It is `failed` if
        some members did not come to their end.
        """
        if self.tally.done < self.tally.total:
            return "interrupted" if self.tally.stopped else "unfinished"
        return "failed" if self.tally.failed else "ok"

    def where(self, words: str, more: str = "") -> str:
        """The words, the path of the run and more; empty for a run that is not kept."""
        return f"{words} {self.path}{more}" if self.path else ""

    @property
    def message(self) -> str:
        """One sentence on what is missing or failed; empty if nothing is."""
        t = self.tally
        failed = f"{t.failed} of {counted(t.done, 'member')} failed ({t.failures})" if t.failed else ""
        if self.lost:
            return f"{self.path} {lost_sentence(self.lost)}"
        if t.done < t.total:
            by = "" if self.limit is None else f"max_seconds = {self.limit:g}: "
            how = by + (
                f"stopped after {t.done} of {counted(t.total, 'member')}" if t.stopped else f"{t.done} of {counted(t.total, 'member')} done"
            )
            return "; ".join(filter(None, (how, failed, self.where("what is done is kept in", f", {AGAIN}"))))
        end = "; ".join(filter(None, (failed, self.where("what was computed is in")))) if failed else f"{counted(t.total, 'member')} done"
        return "; ".join((end, *map(str, t.not_numbers.values())))


def begin_stored(
    original: Mapping[str, Any],
    members: Members,
    request: EnsembleRequest,
    to: Destination,
    execution: Execution,
    model: System | CarriedFile | None = None,
) -> EnsembleRun:
    """Creates the run, or joins an existing one (a shard, or resume), and integrates what is not done.

    original: where the model is from, as load_with_origin returns; model: what travels of it to a cluster. Raises an OdesimError.
    """
    check_count("threads", execution.threads)
    out, shard = to.path, to.shard or (1, 1)
    if to.overwrite and (to.resume or to.shard):
        raise ParamError(
            f"--overwrite throws away what is there, which {'--resume' if to.resume else '--shard'} would go on with; choose one"
        )
    engine = make_engine(request, members)
    manifest = make_manifest(request.system, original, members, engine)
    shard_chunks(manifest.design.count, manifest.chunk, shard)
    lock = RunLock()
    try:
        if to.joins:
            check_same_ensemble(out, manifest.identity())
        else:
            check_new_run(out, overwrite=to.overwrite)
            check_members(members, manifest.chunk)
            engine.prepare()  # what cannot be compiled leaves no empty run
            if is_taken(out):
                lock.acquire(out, what="ensemble")
            create_ensemble(out, manifest, overwrite=to.overwrite)
            check_same_ensemble(out, manifest.identity())  # of another process, which was first
        lock.acquire(out, what="ensemble", shared=to.shard is not None)
        return integrate_stored(EnsembleStore(out, request.layout), members, engine, execution, shard, model=model)
    except (DeviceError, ClusterError) as error:
        raise with_stored_count(error, out) from error
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror or error}{f'; {AGAIN}' if is_taken(out) else ''}") from error
    finally:
        lock.release()


def with_stored_count(error: DeviceError | ClusterError, path: Path) -> DeviceError | ClusterError:
    """The error of a GPU or a cluster with a sentence on how much of the run at path is stored."""
    try:
        done = count_members(store := EnsembleStore(path), shard_chunks(store.count, store.chunk)).done
    except StoreError:  # the run was not begun
        return error
    return type(error)(f"{error}; {counted(done, 'member')} kept in {path}, {AGAIN}", stored=True)


def integrate_stored(
    store: EnsembleStore,
    members: Members,
    engine: Any,
    execution: Execution,
    shard: tuple[int, int] = (1, 1),
    *,
    retried: int = 0,
    model: System | CarriedFile | None = None,
) -> EnsembleRun:
    """Integrates the members of a shard that are not done, here or on a cluster, to which `model` travels."""
    chunks = shard_chunks(store.count, store.chunk, shard)
    place = next(open_chunks(store, chunks), None)
    if place is None:
        return EnsembleRun.of(store, count_members(store, chunks), chunks, retried=retried)
    store.check_writable()
    attempt = store.attempts(*place)[store.status(*place) == UNDONE][0]
    compiled = engines(store, members, engine)
    if execution.cluster is None:
        compiled(int(attempt))  # not counted as time that members take
    began = time.perf_counter()
    with time_limit(execution.max_seconds) as late, stop_signals() as stop_requested:
        how = replace(execution, stop_requested=stop_requested)
        if execution.cluster is not None:
            from odesim.api.cluster import run_on_cluster

            tally = run_on_cluster(store, model, chunks, how, at_once=members_at_once(engine))
        else:
            tally = run_chunks(store, members, compiled, chunks, how, at_once=members_at_once(compiled(int(attempt))))
        limit = execution.max_seconds if tally.stopped and late() else None
    return EnsembleRun.of(store, tally, chunks, seconds=time.perf_counter() - began, retried=retried, limit=limit)


def resume(
    path: Path,
    *,
    retry_failed: bool = False,
    method: str | None = None,
    max_steps: int | None = None,
    model: str | PathLike[str] | None = None,
    execution: Execution | None = None,
) -> EnsembleRun:
    """Continues the ensemble at path, here or on a cluster; a finished one stays as it is. Raises an OdesimError.

    retry_failed: members that failed are integrated again, by another method and with other max_steps where these are given. model: the
    file of the model, where it was one; it must have the sha256 that the run stores.
    """
    execution = execution or Execution()
    check_count("threads", execution.threads)
    changes: dict[str, Any] = {name: value for name, value in (("method", method), ("max_steps", max_steps)) if value is not None}
    if changes and not retry_failed:
        flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in changes.items())
        raise ParamError(f"{flags} is for members that failed: --retry-failed {flags}")
    lock = RunLock()
    try:
        ensemble_attributes(path)
        lock.acquire(path, what="ensemble")
        store = EnsembleStore(path)
        check_unchanged(store, names_of_codes())
        chunks = shard_chunks(store.count, store.chunk)
        tally = count_members(store, chunks)
        if tally.done == tally.total and not (retry_failed and tally.failed):
            return EnsembleRun.of(store, tally, chunks)
        store.check_writable()
        store.check_identity()
        members, request, engine = restore(store, model)
        travels = carried_model(request.system, given_origin(store.attributes, model)) if execution.cluster else None
        retried = 0
        if retry_failed:
            options = replace(options_of(store.attributes), **changes)
            checked = make_ensemble_request(request.system, members, options, **outputs_of(store.attributes)).options
            retried = store.retry({name: getattr(checked, name) for name in changes}, SUCCESSES)
        return integrate_stored(store, members, engine, execution, retried=retried, model=travels)
    except (DeviceError, ClusterError) as error:
        raise with_stored_count(error, path) from error
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; {AGAIN}") from error
    finally:
        lock.release()


def given_origin(attributes: Mapping[str, Any], model: str | PathLike[str] | None) -> dict[str, Any]:
    """The origin of the model of a run with these attributes, as load_with_origin returns it. model: its file, if it has one."""
    ref = attributes["ref"]
    file = {"ref": with_constant(fspath(model), ref)} if model is not None else {}
    return {"ref": ref, "model_sha256": attributes.get("model_sha256"), **file}


def stored_run(path: Path) -> EnsembleRun:
    """The progress of the ensemble at path, which another process may be computing. Raises StoreError."""
    store = EnsembleStore(path)
    chunks = shard_chunks(store.count, store.chunk)
    return EnsembleRun.of(store, count_members(store, chunks), chunks, lost=store.lost_member_count())
