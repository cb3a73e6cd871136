"""Chooses the engine that integrates the members of a request."""

from dataclasses import replace
from typing import Any

from odesim.base.backends import SERIES
from odesim.ensembles.members import Members
from odesim.ensembles.request import EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.run.auto import PILOT, STIFF, explicit_name
from odesim.run.engines import ClockEngine, HandOver, SingleEngine
from odesim.run.lane_kernel import stiff_key
from odesim.run.lane_plan import KernelPlan
from odesim.run.lanes import LaneEngine, kernel_name, lane_engine, lane_plan, method_obstacle
from odesim.run.looped_lanes import LoopLaneEngine, loop_lane_engine
from odesim.run.noise import with_rates
from odesim.run.observables import observed_key
from odesim.run.problem import make_costs, with_slack
from odesim.run.threads import DeviceEngine, device_engine, source_of
from odesim.stepper.tableau import step_cost
from odesim.stepper.taylor import no_series
from odesim.targets.cache import module_name
from odesim.transforms.events import resets_key

AT_ONCE = 150
"""Operations up to which a kernel of written-out lanes is compiled in some 3 s, as soon as any other, for any number of members."""
SOON = 400
"""Operations up to which it is compiled in some 6 s: for any number of members that have no lanes with loops."""
ALONE = 2e5
"""Nanoseconds of Python that an explicit run of one member takes beside its steps."""
COMPILED_LINE = 0.015
"""Seconds to compile an operation of a larger kernel."""
STEPS = 100
"""Steps of a member, before anything is known of it."""
STIFF_STEP = 4e5
"""Nanoseconds of a stiff step of one member whose kernel is not compiled."""

FEW = 32
"""Members from which on lanes with loops are worth their own right-hand side: two calls for each lane."""
LOOPS = 0.15
"""The time of lanes with loops, of that of one member after another: measured 0.07 to 0.3, see benchmarks/RESULTS.md."""

AnyEngine = LaneEngine | LoopLaneEngine | SingleEngine | ClockEngine | DeviceEngine | HandOver


def make_engine(request: EnsembleRequest, members: Members) -> AnyEngine:
    """The engine: written-out lanes, lanes with loops or one member after another, whichever is done first; or a GPU's threads.

    Raises SolveError for a request that a GPU's threads cannot do.
    """
    shared, per_member = slack_numbers(request, members), members.varying
    if request.channels:
        shared = with_rates(request.right.system, shared)
    if request.rescaled is not None and not request.options.on.gpu:
        return ClockEngine(request, shared, request.rescaled)
    if request.options.method == "auto":
        return hand_over(request, members)
    if request.options.on.gpu:
        return device_engine(request, shared, per_member)
    lanes, count = lane_engine(request, shared, per_member), members.source.count
    if request.options.method in SERIES:
        if isinstance(plan := lane_plan(request, shared, per_member), str):
            raise no_series(plan)
        return lanes or SingleEngine(request, shared)
    if lanes is not None and (lines_of(lanes) <= AT_ONCE or (lanes.plan.stiff and lanes.plan.strict)):
        return lanes
    loops = loop_lane_engine(request, shared, per_member) if count >= FEW and not request.channels else None
    soon = lanes is not None and loops is None and lines_of(lanes) <= SOON
    if lanes is not None and (soon or worth_compiling(lanes, count, LOOPS if loops else 1.0)):
        return lanes
    return loops or SingleEngine(request, shared)


def lines_of(engine: LaneEngine) -> int:
    """The number of operations that the kernel of an engine has written out."""
    return len(engine.plan.linear.code) if engine.plan.stiff else len(engine.plan.formulas.code)


def worth_compiling(engine: LaneEngine, count: int, share: float) -> bool:
    """Whether `count` members are as soon done in written-out lanes, their kernel compiled first, as in another way.

    share: what that way takes, of the time of one member after another. Both times are estimates from counted operations, the same on
    every machine.
    """
    plan, request = engine.plan, engine.request
    costs = make_costs(request.right, engine.numbers.sizes, lambda: None)
    steps = STEPS * (STIFF_STEP if plan.stiff else step_cost(plan.method, costs.right(), request.layout.size))
    return share * 1e-9 * (ALONE + steps) * count >= COMPILED_LINE * lines_of(engine)


def slack_numbers(request: EnsembleRequest, members: Members) -> Numbers:
    """The parameters that all members share, with the slack of guards."""
    return with_slack(request.system, members.shared, request.options)


def hand_over(request: EnsembleRequest, members: Members) -> AnyEngine:
    """The engine of the method auto: explicit lanes with a stiff method behind them, else a single run of auto for each member."""
    shared = slack_numbers(request, members)
    explicit = make_engine(replace(request.changed(method=explicit_of(request)), look=PILOT), members)
    if isinstance(explicit, SingleEngine):
        return SingleEngine(request, shared)

    def make(changed: EnsembleRequest) -> AnyEngine | None:
        bound = request.strict or request.options.on.gpu
        if bound and not isinstance(lane_plan(changed, shared, members.varying), KernelPlan):
            return None  # with other bits on other machines, or not there
        return make_engine(changed, members)

    return HandOver(request, shared, explicit, make, lambda engine: not isinstance(engine, SingleEngine))


def members_at_once(engine: Any) -> int:
    """The number of members that make one call of the engine efficient; of a processor's engine any chunk is."""
    return engine.members_at_once if isinstance(engine, DeviceEngine | HandOver) else 1


def engine_key(engine: AnyEngine) -> str:
    """The name of the compiled code that integrates and observes members: the same name, the same bits."""
    if isinstance(engine, HandOver):
        return f"{engine_key(engine.explicit)}_{stiff_key()}"
    seen = observed_key(engine.request.system, engine.request.outputs.observe)
    if isinstance(engine, SingleEngine | ClockEngine):
        return (engine.request.rescaled or engine.request.right).key + seen + resets_key(engine.request.system)
    if isinstance(engine, LoopLaneEngine):
        return engine.key + seen
    if isinstance(engine, DeviceEngine):
        return module_name(source_of(engine.plan), f"{engine.plan.name.replace('.', '_')}_threads") + seen
    return kernel_name(engine.plan) + seen + resets_key(engine.request.system)  # what is set is in no kernel


def auto_rule(request: EnsembleRequest) -> str:
    """In words, how auto chooses the method of each member."""
    if request.options.step is not None:
        return "tsit5: a fixed step was asked for"
    rule = f"{explicit_of(request)}; {STIFF} for members whose steps are limited by stability, or would be more than max_steps"
    obstacle = method_obstacle(request.changed(method=STIFF)) if request.strict or request.options.on.gpu else ""
    return f"{explicit_of(request)}; {STIFF} has no lanes for {obstacle}" if obstacle else rule


def explicit_of(request: EnsembleRequest) -> str:
    """The explicit method with which auto starts members."""
    return explicit_name(request.options.rtol, request.options.step, between=request.saves or bool(request.outputs.events))
