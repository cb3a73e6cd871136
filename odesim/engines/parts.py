"""Members that run in parts, from one change of their conditions to the next, all members of a block together."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array
from odesim.engines.conditions import Conditions
from odesim.ensembles.request import EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.stepper.codes import Code


def part_obstacle(request: EnsembleRequest) -> str:
    """Why lanes cannot integrate a request that runs in parts, so that members run one by one; empty if they can."""
    if not request.switches:
        return ""
    if request.held is not None and request.held.watched:
        events = [w.event for w in request.held.watched]
        at_start = "events at the start" if any(e.at_start for e in events) else "events on time alone"
        return "events that set states" if any(e.resets for e in events) else at_start
    if request.held is not None and request.held.on_states:
        return "conditions on states that jump"
    if request.options.step is not None:
        return "a fixed step in parts between times where conditions change"
    return "sensitivities with jumps" if request.system.sensitivities and request.held and request.held.switches else ""


@dataclass(frozen=True)
class Parts:
    """The parts of count members: part k of member i goes from edges[first[i] + k] to the next edge, and there are counts[i] of them.

    modes: {parameter of a condition: (count, size)}, of the parts that are at hand. own: what is a member's own.
    """

    conditions: Conditions
    own: Mapping[str, Array]
    edges: Array
    first: Array
    counts: Array
    modes: dict[str, Array]

    def begin(self, members: Array, part: int) -> tuple[Array, Array]:
        """(start, end) of this part of members (k,), with their conditions held for it."""
        at = self.first[members] + part
        start, end = self.edges[at], self.edges[at + 1]
        if self.modes:
            mine = {name: values[members] for name, values in self.own.items()}
            for name, rows in self.conditions.between(0.5 * start + 0.5 * end, mine).items():
                self.modes[name][members] = rows.reshape(len(members), -1)
        return start, end


class Turns:
    """The state of members that run in parts, one part each at a turn: codes, steps and rejected (count,); `most` steps are allowed."""

    def __init__(self, parts: Parts, codes: Array, steps: Array, rejected: Array, most: int) -> None:
        self.parts, self.codes, self.steps, self.rejected, self.most = parts, codes, steps, rejected, most
        self.start, self.end, self.places = np.zeros(len(codes)), np.zeros(len(codes)), np.zeros(len(codes), np.int64)

    def begin(self, members: Array, k: int) -> None:
        """Sets start and end for part k of members (m,), and holds their conditions."""
        self.start[members], self.end[members] = self.parts.begin(members, k)

    def left(self, members: Array, k: int) -> Array:
        """Members whose part k is unfinished and that have steps left.

        Sets their codes to RUNNING, and to MAX_STEPS where a part k is unfinished but no steps are left.
        """
        fine = members[self.codes[members] == Code.OK]
        left = fine[self.parts.counts[fine] > k]
        tried = self.steps[left] + self.rejected[left]
        self.codes[left] = np.where(tried >= self.most, Code.MAX_STEPS, Code.RUNNING)
        return np.ascontiguousarray(left[tried < self.most])


def parts_of(request: EnsembleRequest, numbers: Numbers, params: Mapping[str, Array], count: int) -> Parts:
    """The Parts of members with these parameters. Raises SolveError if there are too many."""
    assert request.held is not None
    span = request.t0, request.t1
    conditions = Conditions(request.held, dict(numbers.sizes), numbers.params, *span, request.options.stop_at)
    read = conditions.reads(frozenset(params))
    own = {name: params[name] for name in read}
    stops = conditions.stops(own, count if own else 1)
    rows = [np.concatenate([[request.t0], inside, [request.t1]]) for inside in stops]
    lengths = np.array([len(row) for row in rows])
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    if not own:
        first, lengths = np.zeros(count, np.int64), np.full(count, lengths[0])
    modes = {s.name: np.zeros((count, int(np.prod(conditions.shape(s))))) for s in conditions.on_time}
    return Parts(conditions, own, np.concatenate(rows), first, lengths - 1, modes)
