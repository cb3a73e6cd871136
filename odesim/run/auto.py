"""The method auto: a short pilot, the first steps of the explicit method for the tolerance, decides the method.

A run that ends within them is the result. The run is inspected after 128 trials, and whenever their number has doubled. Where the step
is held by stability, and what is left is long and would cost more than a Jacobian does, rodas5p starts from the same point and gets as much
work as was spent. Then the two go on by turns: the next one, as long as all before it or an eighth of the expected rest, is that of the
run that will need less for the rest: the explicit one if it goes on as it went in its last turn, rodas5p with its next step if that is
longer, for steps grow a hundredfold within its first twenty. The first that ends is the result, so that auto costs at most some twice the
better of the two. A method that is ahead at first need not stay so: before a shock forms in Burgers' equation rodas5p takes steps 100 times
as long as tsit5 does, and afterwards costs four times as much. One that is behind, and whose steps do not grow, waits long for its turn,
unless the rest is so long that the turn costs little beside it.

Every decision rests on counts (odesim.ir.sizes), never on a clock. So the same request chooses the same method everywhere,
and the result has the bits of the method that it names.

Where the Jacobian costs much to eliminate, as on a plane or in space, and its largest eigenvalue is real and negative, the rival is rkc
instead: the steps that it is to take are guessed from the tolerance, its stages follow from the spectral radius. Short steps
that grow with the time, as where fine modes decay, are expected to grow on.

A strict run of rodas5p is one in lanes, which would begin again: it gets so much work that it nearly always ends at once, MUCH times what
was spent, and no more than half of what the explicit method is expected to need for the rest; what is further in time then goes on to the
end.
"""

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import CodegenError, SolveError, counted
from odesim.base.signals import ctrl_c
from odesim.stepper.codes import Status
from odesim.stepper.control import ROUNDINGS, SHORT, stages_for
from odesim.stepper.drive import ExplicitRun
from odesim.stepper.methods import METHODS
from odesim.stepper.problem import Problem, Raw, least_rtol
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.stabilised_methods import STABILISED
from odesim.stepper.stability import held
from odesim.stepper.tableau import Method, step_cost

PILOT = 128
"""Trials before the first inspection."""
TIGHT = 3e-8
"""The relative tolerance below which dop853 needs fewer right-hand sides than tsit5 for the same error at the end of a run.

On the shipped models it needs 0.7 times as many at 1e-8, 0.6 at 1e-9, 0.5 at 1e-10; vern7 lies between them.
"""
TIGHT_BETWEEN = 5e-10
"""The relative tolerance below which vern7 needs fewer, where the states between the steps count too: 0.9 times as many at 1e-10.

Between its long steps dop853 is off by up to 3000 tolerances (joma.nonlinear at 1e-10), while its ends are within one. vern9 is never
chosen: at 1e-12 it needs half of the right-hand sides on long orbits (Pleiades, Lorenz-96, Kepler), but on 78 shipped models .6 to 1.75
times as many (median .86), and kernels of lanes with its 25 stages take half as long again to compile.
"""
STIFF = "rodas5p"
"""The stiff candidate: at tolerances of 1e-4 and below rodas4 needs more steps and more right-hand sides on every stiff problem tried."""
STAGES = "rkc"
"""The candidate where many cheap stages cost less than the elimination of a Jacobian."""
STEPS = {STIFF: (10.0, 1 / 5), STAGES: (8.0, 1 / 2)}
"""(c, p): a run takes some c rtol^-p steps. On eight systems in the plane rkc took 1.7 to 14 rtol^-1/2."""
SURE = 4 / 7
"""Of the length of rkc's steps by this guess: so far they are expected to grow. So long they are on the worst of those eight systems."""
LEAST = 5
"""Steps that the stiff method must be able to take in a trial.

With 20 the heat equation on 400 cells was not tried before 1,024 explicit steps, and took 17 ms in place of 13.6."""
FEWEST = 20
"""Steps that a stiff run takes at least, from its start to its end: 19 to 38 on heat. Where the rest costs less, it cannot win."""
EIGHTH = 1 / 8
"""Of what the explicit run is expected to need for the rest: so long is a turn of a stiff run that is ahead, if it is not longer anyway."""
SHARE = 1.0
"""The most that a trial may cost, in units of the cost of the explicit run so far."""
MUCH, HALF = 64.0, 0.5
"""The most that a compiled stiff run may cost, in units of the explicit run so far, and of the rest that it is expected to need."""
FAR = 64
"""The rest of an explicit run, in units of a turn of the stiff one, beside which the turn costs little."""
LATER = 8
"""A stiff run that is behind has its next turn when this is so many times as long as all before it."""
NEARLY = 4
"""An explicit run that would need more steps than max_steps is given up when it has taken one in NEARLY of max_steps."""
ENDED = (Status.OK, Status.EVENT, Status.BLOW_UP, Status.MAX_STEPS, Status.INTERRUPTED)


