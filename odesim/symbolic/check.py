"""Checks of a System: each failure is one sentence with the expression."""

import re
from keyword import iskeyword
from math import isfinite
from numbers import Integral, Real

import sympy as sp
from sympy import Indexed, Symbol

from odesim.base.errors import SpecError, nearest, no_such, shorten, value_text
from odesim.symbolic.assumed import check_assumptions
from odesim.symbolic.check_laws import check_display, check_laws
from odesim.symbolic.check_map import check_map
from odesim.symbolic.check_types import LONGEST, error_part
from odesim.symbolic.definition import Definition
from odesim.symbolic.expr import base_name, time
from odesim.symbolic.layered import layers_in, with_layers
from odesim.symbolic.name_scope import NameScope
from odesim.symbolic.parts import Key, key_indices
from odesim.symbolic.reductions import REDUCTIONS
from odesim.symbolic.reserved import RESULTS, is_reserved
from odesim.symbolic.subexpressions import subexpressions


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
    check_display(s, scope)
    check_laws(s, scope)
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
        if name in rates or is_reserved(name):
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


def _check_initial(s: Definition, scope: "NameScope") -> None:
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
