"""Checks of a System: each failure is one sentence with the expression."""

import re
from collections.abc import Mapping
from itertools import permutations
from keyword import iskeyword
from math import isfinite
from numbers import Integral, Real
from typing import Any

import sympy as sp
from sympy import Indexed, IndexedBase, Symbol
from sympy.logic.boolalg import Boolean

from odesim.base.errors import SpecError, counted, nearest, no_such, shorten, value_text
from odesim.symbolic.assumptions import check_assumptions
from odesim.symbolic.definition import Definition, element_text, error_part
from odesim.symbolic.functions import FUNCTIONS
from odesim.symbolic.indices import base_name, our_element, time
from odesim.symbolic.layered import bounded, layers_in, names_read, with_layers
from odesim.symbolic.noise import check_noise
from odesim.symbolic.parts import Event, Key, checked_expression, free_in_order, key_indices
from odesim.symbolic.reductions import REDUCTIONS, free_indices, subexpressions
from odesim.symbolic.scope import LONGEST, NameScope
from odesim.symbolic.times import KNOWN, BetweenKinksError, UnknownTimesError, zero_times

# Names that generated code, or a stored run, has for itself. Generated code keeps the names of a model, as people read it.
WORDS = frozenset((
    "COMBINE", "EVENTS", "STAGE", "abs", "acos", "add_scaled", "asin", "asinh", "atan", "atan2", "blas_product", "block", "block_dot",
    "block_max", "block_sum", "combine", "combine_block", "constant_weight", "cos", "cosh", "element", "erf", "events", "exp",
    "expm1", "find_events", "float", "float32", "float64", "floor", "form", "ints", "kernel", "load", "log", "log1p", "max",
    "maximum", "min", "minimum", "njit", "options", "part_of", "pow", "powi", "product", "range", "reload", "rhs", "row_block",
    "scale_weights", "sin", "sinh", "split_terms", "sqrt", "stage", "store", "tan", "tanh", "tree_max", "tree_sum", "vector",
    "ahead_", "amounts_", "at_", "base_", "blocks_", "coef_", "early_", "gemm_", "here_", "hi_", "keep_", "late_", "lo_", "more_", "ns_",
    "coef0_", "height_", "i_e_", "n_e_", "row_", "rows0_", "total_", "width_",
    "add_down", "add_up", "clip", "invert", "on_axis", "wrap",
    "numbers_", "out_", "part_", "rows_", "scale_", "scales_", "start_", "state_", "table_", "terms_", "value_", "weights_", "work_",
    *FUNCTIONS.values(), "lambertw_lower",
))  # fmt: skip

RESULTS = frozenset(("attempt", "initial", "member", "occurrence", "params", "points", "rejected", "status", "steps", "t_end", "time"))
"""Names of arrays and dimensions in results, beside states and observables."""
SHAPES = re.compile(r"([A-Za-z]|acc)\d*_|event\d+")  # y_, k0_, acc0_, event1


def check_system(s: Definition) -> None:
    """Raises SpecError unless every part of s fits the others."""
    with error_part("name"):
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", str(s.name)) or len(s.name) > 100:
            raise SpecError(f"{str(s.name)[:40]!r} is not a name for a System: write words with dots between them, such as family.model")
    if not s.equations:
        raise SpecError(f"{s.name}: there is no equation")
    _check_names(s)
    _check_sizes(s)
    for number, key in enumerate(s.equations):
        with error_part("equations", number):
            _check_state(s, key)
    scope = NameScope(s)
    for key, rhs in s.equations.items():
        with error_part("equations", list(s.equations).index(key)):
            scope.check(rhs, set(key_indices(key)), f"the equation of {key}")
    _check_initial(s, scope)
    for number, (name, e) in enumerate(s.observables.items()):
        if isinstance(e, sp.Basic):
            with error_part("observables", number):
                scope.check(e, set(s.axes), f"observable {name!r}")
    _check_views(s)
    check_display(s, scope)
    check_laws(s, scope)
    with error_part("noise"):
        check_noise(s, scope)
    if s.growth is not None:
        with error_part("growth"):
            scope.check(s.growth, set(), "growth")
    check_assumptions(s)
    with error_part("span"):
        _check_span(s)
    check_map(s)