def integrate_auto(problem: Problem, *, save: Array | None = None, strict: bool = False, **options: Any) -> Raw:
    """Integrates a problem by the cheapest method; Raw.auto says why.

    strict: with the same bits on every machine.
    options: step, rtol, atol, max_steps, progress, as of odesim.run.integrate.integrate_problem.
    """
    step, rtol = options.get("step"), options.get("rtol", 1e-6)
    run = ExplicitRun(problem, METHODS[explicit_name(rtol, step, between=looks_between(problem, save))], save, **options)
    alone = step is not None or run.on_device
    if not run.advance(math.inf if alone else PILOT):
        return compete(run, save, strict, options)
    raw, why = run.raw(), ""
    if alone:
        why = ": a fixed step was asked for" if step is not None else " on the device, where stiff methods do not run"
    return replace(raw, auto=f"{raw.method}: {sentence(raw)}{why}")


def compete(
    run: ExplicitRun, save: Array | None, strict: bool, options: dict[str, Any], *, until: float | None = None, late: bool = False
) -> Raw:
    """The result of an explicit run that has taken its pilot, or of a stiff one; arguments as of integrate_auto.

    until: the end of the run, where this is a part of it. late: whether the part is not the first. A stiff method would do those before
    it again, and this one too: so its run ends, with status OK, once it is clear that it is cheaper, and only its method counts.
    """
    rival = Rival(run.problem, run.method, save, strict, run.problem.t1 if until is None else until, options, late)

    def stop() -> None:
        run.stop()
        rival.stop()

    # once for all turns: to take the signals is 16 microseconds, and a small system may have ten turns in a millisecond. The time that is
    # allowed ends turns alone, for between them code is compiled, which does not count
    with ctrl_c(stop, timed=False):
        while (won := rival.challenge(run)) is None:
            if run.advance(2 * run.tried):
                raw = run.raw()
                return replace(raw, auto=f"{raw.method}: {sentence(raw)}{rival.why}")
    return won


def explicit_name(rtol: float, step: float | None, *, between: bool) -> str:
    """The explicit method for this relative tolerance. between: whether states between the steps count."""
    if step is not None or rtol >= (TIGHT_BETWEEN if between else TIGHT):
        return "tsit5"
    return "vern7" if between else "dop853"


def looks_between(problem: Problem, save: Array | None) -> bool:
    """Whether states or events between the steps are requested."""
    # they increase within the span: of three the second is inside
    inside = save is not None and any(problem.t0 < t < problem.t1 for t in save[:2].tolist())
    return inside or any(event.guard is None for event in problem.events)


def sentence(raw: Raw) -> str:
    """In words, how a run ended."""
    ended = "done in" if raw.status in (Status.OK, Status.EVENT) else f"ended ({raw.status}) after"
    return f"{ended} {counted(raw.stats['steps'], 'step')}"


