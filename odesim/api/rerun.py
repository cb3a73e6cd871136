"""`odesim.rerun`: computes a stored run again and compares; nothing is written."""

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from odesim.api.differences import BOUND, Differences, Rerun, other_code, tolerance
from odesim.api.integrate import integrate
from odesim.api.manifest import engines, restore
from odesim.base.errors import ParamError, StoreError
from odesim.base.options import options_of, versions
from odesim.base.signals import stop_signals
from odesim.ensembles.ledger import Progress, shard_chunks
from odesim.ensembles.request import Chunk
from odesim.inputs.arguments import check_count
from odesim.inputs.events import with_stored_events
from odesim.inputs.registry import stored_model
from odesim.run.choose import engine_key, members_at_once
from odesim.run.chunks import Execution, run_chunks
from odesim.run.solution import Solution
from odesim.stepper.codes import UNDONE, Status
from odesim.stepper.occurrences import Events
from odesim.store.ensemble import EnsembleStore, lost_sentence
from odesim.store.paths import damage_errors
from odesim.store.read import read_solution
from odesim.store.schema import INCOMPLETE


def rerun_ensemble(path: Path, *, model: str | PathLike[str] | None = None, threads: int = 1, progress: Progress | None = None) -> Rerun:
    """Computes every finished member of the ensemble at path again. Raises an OdesimError.

    model: the file of the model, where it was one.
    """
    check_count("threads", threads)
    store = EnsembleStore(path)
    members, _, first_engine = restore(store, model, same_code=False)
    other = other_code(store.attributes, engine_key(first_engine), versions())
    shadow = Shadow(store, exact=not other)
    with stop_signals() as stop_requested:
        ways, chunks = Execution(threads, progress, stop_requested=stop_requested), shard_chunks(store.count, store.chunk)
        done = run_chunks(shadow, members, engines(store, members, first_engine), chunks, ways, at_once=members_at_once(first_engine))
    lost = store.lost_member_count()
    more = {"other": other, "bound": BOUND, "stopped": done.stopped, "lost": f"it {lost_sentence(lost)}" if lost else ""}
    return shadow.differences.report(path, "member", **more)


class Shadow:
    """A Ledger over a stored one: at first nothing is done, and results are compared with the stored ones instead of written.

    exact: bits of all that is known of a member; else states within the tolerances, and how it ended.
    """

    def __init__(self, store: EnsembleStore, *, exact: bool) -> None:
        self.store, self.chunk, self.count, self.exact = store, store.chunk, store.count, exact
        self.differences = Differences()

    def status(self, first: int, end: int) -> Any:
        """Not done where the store is done, done where it is not."""
        return np.where(self.store.status(first, end) == UNDONE, 0, UNDONE).astype(np.int8)

    def spans(self, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
        return (piece for piece in self.store.spans(first, end) if piece[2])

    def attempts(self, first: int, end: int) -> Any:
        return self.store.attempts(first, end)

    def read(self, first: int, end: int) -> Chunk:
        return self.store.read(first, end)

    def buffer(self, first: int, end: int) -> None:
        return None

    def write(self, first: int, chunk: Chunk) -> None:
        """Compares the members of a chunk with the stored ones, where those are done."""
        old, attributes, new = self.store.read(first, first + len(chunk.status)), self.store.attributes, self.store.chunk_arrays(chunk)
        pairs: dict[str, Any] = {}
        for name, then in self.store.chunk_arrays(old).items():
            if self.exact or name in (*attributes["states"], *attributes["observables"], "status"):
                bound = 0.0 if name == "status" else tolerance(name if name in attributes["states"] else "", then, attributes)
                pairs[name] = then, new[name].astype(self.store.arrays[name].dtype, copy=False), bound
        done = self.store.status(first, first + len(chunk.status)) != UNDONE
        self.differences.add(pairs, done, lambda i: f"member {first + i}")


def rerun_integration(path: Path, *, model: str | PathLike[str] | None = None, progress: Callable[[float], None] | None = None) -> Rerun:
    """Integrates the run at path again and compares states, observables, events and the end. Raises an OdesimError.

    model: the file of the model, where it was one.
    """
    old = read_solution(path)
    attributes = old.attrs
    if attributes.get("ref") is None:
        raise ParamError(f"{path} was made in Python from a System, which no other process has: integrate it there and use odesim compare")
    system = with_stored_events(path, stored_model(path, attributes, model), attributes)
    try:
        options = options_of({**attributes, "method": old.method, "backend": old.backend})
        arguments = {"params": attributes["params"], "initial": {name: np.asarray(v) for name, v in attributes["initial"].items()}}
        arguments |= {
            "sizes": attributes["sizes"],
            "span": tuple(attributes["span"]),
            "sensitivities": list(attributes.get("sensitivities", ())),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged and cannot be read: an attribute is not as odesim writes it") from error
    grid = old.t if old.status in ("ok", INCOMPLETE) else old.t[:-1]  # what stopped early has one more time, the last
    save = attributes["even"] if "even" in attributes else grid if len(grid) else None
    new = integrate(system, **arguments, save=save, progress=progress, **vars(options))
    other = other_code(attributes, new.attrs["kernel"], versions())
    differences = Differences()
    with damage_errors(path, "compared"):  # arrays of other names or shapes than this run has
        compare_rows(differences, old, new)
        compare_ends(differences, old, new, exact=not other)
    return differences.report(path, "saved time", other=other, bound=BOUND)


def compare_rows(differences: Differences, old: Solution, new: Solution) -> None:
    """Compares states and observables at the saved times that both runs have."""
    times, *rows = np.intersect1d(old.t, new.t, return_indices=True)
    then, now = ({name: v[at] for name, v in {**s.y, **s.observables}.items()} for s, at in zip((old, new), rows, strict=True))
    pairs = {name: (v, now[name], tolerance(name if name in old.y else "", v, old.attrs)) for name, v in then.items()}
    differences.add(pairs, np.ones(len(times), bool), lambda i: f"t = {times[i]:g}")


def compare_ends(differences: Differences, old: Solution, new: Solution, *, exact: bool) -> None:
    """Compares where and how two runs ended, and their events: all bits or, for other code, the status and the number of events.

    One that was interrupted has no end of its own, and of one that the disk cut short it is not known.
    """
    if old.status in (INCOMPLETE, str(Status.INTERRUPTED)):
        return
    ends: list[tuple[Any, ...]] = [(str(s.status), s.t_end, *(v.tobytes() for v in s.final.values())) for s in (old, new)]
    pairs: dict[str, Any] = {"the end": ends} if exact else {"status": [end[:1] for end in ends]}
    for name, values in old.events.items():
        events = [Events.of(e) for e in (values, new.events.get(name, ()))]
        places = [b"" if e.indices is None else e.indices.tobytes() for e in events]
        pairs[name] = [(e.t.tobytes(), at) for e, at in zip(events, places, strict=True)] if exact else [len(e) for e in events]
    row = {name: (np.array([0.0]), np.array([0.0 if a == b else np.nan]), 0.0) for name, (a, b) in pairs.items()}
    differences.add(row, np.ones(1, bool), lambda _: "the run", rows=False)