def _check_span(s: Definition) -> None:
    try:
        times = tuple(s.span)
    except TypeError:
        times = ()
    if len(times) != 2 or not all(isinstance(t, Real) or (isinstance(t, sp.Expr) and t.is_real and t.is_number) for t in times):
        raise SpecError(f"{s.name}: span must be two numbers (t0, t1), not {value_text(s.span)}")
    if not (isfinite(times[0]) and isfinite(times[1]) and times[0] < times[1]):
        raise SpecError(f"{s.name}: span {s.span} does not go forward between finite times")


def _check_sizes(s: Definition) -> None:
    for i, extent in s.axes.items():
        parts = sp.expand(sp.sympify(extent)).as_coefficients_dict()
        whole = all(f.is_Integer and (x == 1 or x.is_Symbol) for x, f in parts.items())
        if not whole or any(x in s.axes for x in parts) or (set(parts) == {1} and parts[sp.S.One] < 1):
            raise SpecError(f"{s.name}: axis {i} runs over {extent}, which is no whole number from 1 and no sum of sizes")
    for number, (size, n) in enumerate(s.sizes.items()):
        with error_part("sizes", number):
            if isinstance(size, str):
                raise SpecError(f"{s.name}: sizes has the text {size!r} as a key: write it without quotes, {value_text(size)[1:-1]}")
            if not isinstance(size, Symbol):
                raise SpecError(f"{s.name}: sizes has the key {value_text(size)}, which is no size: write one of sizes()")
            name = str(size)
            if name not in s.size_names:
                raise SpecError(f"{s.name}: {no_such('size', name, s.size_names, 'sizes')}")
            if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
                raise SpecError(f"{s.name}: size {name} must be a whole number of at least 1, not {value_text(n)}")


def _check_views(s: Definition) -> None:
    """Raises SpecError for a view of an array on what does not have its axes; those of a function of numpy are not known before a run."""
    shapes = {**s.shapes, **{name: s.observable_indices(name) for name, e in s.observables.items() if isinstance(e, sp.Basic)}}
    for number, view in enumerate(s.views):
        rank, (least, most) = len(shapes.get(view.name, ())), view.axes
        if view.name in shapes and not least <= rank <= most:
            with error_part("views", number):
                needs = f"at least {counted(least, 'axis', 'axes')}" + f" and at most {most}" * isfinite(most)
                raise SpecError(
                    f"{s.name}: {type(view).__name__} shows an array of {needs}, and {view.name} has "
                    f"{counted(rank, 'axis', 'axes')}: write Lines or Log"
                )


def _check_names(s: Definition) -> None:
    names = [*s.states, *(p.name for p in s.params)]
    indices = [i.name for i in s.axes]
    for name in names:
        if names.count(name) > 1:
            kinds = ["state"] * s.states.count(name) + ["parameter"] * [p.name for p in s.params].count(name)
            twice = f"two {kinds[0]}s have the name {name!r}" if len(set(kinds)) == 1 else f"{name!r} is a state and also a parameter"
            raise SpecError(f"{s.name}: {twice}")
    for name in (*names, *s.size_names, *indices):
        if len(name) > LONGEST:
            raise SpecError(f"{s.name}: the name {shorten(name, 60)!r} has more than {LONGEST} characters")
        if iskeyword(name):
            raise SpecError(f"{s.name}: {name!r} is a keyword of Python; write {name}_")
        if not name.isidentifier() or name.startswith("_"):
            raise SpecError(f"{s.name}: {name!r} is not a plain name, such as alpha or x_1: letters, digits and _, a letter first")
        if name == time.name:
            raise SpecError(f"{s.name}: {name!r} is the time, and also a state or parameter")
    summed = {lim[0].name for total in subexpressions(with_layers(s.equations.values()), *REDUCTIONS) for lim in total.limits}
    summed |= {i.name for layer in layers_in(*s.equations.values()) for i in layer.along}
    for kind, parts in (("event", s.events), ("invariant", s.invariants), ("constraint", s.constraints)):
        names_of_kind = [part.name for part in parts]
        for name in names_of_kind:
            if names_of_kind.count(name) > 1:
                raise SpecError(f"{s.name}: two {kind}s have the name {name!r}")
    for name in (*s.states, *s.observables, *indices):
        if name in RESULTS:
            raise SpecError(f"{s.name}: {name!r} cannot be the name of a state, observable or index: a stored run has its own {name}")
        if not name.isidentifier():
            raise SpecError(f"{s.name}: {name!r} cannot be the name of a state, observable or index: write letters, digits and _")
    rates = {f"d_{state}" for state in s.states}
    for name in (*names, *s.size_names, *indices, *sorted(summed)):
        if name == time.name:
            raise SpecError(f"{s.name}: {name!r} is the time, and also an index, size, state or parameter")
        if name in rates or (name in WORDS or SHAPES.fullmatch(name) is not None):
            other = f"{name.rstrip('_')}_1"
            raise SpecError(f"{s.name}: {name!r} is a name that generated code has for itself; choose another, such as {other}")
    for other in (*s.size_names, *indices):
        if other in names:
            raise SpecError(f"{s.name}: {other!r} is a size or an index and also a state or parameter")
    for kind, others in (("a state", s.states), ("an index", indices)):
        for name in sorted(set(s.observables) & set(others)):
            raise SpecError(f"{s.name}: {name!r} is {kind} and also an observable")


