"""Makes a Problem, as integrators take it, of a System and numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Symbol

from odesim.base.arrays import Array, Layout
from odesim.base.backends import RUN, STIFF
from odesim.base.device import check_fits
from odesim.base.errors import CodegenError, SolveError, SpecError
from odesim.base.memo import IdentityKey, Memo
from odesim.base.options import REST, RunOptions
from odesim.inputs.bind import Numbers
from odesim.ir import sizes as counts
from odesim.ir.lowering import default_sizes
from odesim.stepper.callback import CallbackSystem
from odesim.stepper.laws import Laws, LawSpec
from odesim.stepper.methods import METHODS
from odesim.stepper.problem import CompiledSlopes, Costs, EventSpec, Guarded, Problem, StiffRun
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.tableau import step_cost
from odesim.symbolic.parts import free_in_order, key_indices
from odesim.symbolic.system import System
from odesim.targets.compiled import CompiledRHS, compile_system
from odesim.transforms.events import SLACK, Guard, add_guards, is_affine
from odesim.transforms.modes import HeldSystem

if TYPE_CHECKING:
    from odesim.targets.cuda_system import CudaRHS
    from odesim.targets.linearization import BoundLinear
    from odesim.targets.products import BoundProducts


class Derived(dict[Callable[[System], Any], Any]):
    """{function of a System: what it returns}, made where it is first asked for; after that it takes no call."""

    def __init__(self, system: System) -> None:
        self.system = system

    def __missing__(self, make: Callable[[System], Any]) -> Any:
        self[make] = make(self.system)
        return self[make]


@dataclass(frozen=True, eq=False)
class Parts:
    """A System as runs need it, on one backend: what no number changes, each part made where it is first asked for."""

    system: System
    backend: str
    dtype: str
    strict: bool

    @cached_property
    def compiled(self) -> CompiledRHS:
        """The right-hand side, its sums in the order that is cheapest with the System's own sizes."""
        return compile_system(self.system, backend=self.backend, dtype=self.dtype, strict=self.strict)

    def compiled_for(self, sizes: Mapping[str, int]) -> CompiledRHS:
        """The right-hand side with sums in the order that is cheapest with these sizes."""
        if not self.compiled.program.orders or sizes == self._usual_sizes:
            return self.compiled
        of = self.compiled.program.orders_for
        orders, same = (_ORDERS((IdentityKey(self), tuple(sorted(n.items()))), partial(of, n)) for n in (sizes, self._usual_sizes))
        if orders == same:
            return self.compiled
        return _ORDERED((IdentityKey(self), orders), lambda: CompiledRHS(self.system, self.backend, self.dtype, self.strict, dict(sizes)))

    @cached_property
    def _usual_sizes(self) -> dict[str, int]:
        return default_sizes(self.system)

    @cached_property
    def derived(self) -> "Derived":
        """What is derived from the System for a run: its Observer, dimensions, what events read and set."""
        return Derived(self.system)

    @cached_property
    def held(self) -> HeldSystem:
        """The System with its jumping conditions held."""
        from odesim.run.modes import held_of

        return held_of(self.system)

    @cached_property
    def running(self) -> "Parts":
        """The parts of the held form, which is what integrators run."""
        return self if self.held.system is self.system else parts_of(self.held.system, self.backend, self.dtype, self.strict)


_PARTS: Memo[Parts] = Memo()
_ORDERED: Memo[CompiledRHS] = Memo()
_ORDERS: Memo[tuple[tuple[Symbol, ...], ...]] = Memo()
_CUDA: Memo["CudaRHS"] = Memo()


