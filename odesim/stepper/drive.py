"""One run of one system: the driver's arrays, its time slices, and the results."""

import ctypes
import hashlib
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from typing import Any, ClassVar

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import one_blas_thread
from odesim.base.errors import CodegenError, SolveError
from odesim.base.memo import IdentityKey, Memo
from odesim.base.options import RunOptions
from odesim.base.signals import ctrl_c, not_counted
from odesim.stepper.codes import Code
from odesim.stepper.memory import RunState
from odesim.stepper.one_system import KINDS, RULES, SEARCH_MODULES, SHARED, driver_of
from odesim.stepper.problem import Problem, Progress, Raw, check_options, save_grid
from odesim.stepper.readers import Switches
from odesim.stepper.report import collect
from odesim.stepper.stability import held
from odesim.stepper.table import COUNTS, NOISE, RUN, SEARCH, constants, new_table
from odesim.stepper.taylor import Taylor, no_series, taylor_method, taylor_order

SIGNATURES = {
    "run": "int64(int64)",
    "probed": "void(int64, float64, int64, int64)",
    "combined": "void(int64, int64, int64, int64, int64, int64, int64, int64, int64)",
    "watched": "void(int64, float64, int64, int64)",
    "judged": "void(int64, float64, int64, int64)",
}
"""Functions of a driver; an explicit one has the first two."""
LONG = 8192
"""Trials after which the run of a small system goes on with a driver that is compiled for it.

That takes .15 s or more, once a system, sizes and method, and spares .2 to .5 microseconds a trial: with 1024 a first call of 1,583 trials
would wait for it, for .6 ms of a run.
"""
EARLY = 512
"""Trials after which it does so already, if its steps so far, and the coming one, say that it will need LONG: 1,000 orbits need 36,835."""
SLICE_SECONDS = 0.05
MOST_SLICE = 2**40
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