def _check_state(s: Definition, key: Key) -> None:
    if isinstance(key, Symbol):
        return
    if not isinstance(key, Indexed):
        raise SpecError(f"{s.name}: {key} cannot be a state: write an element such as v[i], or a symbol")
    for i in key.indices:
        if i not in s.axes:
            raise SpecError(f"{s.name}: index {i} of {key} has no axis{nearest(str(i), map(str, s.axes))}")
    if len(set(key.indices)) < len(key.indices):
        raise SpecError(f"{s.name}: {key} uses an index twice")
    shape = key.base.shape
    if shape is None:
        raise SpecError(f"{s.name}: {key.base} needs a shape: IndexedBase({str(key.base.label)!r}, shape=(...))")
    for i, extent in zip(key.indices, shape, strict=True):
        if sp.expand(s.axes[i] - extent) != 0:
            raise SpecError(f"{s.name}: {key}: index {i} runs over {s.axes[i]}, but that axis of {key.base} has extent {extent}")


def _check_initial(s: Definition, scope: NameScope) -> None:
    keys = {base_name(k): k for k in s.initial}
    for key in s.equations:
        if base_name(key) not in keys:
            raise SpecError(f"{s.name}: no initial value for {key}")
    seen: dict[str, Key] = {}
    for number, (key, e) in enumerate(s.initial.items()):
        name = base_name(key)
        with error_part("initial", number):
            if name not in s.states:
                raise SpecError(f"{s.name}: {no_such('state', name, s.states, 'initial')}")
            if name in seen:
                raise SpecError(f"{s.name}: initial has two values for {name}, {seen[name]} and {key}: write one with Piecewise")
            seen[name] = key
            if isinstance(key, Indexed):
                _check_state(s, key)
            scope.check(e, set(key_indices(key)), f"the initial value of {key}", states=False)


MOST_TOLERANCE = 1e300  # largest tolerance
SENSES = ("constant", "nonincreasing", "nondecreasing", "nonnegative")


def check_display(s: Definition, scope: NameScope) -> None:
    """Raises SpecError unless each displayed name is free and stands for an expression."""
    taken = {**scope.words(), time.name: "the time"}
    for number, (name, e) in enumerate(s.display.items()):
        with error_part("display", number):
            if not name.isidentifier() or iskeyword(name):
                raise SpecError(f"{s.name}: display {name!r}: a name in formulas is one word of letters, digits and _")
            if name in taken:
                raise SpecError(f"{s.name}: display {name!r} is {taken[name]} already: give the expression another name")
            if name in s.observables and s.observables[name] != e:
                raise SpecError(f"{s.name}: display {name!r} is an observable with another expression: give one of them another name")
            scope.check(e, set(s.axes), f"display {name!r}")


