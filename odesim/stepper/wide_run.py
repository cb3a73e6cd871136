"""A run whose rows are float64, whatever the type of its system, and that of a stabilised method, which is nothing more."""

from dataclasses import replace
from math import inf
from typing import Any, ClassVar

import numpy as np

from odesim.base.arrays import Array
from odesim.base.options import RunOptions
from odesim.stepper.codes import Status
from odesim.stepper.control import ROUNDINGS, stages_for
from odesim.stepper.drive import ExplicitRun
from odesim.stepper.memory import RunState
from odesim.stepper.one_system import STABILISED
from odesim.stepper.problem import Problem, Raw


class WideState(RunState):
    """The state of a run whose rows are float64, whatever the type of the system: its driver calls functions of the system by address."""

    dtype: ClassVar = "float64"

    def join(self, driver: dict[str, int]) -> None:
        """Makes the driver call its own functions for what a system does in its own type."""
        problem, at = self.problem, self.at
        rhs, single = problem.rhs, problem.rhs.dtype == "float32"
        self._raw, self._one, self._zero = np.empty((3, len(problem.y0)), rhs.dtype), np.ones(1), np.zeros(1, np.int64)
        addresses = {
            "COMBINE": driver["combined"], "TABLE": self.address, "EVENTS_AT": driver["watched"], "EVENTS_TABLE": self.address,
            "SYSTEM_STAGE": rhs.stage, "SYSTEM_COMBINE": rhs.combine if rhs.scales else 0, "SYSTEM_TABLE": rhs.table,
            "SYSTEM_EVENTS": rhs.events, "SYSTEM_EVENTS_TABLE": rhs.events_table, "SINGLE": int(single),
            "RAW": self._raw.ctypes.data, "ONE": self._one.ctypes.data, "ZERO": self._zero.ctypes.data, "IMPLICIT": 1,
        }  # fmt: skip
        if problem.laws is not None:
            addresses["SYSTEM_LAWS"], addresses["SYSTEM_LAW_TABLE"] = problem.laws.values.events, problem.laws.values.table
            addresses["LAWS_AT"], addresses["LAW_TABLE"] = driver["judged"], self.address
        for slot, value in addresses.items():
            at[slot] = value

    @property
    def y(self) -> Array:
        """The state (n,), in the problem's dtype."""
        return super().y.astype(self.problem.rhs.dtype)


class StabilisedState(WideState):
    """The state of a run of a stabilised method."""

    kind: ClassVar = "stabilised"

    def _tolerances(self) -> tuple[float, Any]:
        """Tolerances of a step with which the error at the end goes with rtol, as that of methods of order 4 and more nearly does."""
        # Local errors held to tol leave tol^(2/3) at order 2: on eight systems in the plane up to 33 tolerances at 1e-3 and 970 at 1e-7.
        # Held to tol^(3/2) they leave up to 4.5 at each, where tsit5 and rodas5p leave up to 13
        rtol, atol = super()._tolerances()
        if self.options.step is not None:
            return rtol, atol
        finer = min(max(rtol**1.5, ROUNDINGS * float(np.finfo(self.problem.rhs.dtype).eps)) / rtol, 1.0)
        return rtol * finer, atol * finer

    def _fill_method(self) -> None:
        self.at["P"], small = self.method.P.ctypes.data, float(np.finfo(self.problem.rhs.dtype).eps)
        # rounding grows as the square of the stages; MOST_STAGES as in rkc.f
        more = {"MOST_STAGES": max((self["rtol"] / (10 * small)) ** 0.5, 2.0), "SMALL": small**0.5}
        self.put({**{name: value for name, value in self.method.numbers.items() if name in STABILISED}, **more})


class WideRun(ExplicitRun):
    """A run whose rows are float64."""

    goes_on = True
    states: ClassVar = WideState
    first_slice: ClassVar = 1  # a step may take a second

    def _new_state(self, problem: Problem, method: Any, save: Array, options: RunOptions, functions: dict[str, int]) -> WideState:
        state: WideState = self.states(problem, method, save, options)
        state.join(functions)
        return state

    @property
    def y(self) -> Array:
        """The state (n,), in the problem's dtype."""
        return self.state.y

    def raw(self) -> Raw:
        raw, dtype = super().raw(), self.problem.rhs.dtype
        return raw if raw.y.dtype == dtype else replace(raw, y=raw.y.astype(dtype))


class StabilisedRun(WideRun):
    """A run of a stabilised method. options: as of odesim.integrate."""

    states: ClassVar = StabilisedState

    def raw(self) -> Raw:
        raw, step, most = super().raw(), self.state.options.step, int(self.state["MOST_STAGES"])
        if raw.status is not Status.NON_FINITE or step is None or not most < (stages := stages_for(step * self.state["radius"])) < inf:
            return raw
        need = f"a step of {step:.3g} needs {stages:g} stages of {self.method.name} at t = {raw.t_last:.9g}"
        rest = f"beside whose rounding rtol = {self.state['rtol']:.3g} has room for {most}"
        return replace(raw, message=f"{need}, {rest}: take shorter steps, or a larger rtol")