class ExplicitRun:
    """A run of an explicit method that can be paused and continued with the same steps.

    options: those of a RunOptions. The run is kept at the times save (T,), increasing within the span (start and end where None). Raises
    SolveError for options that make no sense, and what the right-hand side raised. A fixed step is shortened at last to meet t1; a
    relative tolerance below four roundings counts as those.
    progress is told the fraction of the span about 20 times a second. first_slice: steps before the first look at the clock.
    """

    _run: Callable[[int], int]
    _long: Callable[[int], int] | None = None
    states: ClassVar = RunState
    first_slice: ClassVar = 64

    def __init__(
        self, problem: Problem, method: Any, save: Array | None = None, *, progress: Progress | None = None, **options: Any
    ) -> None:
        checked = check_options(RunOptions(**options))
        by_state = checked.by_state
        if checked.step is None and not method.adaptive:
            raise SolveError(f"{method.name} has no error estimate: give a fixed step")
        begun, rhs = time.perf_counter(), problem.rhs
        self.on_device = hasattr(rhs, "kernel")
        _ = rhs.stage, rhs.combine, rhs.events, problem.laws and problem.laws.values.events  # compiles what was not
        if self.on_device:
            rhs.kernel(by_state)  # type: ignore[attr-defined]
        functions = {} if self.on_device else driver(self.states.kind, by_state)
        self.state = self._new_state(problem, method, save_grid(problem, save), checked, functions)
        if self.on_device:
            from odesim.stepper.device import DeviceRun

            self._run = DeviceRun(self.state)
        else:
            self._run = _RUN(functions["run"])
            if self.state.searches:
                self.state.call_search(search_functions()["search_step"], functions["probed"])
        self._seconds, self._compile_seconds = 0.0, time.perf_counter() - begun
        not_counted(self._compile_seconds)
        self.problem, self.method = problem, method
        self._progress, self._code, self._slice = progress, int(Code.RUNNING), self.first_slice
        self._left = (problem.t0, 0)

    def _new_state(self, problem: Problem, method: Any, save: Array, options: RunOptions, functions: dict[str, int]) -> RunState:
        """The memory of the run. functions: those of the driver."""
        return self.states(problem, method, save, options)

    def anew(self, problem: Problem, save: Array, max_steps: int, progress: Progress | None) -> None:
        """Starts another segment of the same run, on the processor, in this run's memory."""
        self.state.anew(problem, save, max_steps)
        self.problem, self._progress = problem, progress
        self._code, self._slice, self._long = Code.RUNNING, self.first_slice, None
        self._seconds, self._compile_seconds, self._left = 0.0, 0.0, (self.t, 0)

    @property
    def tried(self) -> int:
        """Steps so far, taken or rejected."""
        return int(self.state["steps"] + self.state["rejected"])

    @property
    def t(self) -> float:
        """The last time reached."""
        return self.state.t

    @property
    def step(self) -> float:
        """The mean step since the run was last continued, rejected ones counted as 0."""
        return (self.t - self._left[0]) / max(self.tried - self._left[1], 1)

    @property
    def coming(self) -> float:
        """The size of the step to come, 0 before the first one."""
        return self.state["h"]

    @property
    def growth(self) -> float:
        """How much longer steps have become since the run was last continued, a unit of time; below 0 where they became shorter."""
        # the first was the mean of all less what the step to come is above it, and no less than 0
        return min(2 * (self.coming - self.step), self.coming) / (self.t - self._left[0]) if self.t > self._left[0] else 0.0

    def advance(self, most: float = math.inf) -> bool:
        """Runs to the end, or until `most` steps were tried; whether the run has ended, Ctrl-C included."""
        begun, tried = time.perf_counter(), self.tried
        limits = sorted({*(limit for limit in (EARLY, LONG) if self._long is None and tried < limit < most), most})
        self._left = self.t, tried
        for limit in limits:
            ended = True  # as an interrupt leaves it
            if limit > min(EARLY, LONG) and self._long is None and limit > self.tried:
                decided = False
                with suppress(KeyboardInterrupt):  # then what was computed is kept, as by one in a step
                    if self._is_long():
                        self._long = self._for_long()  # while no limit of time runs: to compile does not count
                    decided = True
                if not decided:
                    self.stop()
                    break
            with ctrl_c(self.stop), suppress(KeyboardInterrupt), self._blas():
                ended = self._slices(limit)
            if ended or self.state.stopping[0]:
                break
        if self.on_device:
            self._run.fetch()  # type: ignore[attr-defined]
        self._seconds += time.perf_counter() - begun
        return ended or bool(self.state.stopping[0])

    def _is_long(self) -> bool:
        """Whether the run has taken LONG trials, or has taken EARLY and will take LONG. It stops at both, however it is cut into slices.

        Not early where stability limits its steps: a stiff method may take over, and the driver would be compiled in vain, a seventh of
        the first call of auto for the Oregonator. Both auto and the method that it names ask, so that their bits are the same.
        """
        if self.tried != EARLY:
            return self.tried >= LONG
        step = max(self.coming, (self.t - self.problem.t0) / EARLY)
        return self.problem.t1 - self.t >= (LONG - EARLY) * step and not (self._may_be_written and held(self.state, step)[0])

    @property
    def _may_be_written(self) -> bool:
        """Whether a driver can be compiled for this run alone."""
        return self.states is RunState and self.method.last != 0 and not isinstance(getattr(self.problem.rhs, "written", ""), str)

    def stop(self) -> None:
        """Makes the run end after its current step."""
        self.state.stop()

    def _blas(self) -> AbstractContextManager[Any]:
        return one_blas_thread() if getattr(self.problem.rhs, "uses_blas", False) else nullcontext()

    def _check(self) -> None:
        """Raises what a function of Python raised."""
        self.problem.rhs.check()
        if self.problem.laws is not None:
            self.problem.laws.values.check()

    def _slices(self, most: float) -> bool:
        state, problem = self.state, self.problem
        while (tried := self.tried) < most:
            state["left"] = steps = int(min(self._slice, most - tried))
            begun = time.perf_counter()
            code = (self._long or self._run)(state.address)
            self._check()
            if code == Code.BUFFER_FULL:
                state.drain_events()
                continue  # how long that call took says nothing of the steps that it was allowed
            if code != Code.RUNNING or state.stopping[0]:
                self._code = code
                return True
            self._slice = next_slice(steps, time.perf_counter() - begun)
            if self._progress is not None:
                self._progress(float((state.t - problem.t0) / (problem.t1 - problem.t0)))
        return False

    def _for_long(self) -> Callable[[int], int]:
        """What goes on with a run that is long: where its system is small, a driver that is compiled for it."""
        # by the number of trials alone, and not by what is in the cache: without strict mode the two round differently
        if not self._may_be_written:
            return self._run
        begun = time.perf_counter()
        long = _RUN(written_run(self.problem.rhs, self.state))
        spent = time.perf_counter() - begun
        self._compile_seconds, self._seconds = self._compile_seconds + spent, self._seconds - spent
        not_counted(spent)
        return long

    def raw(self) -> Raw:
        """The results of the run."""
        stats = self.state.stats() | {"seconds": self._seconds, "compile_seconds": self._compile_seconds}
        return collect(self.state, self._code, stats)


class TaylorRun(ExplicitRun):
    """A run of the Taylor method, by a driver that is written out for its system from the first step on; options as of ExplicitRun."""

    def __init__(self, problem: Problem, save: Array | None = None, *, rtol: float = RunOptions.rtol, **options: Any) -> None:
        super().__init__(problem, taylor_method(taylor_order(rtol)), save, rtol=rtol, **options)
        if isinstance(what := getattr(problem.rhs, "written", "a right-hand side that is not compiled for the processor"), str):
            raise no_series(what)

    def advance(self, most: float = math.inf) -> bool:
        """As that of ExplicitRun. Raises SolveError where the right-hand side is not smooth."""
        if self._long is None:
            begun, self.state["left"] = time.perf_counter(), 0.0
            self._run(self.state.address)  # the beginning alone
            try:
                self._long = self._for_long()
            except CodegenError as error:
                raise no_series(f"a right-hand side that cannot be written out ({error})") from error
            self._seconds += time.perf_counter() - begun
        return super().advance(most)