def check_laws(s: Definition, scope: NameScope) -> None:
    for number, inv in enumerate(s.invariants):
        with error_part("invariants", number):
            _check_choice(inv.sense, SENSES, f"{s.name}: invariant {inv.name!r}: sense")
            scope.check(inv.expr, set(s.axes), f"invariant {inv.name!r}")
            if inv.tol is not None and not is_tolerance(inv.tol):
                raise SpecError(f"{s.name}: invariant {inv.name!r}: tol is a number of at least 0, or None, not {value_text(inv.tol)}")
            if not isinstance(inv.when, Boolean):
                raise SpecError(
                    f"{s.name}: invariant {inv.name!r}: when must be a condition, such as Eq(v[i], 0), not {value_text(inv.when)}"
                )
            scope.check(inv.when, set(s.axes), f"the condition of invariant {inv.name!r}")
            _check_timeless(inv.when, f"{s.name}: the condition of invariant {inv.name!r} is one on the start")
    for number, event in enumerate(s.events):
        with error_part("events", number):
            _check_choice(event.direction, (-1, 0, 1), f"{s.name}: event {event.name!r}: direction (1 up, -1 down, 0 both)")
            SpecError.unless(isinstance(event.terminal, bool), f"{s.name}: event {event.name!r}: terminal is True or False", event.terminal)
            SpecError.unless(isinstance(event.at_start, bool), f"{s.name}: event {event.name!r}: at_start is True or False", event.at_start)
            if not isinstance(event.doc, str):
                raise SpecError(f"{s.name}: event {event.name!r}: doc says in words what the event means, not {value_text(event.doc)}")
            scope.check(event.expr, set(s.axes), f"event {event.name!r}")
            check_resets(s, event, scope)
    for number, c in enumerate(s.constraints):
        with error_part("constraints", number):
            _check_choice(c.sense, ("==0", ">=0", "increasing"), f"{s.name}: constraint {c.name!r}: sense")
            SpecError.unless(is_tolerance(c.tol), f"{s.name}: constraint {c.name!r}: tol is a number of at least 0", c.tol)
            scope.check(c.expr, set(s.axes), f"constraint {c.name!r}")
            if c.sense == "increasing" and not free_indices(c.expr, set(s.axes)):
                raise SpecError(f"{s.name}: constraint {c.name!r}: what increases has an index, such as T[k], not {value_text(c.expr)}")
            _check_timeless(c.expr, f"{s.name}: constraint {c.name!r} is one on parameters, sizes and the start")
    for number, form in enumerate(s.closed_forms):
        with error_part("closed_forms", number):
            _check_choice(form.kind, ("explicit", "implicit"), f"{s.name}: closed form {form.name!r}: kind")
            if not isinstance(form.where, str):
                raise SpecError(f"{s.name}: closed form {form.name!r}: where says in words where it holds, not {value_text(form.where)}")
            if not callable(form.function) or isinstance(form.function, type):
                raise SpecError(f"{s.name}: closed form {form.name!r}: function must be a function, not {value_text(form.function)}")


def _check_timeless(e: Any, what: str) -> None:
    if e.has(time):
        raise SpecError(f"{what}, and cannot hold the time t")


def is_tolerance(tol: Any) -> bool:
    """Whether tol is a number of at least 0."""
    return isinstance(tol, int | float) and not isinstance(tol, bool) and 0 <= tol <= MOST_TOLERANCE


def _check_choice(value: Any, choices: tuple[Any, ...], what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, str | Integral) or value not in choices:
        raise SpecError(f"{what} must be one of {', '.join(map(str, choices))}, not {value_text(value)}")


def check_map(s: Definition) -> None:
    """Raises SpecError where a System in discrete time has what needs a derivative, or times that are no whole numbers."""
    if not s.discrete:
        return
    with error_part("span"):
        if not all(float(t).is_integer() and t >= 0 for t in s.span):
            raise SpecError(f"{s.name}: t counts the updates of a Map, so its span is two whole numbers from 0, not {s.span}")
    if s.growth is not None:
        with error_part("growth"):
            raise SpecError(f"{s.name}: growth is the rate of differential equations, and the time of a Map is whole numbers")
    for number, event in enumerate(s.events):
        if event.resets:
            with error_part("events", number):
                raise SpecError(f"{s.name}: event {event.name!r} sets states: in a Map write that into the updates, with Piecewise")
        if event.at_start:
            with error_part("events", number):
                raise SpecError(f"{s.name}: event {event.name!r} happens at the start: in a Map write that into the initial values")


