"""Several searches side by side: the runs that they need at one time are members of one ensemble, in lanes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from odesim.api.ensemble import members_and_request
from odesim.base.arrays import Array
from odesim.base.errors import OdesimError
from odesim.base.options import RunOptions, Values
from odesim.ensembles.members import ArrayRows, Members
from odesim.run.choose import AnyEngine, make_engine
from odesim.run.chunks import integrated
from odesim.run.engines import SingleEngine
from odesim.run.solution import Seen, Solution
from odesim.stepper.codes import Status
from odesim.symbolic.system import System

AT_ONCE = 64
"""The most searches that go on at one time: each waits in a thread."""

Place = TypeVar("Place")
Value = TypeVar("Value")
End = TypeVar("End")


class StoppedError(RuntimeError):
    """A search is given up, because another one failed."""


def side_by_side(
    search: Callable[[Callable[[Place], Value], Place], End], places: Sequence[Place], evaluate: Callable[[list[Place]], Iterable[Value]]
) -> list[End]:
    """Where search(f, place) ends from each place. f(p) waits until every search needs a value, and evaluate computes these together.

    A search may be a function that calls f where it likes, as scipy's do, and so each has a thread. Which values are computed together does
    not depend on what the threads do first.
    """
    ends: list[End] = []
    for first in range(0, len(places), AT_ONCE):
        ends += _one_round(search, places[first : first + AT_ONCE], evaluate)
    return ends


def _one_round(
    search: Callable[[Callable[[Place], Value], Place], End], places: Sequence[Place], evaluate: Callable[[list[Place]], Iterable[Value]]
) -> list[End]:
    wanted: SimpleQueue[tuple[int, list[Place]]] = SimpleQueue()  # the search, and its place; none at its end
    answers: list[SimpleQueue[list[Value]]] = [SimpleQueue() for _ in places]

    def searched(k: int) -> End:
        def f(place: Place) -> Value:
            wanted.put((k, [place]))
            answer = answers[k].get()
            if not answer:
                raise StoppedError
            return answer[0]

        try:
            return search(f, places[k])
        finally:
            wanted.put((k, []))

    with ThreadPoolExecutor(len(places)) as pool:
        try:
            futures = [pool.submit(searched, k) for k in range(len(places))]
            running, waiting = len(places), dict[int, Place]()
            while running:
                k, place = wanted.get()
                if place:
                    waiting[k] = place[0]
                else:
                    running -= 1
                if waiting and len(waiting) == running:
                    order = sorted(waiting)
                    for k, value in zip(order, evaluate([waiting.pop(k) for k in order]), strict=True):
                        answers[k].put([value])
        finally:
            for answer in answers:
                answer.put([])
    return [future.result() for future in futures]


@dataclass(frozen=True)
class Lanes:
    """Runs of one System with different numbers. like: a run with the same names."""

    engine: AnyEngine
    members: Members
    like: Solution

    def __call__(self, numbers: Mapping[str, Array]) -> list[Solution | None]:
        """The runs with numbers {name: (k, *shape)} of parameters and initial values; None for one that does not come to its end.

        The bits of a run do not depend on the others.
        """
        count = len(next(iter(numbers.values())))
        try:
            params, initial = replace(self.members, source=ArrayRows(numbers)).chunk(0, count)
            chunk = integrated(self.engine, params, initial, count, np.zeros(1, np.int64), None)
        except OdesimError:  # a value that the constraints of the model exclude
            if count == 1:
                return [None]
            return [run for k in range(count) for run in self({name: rows[k : k + 1] for name, rows in numbers.items()})]
        request = self.engine.request
        y, others = request.layout.split(chunk.y), request.outputs.arrays(chunk)
        runs: list[Solution | None] = []
        for k, status in enumerate(chunk.status):
            here = [{name: rows[k] for name, rows in part.items()} for part in (y, others)]
            runs.append(replace(self.like, y=here[0], _observe=Seen(np.nan, here[1], {})) if status == Status.OK.number else None)
        return runs


def make_lanes(system: System, values: Values, options: RunOptions, like: Solution) -> Lanes | None:
    """The lanes for runs whose numbers differ as the members of these values do; None where there are none for the System."""
    members, request = members_and_request(system, values, options)
    engine = make_engine(request, members)
    if isinstance(engine, SingleEngine):
        return None
    engine.prepare()
    return Lanes(engine, members, like)