class Rival:
    """A stiff run that competes with an explicit one. why: in words, how it compares."""

    def __init__(
        self, problem: Problem, method: Method, save: Array | None, strict: bool, until: float, options: dict[str, Any], late: bool = False
    ) -> None:
        self.problem, self.method, self.save, self.strict, self.until, self.options = problem, method, save, strict, until, options
        self.late = late
        self.why, self._out, self._name, self._radius, self._length = "", "", STIFF, 0.0, 0.0
        self._run: Any = None
        self._lost = self._stopped = False
        if problem.linear is None or problem.costs is None:
            self._out = "; stability limits them, and there is no Jacobian for a stiff method"

    def stop(self) -> None:
        """Makes the stiff run end after its current step, and no other one begin."""
        self._stopped = True
        if self._run is not None:
            self._run.stop()

    def challenge(self, run: ExplicitRun) -> Raw | None:
        """The rival's complete run, if it is preferable to continuing the explicit run."""
        left, tried = self._rest(run), run.tried
        allowed = self.options.get("max_steps", 1_000_000)
        hopeless = tried + left > allowed <= NEARLY * tried
        if left < SHORT * tried or self._lost or not (hopeless or (self._repays(left) and not self._waits(run, left))):
            return None
        radius, real = held(run.state, run.step)
        if not radius:
            return None
        if self._run is None:
            self._choose(run, radius, real)
        if self._out and self._name == STIFF:
            self.why = self._out
            return None
        try:
            budget = self._budget(tried, left)
            # a run is compiled, which takes seconds, where it has a turn
            if self._run is None and (self._at_once or hopeless or (budget >= LEAST and left >= FEWEST * self._share())):
                self._run = self._make()
        except CodegenError:
            self._out = self.why = f"; stability limits them, and the Jacobian is too large for {self._name}"
            return None
        except SolveError as error:
            if not self.strict:
                raise
            self._out = self.why = f"; stability limits them, and {str(error).partition(';')[0]}"
            return None
        rival = self._run
        if self._stopped:  # while it was compiled
            return None
        if rival is None:
            self.why = f"; stability limits them, but a step of {self._name} costs what {self._share():.0f} do"
            return None
        if (budget < LEAST or (rival.goes_on and budget <= rival.tried and not self._is_ahead(run))) and not hopeless:
            return None
        has_turn = not rival.goes_on or budget > rival.tried  # an advance of no steps would say that its last steps had length 0
        ended = rival.advance(allowed if hopeless else budget) if hopeless or has_turn else False
        while not ended and (hopeless or self._is_ahead(run) or (rival.goes_on and left > FAR * self._share() * rival.tried)):
            if self.late and self._is_clear(run):
                return replace(rival.raw(), status=Status.OK, auto=self._reason("ahead", run, left))
            turn = 2 * rival.tried if self.late else max(2 * rival.tried, self._budget(EIGHTH * left, left))
            ended = rival.advance(turn if rival.goes_on else math.inf)
        if not ended:
            its = f"{self._name} came to t = {rival.t:.4g} in {counted(rival.tried if rival.goes_on else budget, 'step')}"
            cost = f"cost what the first {tried} did" if rival.goes_on else f"may cost more than the first {tried}"
            self.why = f"; stability limits them, but {its}, which {cost}, to t = {run.t:.4g}"
            return None
        raw: Raw = rival.raw()
        if raw.status not in ENDED or (raw.status is Status.MAX_STEPS and not hopeless):
            self.why, self._lost = f"; stability limits them, but {self._name} ends early ({raw.status})", True
            return None
        return replace(raw, auto=self._reason(sentence(raw), run, left))

    def _reason(self, ended: str, run: ExplicitRun, left: float) -> str:
        """In words, why the rival is the one to take. ended: how it ended."""
        calls, whole = counted(run.state.stats()["rhs_calls"], "right-hand side"), run.tried + left
        why = f"{self.method.name} came to t = {run.t:.4g} with {calls} and would need about {rounded(whole)} steps"
        return f"{self._name}: {ended}; {why} (stability, not accuracy, limits them)"

    def _rest(self, run: Any) -> float:
        """The number of steps that a run needs for the rest, if it goes on as it went last."""
        return float((self.until - run.t) / run.step if run.step > 0 else np.inf)

    def _is_ahead(self, run: ExplicitRun) -> bool:
        """Whether this run, at the same cost so far, will be done with less than the explicit one."""
        costs, rival = self.problem.costs, self._run
        assert costs is not None
        if not rival.goes_on:
            return bool(rival.t > run.t)
        rest = self._rest_of_rival()
        return rest * self._share((self.until - rival.t) / max(rest, 1.0)) <= self._rest(run)

    def _rest_of_rival(self) -> float:
        """The number of steps that the rival needs for the rest, if they are as its last or its next one, or grow as in its last turn."""
        rival = self._run
        step, left = max(rival.coming, rival.step), self.until - rival.t  # the next one may be a short one
        if not step > 0:
            return np.inf
        # those of rodas5p grow a hundredfold at first, and then as what oscillates lets them
        if self._name != STAGES or rival.growth <= 0:
            return float(left / step)
        # in proportion to the time, as fine modes decay: rkc's first 147 for the Brusselator on 24 x 24 cells are a twentieth of later
        # ones. Without this it had no second turn, and auto, which found it cheaper at t = 1.1 only, took 1.6 times as long as rkc
        grown = rival.growth * left / step
        return float(left * max(math.log1p(grown) / (grown * step), 1 / max(step, SURE * self._length)))

    def _is_clear(self, run: ExplicitRun) -> bool:
        """Whether the rival is ahead, and has gone far enough for this to last: an eighth of what it expects to need."""
        rival = self._run
        return self._is_ahead(run) and (not rival.goes_on or rival.tried >= EIGHTH * self._rest_of_rival())

    def _waits(self, run: ExplicitRun, left: float) -> bool:
        """Whether the stiff run is not to have a turn yet: it is behind, its steps do not grow, and no long rest makes it cheap to see."""
        rival = self._run
        if rival is None or not rival.goes_on or left > FAR * run.tried or rival.coming > rival.step or self._is_ahead(run):
            return False
        return self._budget(run.tried, left) < LATER * rival.tried

    def _repays(self, left: float) -> bool:
        """Whether so many explicit steps cost more than the Jacobian does, or there is none: this is cheaper to see than stability."""
        costs = self.problem.costs
        return costs is None or self.problem.linear is None or left * self._step >= costs.derivation()

    @cached_property
    def _step(self) -> float:
        """The cost of an explicit step."""
        costs = self.problem.costs
        assert costs is not None
        return step_cost(self.method, costs.right(), self.problem.rhs.layout.size)

    def _choose(self, run: ExplicitRun, radius: float, real: bool) -> None:
        """Which method is the rival, by what it will cost: in explicit steps, for the rest."""
        costs, dtype = self.problem.costs, self.problem.rhs.dtype
        rtol = max(self.options.get("rtol", 1e-6), least_rtol(dtype))
        # below that many roundings a step has few stages and its error is rounding: in float32 440,000 steps at 1e-5, of tsit5 130,000
        if costs is None or not real or rtol < ROUNDINGS * np.finfo(dtype).eps:
            return
        staged, stiff = (c * rtol**-p for c, p in (STEPS[STAGES], STEPS[STIFF]))
        self._name, self._radius, self._length = STIFF, radius, (self.until - run.t) / staged
        staged *= self._share_of(STAGES, self._length)
        try:  # what each takes once, to derive or to compile, does not count: counted, it sent small systems to rkc, six times as slow
            stiff = math.inf if self._out else stiff * self._share_of(STIFF, 0.0)
        except CodegenError:
            stiff = math.inf
        if staged < min(stiff, self._rest(run)):
            self._name = STAGES

    @property
    def _at_once(self) -> bool:
        """Whether the rival is one in lanes, which would begin again."""
        return self.strict and self._name == STIFF

    def _make(self) -> Any:
        """The rival's run. Raises SolveError where there is none."""
        if self._name == STAGES:
            from odesim.stepper.wide_run import StabilisedRun

            return StabilisedRun(self.problem, STABILISED[STAGES], self.save, **self.options)
        from odesim.stepper.rosenbrock_run import make_run

        return make_run(self.problem, STIFF, self.save, strict=self.strict, **self.options)

    def _budget(self, tried: float, left: float) -> int:
        """The number of steps that the stiff method may take beside an explicit run with so many steps tried and so many left.

        Raises CodegenError where the Jacobian is too large.
        """
        return int((min(MUCH * tried, HALF * left) if self._at_once else SHARE * tried) / self._share())

    def _share(self, length: float | None = None) -> float:
        """The cost of the rival's next step, or of one of this length, in explicit ones. Raises CodegenError: the Jacobian is too large."""
        if length is None:
            length = max(self._run.coming, self._run.step) if self._run is not None and self._run.tried else self._length
        return self._share_of(self._name, length)

    def _share_of(self, name: str, length: float) -> float:
        """The same of a method. Raises CodegenError."""
        costs, n = self.problem.costs, self.problem.rhs.layout.size
        assert costs is not None
        if name == STAGES:
            # of a stage: a right-hand side, and a sum of five states and the result at the .06 ns of tableau.step_cost
            cost = (stages_for(length * self._radius) + 1) * (costs.right() + 6 * 0.06 * n)
        else:
            cost = costs.compiled() if self.strict else costs.stiff(ROSENBROCK[STIFF].stages)
        return cost / self._step


def rounded(count: float) -> str:
    """A number as text: 7e+05 as 7e5, small numbers unchanged."""
    if not 1e4 <= count < np.inf:
        return f"{count:.0f}"
    digits, power = f"{count:.0e}".split("e")
    return f"{digits}e{int(power)}"