def make_problem(compiled: CompiledRHS, numbers: Numbers, *, laws: bool = True, stays: bool = False) -> Problem:
    """The Problem of a System with numbers. laws: watch the invariants; stays: saved states remain on the GPU that computes them."""
    system, on = compiled.system, compiled.on
    if any((event.resets or event.at_start) and not event.terminal for event in system.events):
        raise SolveError(
            f"{system.name} has events that set states, or happen at the start, which this integration does not do: take odesim.integrate"
        )
    rhs = right_side(compiled, numbers, stays=stays)
    events, law_specs = specs_of(compiled, numbers.sizes)
    y0 = rhs.layout.join(numbers.initial, compiled.dtype)

    bound: list[BoundLinear] = []

    def linear() -> "BoundLinear":
        if not bound:  # bound once: what auto asks for its cost, the run then has
            bound.append(compiled.linear.bind(numbers.sizes, numbers.params, rhs.layout))
        return bound[0]

    watched = make_laws(compiled, numbers, rhs, law_specs) if laws and law_specs else None
    if on.gpu:  # where no Jacobian is computed
        return Problem(rhs, y0, numbers.t0, numbers.t1, events, system.name, laws=watched, clocked=system.growth is not None)

    def alone(*arguments: Any, **options: Any) -> StiffRun:
        from odesim.run.lane_run import LaneRun

        return LaneRun(compiled, numbers, *arguments, **options)

    lanes = alone if set(STIFF) <= set(on.uses[RUN].strict) else None
    slopes = partial(compiled_slopes, compiled, linear) if on.compiles else lambda: None
    products = partial(products_of, compiled, linear)
    costs, clocked = make_costs(compiled, numbers.sizes, linear), system.growth is not None
    return Problem(rhs, y0, numbers.t0, numbers.t1, events, system.name, linear, slopes, products, costs, lanes, watched, clocked)


def compiled_slopes(compiled: CompiledRHS, linear: Callable[[], "BoundLinear"]) -> CompiledSlopes | None:
    """The derivatives of a right-hand side with numbers as compiled code; None where another form of the Jacobian is better."""
    derivatives = linear()
    chain = derivatives.eliminated
    if chain is None:
        return None
    bound = {values.stem: values.bind(derivatives.sizes, derivatives.params, derivatives.layout) for values in compiled.slopes}
    try:
        _ = [values.compiled.text for values in bound.values()]
    except CodegenError:  # a derivative that numpy alone computes
        return None
    return CompiledSlopes(chain.entries, bound.get("slopes"), bound.get("time_slopes"))


def products_of(compiled: CompiledRHS, linear: Callable[[], "BoundLinear"]) -> "BoundProducts | None":
    """The derivatives of a right-hand side with numbers as products; None where a matrix is cheaper."""
    bound = linear()
    stages = max(m.stages for m in ROSENBROCK.values())
    if product_cost(compiled, bound, stages, 0.0) is None:
        return None
    from odesim.targets.products import BoundProducts

    return BoundProducts(bound, compiled.products.bind(bound.sizes, bound.params, Layout((), ())))


def product_cost(compiled: CompiledRHS, bound: "BoundLinear", stages: int, right: float) -> float | None:
    """The cost of a stiff step by products with the Jacobian; None where a matrix is cheaper. right: of a right-hand side."""
    from odesim.targets.linearization import MOST_DENSE

    if not (compiled.on.compiles and bound.is_large):
        return None
    n = bound.layout.size
    try:
        cost = counts.product_step_cost(compiled.products.program, bound.sizes, n, stages, right)
    except SpecError:  # a name that the direction needs is taken
        return None
    if n > MOST_DENSE or cost < counts.stiff_step_cost(bound.linear.derivatives.program, bound.chain, bound.sizes, stages, right):
        return cost
    return None