def resets_as_written(system: str, event: Event, boundary: Mapping[Symbol, str]) -> dict[Any, sp.Expr]:
    """The resets of an event {state: expression}, with bound indices in their sums, and neighbours at the boundary of the System.

    {V[i]: e, V[j]: f} of an event on V[i] is e for its own component and f for all others. Raises SpecError where they are of another type.
    """
    where = f"{system}: event {event.name!r}"
    SpecError.unless(isinstance(event.resets, Mapping), f"{where}: resets must be a dict, such as {{v[i]: -v[i]}}", event.resets)
    for key in event.resets:
        if not isinstance(key, Indexed | Symbol):
            hint = f"an element of {key}" if isinstance(key, IndexedBase) else "a state, such as v[i]"
            raise SpecError(f"{where}: resets has the key {value_text(key)}: write {hint}")
    checked = {our_element(key): checked_expression(e, f"{where}: the reset of {key}") for key, e in event.resets.items()}
    of_event = event.expr.free_symbols
    for state, others in permutations(list(checked), 2):
        if (
            base_name(state) == base_name(others)
            and of_event.issuperset(key_indices(state))
            and not of_event.issuperset(key_indices(others))
        ):
            here = sp.And(*(sp.Eq(*pair) for pair in zip(state.indices, others.indices, strict=True) if pair[0] != pair[1]))
            # a choice, not a sum with a factor of 0: what is set elsewhere may be infinite at the event's own component
            checked[others] = sp.Piecewise((checked.pop(state), here), (checked[others], True))
    return {key: bounded(e, boundary) for key, e in checked.items()}


def axes_of_resets(s: Definition) -> dict[Symbol, Any]:
    """The axes of s, with those of the indices that only resets have, as j in {V[i]: 0, V[j]: V[j] + eps}: the extents of the state."""
    known = {base_name(key): key for key in s.equations}
    axes = dict(s.axes)
    for key in (key for event in s.events for key in event.resets if base_name(key) in known):
        state = known[base_name(key)]
        for i, along in zip(key_indices(key), key_indices(state), strict=False):  # another number of indices is refused later
            if along in s.axes and isinstance(i, Symbol):
                axes.setdefault(i, s.axes[along])
    return axes


def check_resets(s: Definition, event: Event, scope: NameScope) -> None:
    """Raises SpecError unless the event resets states of s, by expressions of its own indices and theirs."""
    if not event.resets:
        return
    where = f"{s.name}: event {event.name!r}"
    event_indices = set(free_in_order(event.expr, s.axes))
    for key, e in event.resets.items():
        name = base_name(key)
        if name in {p.name for p in s.params}:
            raise SpecError(f"{where}: {name} is a parameter, and resets change states: make it a state with the equation 0")
        if name not in s.states:
            raise SpecError(f"{where}: {no_such('state', name, s.states, 'resets')}")
        if isinstance(key, Symbol) and s.shapes[name]:
            raise SpecError(f"{where}: {name} is an array; did you mean {element_text(name, s.shapes[name], s)}?")
        free = event_indices | {i for i in key_indices(key) if i in s.axes}
        scope.check(key, free, f"the resets of event {event.name!r}")
        scope.check(e, free, f"the reset of {key} by event {event.name!r}")
    _check_times(s, event, where)


def _check_times(s: Definition, event: Event, where: str) -> None:
    """Raises SpecError where an event on the time alone has times that cannot be computed, or never passes 0."""
    if not on_time(s, event.expr):
        return
    if any(isinstance(part, sp.Mod | sp.frac) and part.has(time) for part in sp.Mul.make_args(event.expr)):
        raise SpecError(
            f"{where}: {event.expr} falls to 0 and does not pass it: write sin(pi*t/T), or Mod(t, T) - T/2 with a direction, for every T"
        )
    try:
        zero_times(event.expr)
    except BetweenKinksError:
        return
    except UnknownTimesError:
        raise SpecError(f"{where}: the times at which {event.expr} passes 0 cannot be computed: {KNOWN}") from None


def on_time(s: Definition, e: sp.Expr) -> bool:
    """Whether an expression changes with the time alone."""
    return bool(e.has(time)) and not names_read(e) & set(s.states)
