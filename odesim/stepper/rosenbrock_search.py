"""Zeros of the event functions inside an accepted step: the inputs of odesim.stepper.search for a stiff run."""

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

from odesim.base.arrays import Array
from odesim.stepper.problem import Problem, search_facts
from odesim.stepper.rosenbrock_methods import Rosenbrock
from odesim.stepper.search_compiled import search_functions
from odesim.stepper.search_sizes import memory_size, most_zeros
from odesim.stepper.table import ANSWERS, SEARCH, new_table

EVERY = -1
"""Marks of a search of all components."""
DIGIT = 10
"""Times atol: a smaller state is not known to a digit."""
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_double, ctypes.c_int64, ctypes.c_int64)
_SEARCH = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4, *[ctypes.c_double] * 3)

Between = Callable[[float], tuple[float, Array]]
"""theta -> (time, state (n,)) within the step; and the same, as a run goes on from it."""


class Search:
    """The event functions of a problem, and their values where the last step ended."""

    def __init__(self, problem: Problem, pieces: int, K: Array, method: Rosenbrock, restore: Callable[[Array], Array]) -> None:
        """K (stages, n): the stages of the step. restore: moves a state to where a run may go on from it."""
        self.problem, self.pieces, self._stages, self._method, self._restore = problem, pieces, K, method, restore
        self.size = problem.rhs.n_events
        room = most_zeros(self.size, pieces)
        self._rows, self._answer = np.empty((pieces + 3, self.size)), np.empty(ANSWERS)
        self._facts, self._zeros = search_facts(problem), np.empty(memory_size(room, self.size, pieces))
        self._ask = _FUNCTION(self._probe)
        arrays = {"ROWS": self._rows, "FACTS": self._facts, "ZEROS": self._zeros, "ANSWER": self._answer}
        addresses = {name: array.ctypes.data for name, array in arrays.items()}
        addresses["ASK"] = ctypes.cast(self._ask, ctypes.c_void_p).value or 0
        self._table = new_table(SEARCH, **addresses, BETWEEN=self.size, GAP=1, SIZE=self.size, PIECES=pieces, ROOM=room)
        self._found: list[tuple[Array, Array]] = []
        self._between: tuple[Between, Between] | None = None
        self._failure: BaseException | None = None

    def event_records(self) -> tuple[Array, Array]:
        """Times and component numbers of the zeros kept so far."""
        times, numbers = zip(*[(np.empty(0), np.empty(0)), *self._found], strict=True)
        return np.concatenate(times), np.concatenate(numbers)

    def begin(self, t: float, y: Array) -> None:
        """Starts a run at (t, y)."""
        self._rows[0], self._rows[1] = np.nan, self.values(t, y)

    def values(self, t: float, y: Array) -> Array:
        """The event functions (size,) at (t, y)."""
        rhs = self.problem.rhs
        seen, out = np.ascontiguousarray(y, rhs.dtype), np.empty(self.size, rhs.dtype)
        _FUNCTION(rhs.events)(rhs.table, t, seen.ctypes.data, out.ctypes.data)
        rhs.check()
        return out.astype(np.float64)

    def sample(self, t: float, h: float, new: float, y: Array, z: Array) -> None:
        """Computes the functions at the ends of all pieces of a step of h from (t, y) to (new, z)."""

        def between(theta: float) -> tuple[float, Array]:
            return (t + theta * h, y + self._method.dense(theta) @ self._stages) if theta < 1 else (new, z)

        def inside(theta: float) -> tuple[float, Array]:
            time, state = between(theta)
            return time, self._restore(state) if theta < 1 else state

        for k in range(1, self.pieces + 1):
            self._rows[k + 1] = self.values(*between(k / self.pieces))
        self._between = between, inside

    def find(self, t: float, h: float, new: float, atol: float, y: Array, z: Array) -> tuple[float, float]:
        """Stores the zeros of the step up to the first terminal one; the time where the step ends, and theta there if one is terminal.

        theta is -1 where none is. atol: 0 with fixed steps.
        """
        search_step()(self._table.ctypes.data, 0, 0, EVERY, t, h, new)
        if self._failure is not None:
            raise self._failure
        found, stop, theta = self._answer.tolist()
        times, numbers = self._zeros[: 2 * int(found)].reshape(-1, 2).T.copy()
        if len(times) and atol > 0:
            self._mark_small((t, y), (new, z), numbers, atol)
        self._found.append((times[times <= stop], numbers[times <= stop]))
        return (self._between[1](theta)[0] if self._between and theta >= 0 else new), theta

    def keep(self) -> None:
        """Makes the last two samples those before the next step."""
        self._rows[:2] = self._rows[self.pieces : self.pieces + 2]

    def _mark_small(self, start: tuple[float, Array], end: tuple[float, Array], numbers: Array, atol: float) -> None:
        """Adds 1/2 to the number of each zero that states not known to a digit decide, as mark_small of an explicit run does."""
        both = np.maximum(np.abs(start[1]), np.abs(end[1])) / DIGIT
        if not np.any((both > 0) & (both <= atol)):
            return
        which, small = numbers.astype(np.int64), np.zeros(len(numbers), bool)
        for time, y in (start, end):
            g, rest = self.values(time, y)[which], self.values(time, np.where(both <= atol, 0.0, y))[which]
            small |= (g * rest <= 0) & (g != rest)
        numbers += 0.5 * small

    def _probe(self, _: int, theta: float, __: int, i: int) -> None:
        """The functions at theta, for the compiled search; NaN once one has failed."""
        assert self._between is not None
        try:
            self._rows[-1] = np.nan if self._failure else self.values(*self._between[i < 0](theta))
        except BaseException as error:  # ctypes can only drop it
            self._failure = error
            self._rows[-1] = np.nan


@cache
def search_step() -> Callable[..., None]:
    """The compiled search of a step."""
    return _SEARCH(search_functions()["search_step"])