def make_laws(compiled: CompiledRHS, numbers: Numbers, rhs: Any, specs: tuple[LawSpec, ...]) -> Laws:
    """The Laws of the System's invariants. Raises ParamError if they are too large."""
    laws, sizes, layout = compiled.laws, numbers.sizes, rhs.layout
    check_fits(f"{compiled.system.name}: watching the invariants", {f"{s.name!r} of shape {s.shape}": 5 * s.size for s in specs}, 8)
    if compiled.on.gpu:
        return Laws(specs, rhs.laws)
    if compiled.on.compiles:
        return Laws(specs, laws.bind(sizes, numbers.params, layout))
    values = _as_dtype(numbers.params, compiled.dtype)

    def look(t: float, y: Array, g: Array) -> None:
        values_of = laws.arrays(sizes, {**values, **layout.split(y), "t": t})
        g[...] = np.concatenate([np.ravel(values_of[f"law{k}"]) for k in range(len(specs))])

    return Laws(specs, CallbackSystem(rhs, layout, compiled.dtype, look, sum(s.size for s in specs)))


def held_problem(
    compiled: CompiledRHS,
    held: HeldSystem | None,
    numbers: Numbers,
    *,
    stop_at: Sequence[float] = (),
    laws: bool = True,
    stays: bool = False,
) -> Problem:
    """The Problem of a held System (odesim.transforms.modes), whose conditions change where a run comes to them.

    compiled: the right-hand side of held.system. stop_at: more times that runs step to exactly.
    """
    if held is None or not (held.stops or len(stop_at)):
        return make_problem(compiled, numbers, laws=laws, stays=stays)
    from odesim.run.modes import Conditions, Switching
    from odesim.run.resets import Resetting

    conditions = Conditions(held, numbers.sizes, numbers.params, numbers.t0, numbers.t1, tuple(stop_at))
    switching = Switching(conditions, compiled.layout(numbers.sizes), compiled.dtype)
    if not (held.switches or held.watched or len(switching.stops)):
        return make_problem(compiled, numbers, laws=laws, stays=stays)
    resets = Resetting(switching, 1) if held.watched else None
    problem = make_problem(compiled, replace(numbers, params={**numbers.params, **switching.modes}), laws=laws, stays=stays)
    switching.attach(problem.rhs)
    lanes = problem.lanes if compiled.strict else None  # segments are short
    return replace(problem, switches=switching, resets=resets, lanes=lanes)


def switched_problem(parts: Parts, numbers: Numbers, options: RunOptions, *, stays: bool = False) -> tuple[CompiledRHS, Problem]:
    """The compiled right-hand side of a System with its jumping conditions held, and the Problem of a run with these numbers."""
    held = parts.held if options.step is None else parts.held.in_fixed_steps
    compiled = parts.running.compiled_for(numbers.sizes)
    return compiled, held_problem(compiled, held, numbers, stop_at=options.stop_at, stays=stays)


def right_side(compiled: CompiledRHS, numbers: Numbers, *, stays: bool = False) -> Any:
    """The right-hand side with numbers, as its backend computes it. stays: saved states remain on the GPU that computes them."""
    module, _, name = compiled.on.right.partition(":")
    return getattr(import_module(module), name)(compiled, numbers, stays)


def named_slopes(right: Any) -> Callable[[float, Mapping[str, Array]], Mapping[str, Array]]:
    """A right-hand side with numbers as a function (t, {state: array}) -> {state: its slope in float64}, as an Observer calls it."""

    def slopes(t: float, now: Mapping[str, Array]) -> Mapping[str, Array]:
        out = np.empty(right.layout.size, right.dtype)
        right(t, right.layout.join(now, right.dtype), out)
        return right.layout.split(out.astype(np.float64))

    return slopes


def numba_right_side(compiled: CompiledRHS, numbers: Numbers, stays: bool) -> Any:
    """The right-hand side in C functions."""
    return compiled.bind(numbers.sizes, numbers.params)


def cuda_right_side(compiled: CompiledRHS, numbers: Numbers, stays: bool) -> Any:
    """The right-hand side of a GPU."""
    return cuda_rhs(compiled).bind(numbers.sizes, numbers.params, stays=stays)