class NoisyState(RunState):
    """The state of a run with noise."""

    kind: ClassVar = "noisy"

    def _fill_method(self) -> None:
        super()._fill_method()
        noise, scheme = self.problem.noise, self.method
        assert noise is not None
        count, length = sum(a.size for a in noise.arrays), 0 if noise.length is None else noise.length.ctypes.data
        self._xi, self._weights = np.zeros((2, count)), np.array(scheme.noise)
        self._rates = np.array([x for a in noise.arrays for x in (a.ctypes.data, a.size)], np.int64)
        self._noise = new_table(
            NOISE, MEMBER=noise.member, KEY0=noise.seed & 0xFFFFFFFF, KEY1=noise.seed >> 32, HALVINGS=noise.halvings, DRAWS=scheme.draws,
            CHANNELS=count, XI=self._xi.ctypes.data, WEIGHTS=self._weights.ctypes.data, LENGTH=length, ARRAYS=len(noise.arrays),
            RATES=self._rates.ctypes.data,
        )  # fmt: skip
        self.at["NOISE"] = self._noise.ctypes.data


class NoisyRun(ExplicitRun):
    """A run of a scheme for noise; options as of ExplicitRun."""

    states: ClassVar = NoisyState


def next_slice(steps: int, seconds: float) -> int:
    """The number of steps that take about 50 ms, if the last `steps` took this long."""
    return max(1, int(min(steps * min(16.0, max(0.25, SLICE_SECONDS / max(seconds, 1e-6))), MOST_SLICE)))


NORMALS = ("normals", "circular", "elementary", "intrinsics")
"""Modules of the runtime that draw. They are imported: of their functions only one is called, and they have names in common with others."""


def normals_key() -> str:
    """8 hex digits of their sources: a change of them is another driver."""
    from odesim.targets.cache import source_of

    return hashlib.sha256("".join(source_of(f"odesim.runtime.{name}") for name in NORMALS).encode()).hexdigest()[:8]


def driver_text(kind: str = "explicit", by_state: bool = False) -> str:
    """The text of the driver, and of all that it calls. by_state: each state has its own absolute tolerance."""
    from odesim.targets.cache import sources_text

    sources = sources_text((*SHARED, *KINDS[kind].calls), RULES, "@helper")
    normals = [f"from odesim.runtime.normals import normals_of_path  # {normals_key()}"] if kind == "noisy" else []
    return "\n\n".join([sources, *normals, constants(RUN, COUNTS, *KINDS[kind].reads), driver_of(kind, by_state).text])


_WRITTEN: Memo[int] = Memo()


def written_run(rhs: Any, state: RunState) -> int:
    """The address of the driver that is written out for a right-hand side, the method of a run and what it watches."""
    from odesim.stepper.one_written import written_text
    from odesim.targets.cache import sources_text
    from odesim.targets.native import load_native

    right, method, options = rhs.written, state.method, state.options
    switches = Switches(**{name.lower(): state[name] != 0.0 for name in ("ADAPTIVE", "EVENTS", "LAWS")})

    def make() -> int:
        text = written_text(right, method, switches, options.by_state)
        parts = [sources_text(SHARED, RULES, "@helper"), constants(RUN, COUNTS), text]
        return load_native("\n\n".join(parts), "written", ["run"], once=not isinstance(method, Taylor))["run"]

    return _WRITTEN((IdentityKey(right), method.name, method.order, switches, options.by_state), make)


@cache
def driver(kind: str, by_state: bool) -> dict[str, int]:
    """{name: address}: the compiled loop of steps of this kind and what runs ask of it."""
    from odesim.targets.native import load_native

    # one driver for all methods: a first call waits for it once. It is compiled here and not where its functions are defined: these modules
    # can be imported, where rules of step control are not compiled
    names = list(SIGNATURES) if kind in ("implicit", "stabilised") else ["run", "probed"]
    # a stabilised method is one for very many states, and its steps are loops over them
    loops = ("combined", "run") if kind == "stabilised" else ("combined",)
    lines = [f'{name} = njit("{SIGNATURES[name]}", loops={name in loops})({name})' for name in names]
    return load_native("\n\n".join([driver_text(kind, by_state), *lines, ""]), kind, names, once=True)


SEARCHED = (*SEARCH_MODULES, "odesim.stepper.search_by_address")
EXPORTED = {"search_step": "step_searched", "search_polynomial": "polynomial_searched"}


@cache
def search_functions() -> dict[str, int]:
    """The addresses of the functions of odesim.stepper.search_by_address, compiled once or loaded from the cache."""
    from odesim.targets.cache import sources_text
    from odesim.targets.native import load_native

    lines = [f"{name} = {decorator}({name})" for name, decorator in EXPORTED.items()]
    return load_native("\n".join([sources_text(SEARCHED), constants(SEARCH), *lines, ""]), "search", list(EXPORTED), once=True)