def cuda_rhs(compiled: CompiledRHS) -> "CudaRHS":
    """The right-hand side for a GPU, made once a process."""
    from odesim.stepper.device import driver_text
    from odesim.targets.cuda_system import CudaRHS

    return _CUDA(IdentityKey(compiled), lambda: CudaRHS(compiled, driver_text))


def _as_dtype(params: Mapping[str, Any], dtype: str) -> dict[str, Any]:
    """The parameters in the dtype of the states, since numpy computes in the widest type it is given."""
    return {n: v.astype(dtype, copy=False) if isinstance(v, np.ndarray) and v.dtype == np.float64 else v for n, v in params.items()}


def numpy_right_side(compiled: CompiledRHS, numbers: Numbers, stays: bool) -> Any:
    """The right-hand side in numpy behind the integrator's C functions."""
    layout = compiled.layout(numbers.sizes)
    sizes = numbers.sizes
    values = _as_dtype(numbers.params, compiled.dtype)

    def right(t: float, y: Array, out: Array) -> None:
        slopes = compiled.arrays(sizes, {**values, **layout.split(y), "t": t})
        for name, view in layout.split(out).items():
            view[...] = slopes[f"d_{name}"]

    def events(t: float, y: Array, g: Array) -> None:
        assert compiled.events_arrays is not None
        values_of = compiled.events_arrays(sizes, {**values, **layout.split(y), "t": t})
        g[...] = np.concatenate([np.ravel(values_of[f"event{k}"]) for k in range(len(values_of))])

    count = compiled.lengths(*sizes.items()).n_events
    return CallbackSystem(right, layout, compiled.dtype, events if count else None, count)


def guard_names(system: System) -> frozenset[str]:
    """The names of the guards, which are not events of the model."""
    return frozenset(e.name for e in system.events if isinstance(e, Guard))


def dimensions(system: System) -> dict[str, tuple[str, ...]]:
    """{state, observable or event: names of its axes after time}."""
    out = {str(name): tuple(i.name for i in key_indices(key)) for name, key in zip(system.states, system.equations, strict=True)}
    for name, e in system.observables.items():
        out[name] = () if callable(e) and not hasattr(e, "free_symbols") else tuple(i.name for i in free_in_order(e, system.axes))
    for event in system.events:
        out.setdefault(event.name, tuple(i.name for i in free_in_order(event.expr, system.axes)))
    return out


def parts_of(system: System, backend: str, dtype: str, strict: bool) -> Parts:
    """The Parts of a System, made once a process."""
    return _PARTS((IdentityKey(system), backend, dtype, strict), lambda: Parts(system, backend, dtype, strict))


def compiled_for(system: System, sizes: Mapping[str, int], backend: str, dtype: str, strict: bool) -> CompiledRHS:
    """The compiled right-hand side of a System whose sums are in the order that is cheapest with these sizes, made once a process."""
    return parts_of(system, backend, dtype, strict).compiled_for(sizes)


_GUARDED: Memo[System] = Memo()
_SPECS: Memo[tuple[tuple[EventSpec, ...], tuple[LawSpec, ...]]] = Memo()  # whether an event is affine takes sympy a tenth of a short run


def guarded_system(system: System, options: RunOptions) -> System:
    """The System with a guard for each state whose symbol assumes a set, made once a process."""
    names = tuple(sorted(options.atol)) if isinstance(options.atol, Mapping) else ()
    return _GUARDED((IdentityKey(system), names), lambda: add_guards(system, names))


def with_slack(system: System, numbers: Numbers, options: RunOptions) -> Numbers:
    """Numbers for a System that may have guards: a state within its absolute tolerance of its set counts as inside."""
    if not any(isinstance(e, Guard) for e in system.events):
        return numbers
    tolerances = options.atol if isinstance(options.atol, Mapping) else {REST: options.atol}
    atol: dict[str, Any] = {REST: RunOptions.atol, **tolerances}
    least = max(1e-300, float(np.finfo(options.dtype).tiny))
    slack = {SLACK: max(atol[REST], least)}
    for name in (name for name in atol if f"{SLACK}_{name}" in (p.name for p in system.params)):
        slack[f"{SLACK}_{name}"] = np.broadcast_to(np.maximum(atol[name], least), numbers.initial[name].shape).copy()
    return replace(numbers, params={**numbers.params, **slack})


def specs_of(compiled: CompiledRHS, sizes: Mapping[str, int]) -> tuple[tuple[EventSpec, ...], tuple[LawSpec, ...]]:
    """The EventSpecs and LawSpecs of the System with these sizes, made once a process."""
    system = compiled.system
    if not (system.events or system.invariants):
        return (), ()

    def make() -> tuple[tuple[EventSpec, ...], tuple[LawSpec, ...]]:
        lengths = compiled.lengths(*sizes.items())
        guards = (Guarded(e.state, e.sign, e.words) if isinstance(e, Guard) else None for e in system.events)
        facts = zip(system.events, lengths.events, guards, strict=True)
        events = (EventSpec(e.name, s, e.direction, e.terminal, g, bool(e.resets), is_affine(system, e.expr)) for e, s, g in facts)
        laws = (LawSpec(law.name, law.sense, s, law.tol) for law, s in zip(system.invariants, lengths.laws, strict=True))
        return tuple(events), tuple(laws)

    return _SPECS((IdentityKey(compiled), *sizes.items()), make)


# Costs of right-hand sides and steps, from counted operations. `auto` compares methods by them.

_COSTS: Memo[dict[Any, float]] = Memo()
LANE = 6.0
"""Cost of a Rosenbrock step in lanes, in steps of tsit5, without the elimination of a dense Jacobian."""


def make_costs(compiled: CompiledRHS, sizes: Mapping[str, int], linear: Callable[[], Any]) -> Costs:
    """Costs of the right-hand side, its derivation and stiff steps, each computed when it is first used.

    linear(): the derivatives of the right-hand side.
    """
    known: dict[Any, float] | None = None

    def once(what: Callable[..., float], *of: int) -> float:
        nonlocal known
        if known is None:  # where whole numbers are parameters the pattern of the Jacobian differs, and with it the cost of a step
            whole = any(p.integer for p in compiled.system.params)
            known = {} if whole else _COSTS((IdentityKey(compiled), *sizes.items()), dict)
        if (what.__name__, *of) not in known:
            known[what.__name__, *of] = what(*of)
        return known[what.__name__, *of]

    def right() -> float:
        return counts.right_side_cost(compiled.program, sizes, compiled.backend)

    def derive() -> float:
        return counts.derivation_cost(compiled.program)

    def stiff(stages: int) -> float:
        bound = linear()
        slopes, sparse = bound.linear.derivatives.program, bound.eliminated if compiled.on.compiles else None
        if sparse is not None:
            return counts.eliminated_step_cost(slopes, sparse.entries, bound.sizes, stages, once(right))
        by_products = product_cost(compiled, bound, stages, once(right))
        if by_products is not None:
            return by_products
        return counts.stiff_step_cost(slopes, bound.chain, bound.sizes, stages, once(right))

    def kernel() -> float:
        return stiff_lanes_step(once(right), linear())

    return Costs(*(partial(once, what) for what in (right, derive, stiff, kernel)))


def stiff_lanes_step(right: float, bound: Any) -> float:
    """Nanoseconds of one Rosenbrock step in all lanes. right: of a right-hand side; bound: its derivatives."""
    from odesim.ir.jacobian import Chain

    n, chain = bound.layout.size, bound.chain
    dense = counts.FLOP * (2 / 3 * n**3 + 16 * n**2) if isinstance(chain, Chain) and chain.plan.block_extent is None else 0.0
    return LANE * step_cost(METHODS["tsit5"], right, n) + dense
