"""Type checks of a System's fields: each failure is one sentence that names the field."""

from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral
from typing import Any

import sympy as sp
from sympy import Indexed, IndexedBase, Symbol

from odesim.base.errors import SpecError, no_such, value_text
from odesim.symbolic.parts import ClosedForm, Constraint, Definition, Event, Invariant, Param, Source, View, element_text, error_part

LONGEST = 100  # characters of a name


def check_parts(s: "Definition") -> None:
    """Raises SpecError unless every field of s has its type. Lists of parts become tuples."""
    with error_part("name"):
        if not isinstance(s.name, str):
            raise SpecError(f"the name of a System is a text, such as 'family.model', not {value_text(s.name)}")
    with error_part("source"):
        if not isinstance(s.source, Source):
            raise SpecError(f"{s.name}: source must be a Source, such as Source('my_notes', 'eq. 4'), not {value_text(s.source)}")
    _check_axes(s)
    for field, example in (("equations", "{v[i]: -v[i]}"), ("initial", "{v[i]: 0.0}")):
        _check_mapping(s, field, example)
        for number, key in enumerate(getattr(s, field)):
            with error_part(field, number):
                _check_state_key(s, field, key)
    for field, kind in (("params", Param), ("constraints", Constraint), ("invariants", Invariant), ("events", Event)):
        _check_items(s, field, kind)
    _check_items(s, "closed_forms", ClosedForm)
    for field, example in (("sizes", "{M: 4}"), ("observables", "{'sum': over(Sum, v[i], (i, M))}"), ("sensitivities", "{}")):
        _check_mapping(s, field, example)
    for number, (name, e) in enumerate(s.observables.items()):
        with error_part("observables", number):
            _check_name(s, "observable", name)
            if isinstance(e, type):
                raise SpecError(f"{s.name}: observable {name!r} must be an expression or a function, not the class {e.__name__}")
    _check_items(s, "views", View)
    for number, view in enumerate(s.views):
        with error_part("views", number):
            if view.name not in (names := (*s.states, *s.observables)):
                raise SpecError(no_such("state or observable", view.name, names, f"views of {s.name}"))
    _check_mapping(s, "display", "{'z': v[i]**2/2}")
    for number, name in enumerate(s.display):
        with error_part("display", number):
            _check_name(s, "display", name)
    for name, pairs in s.sensitivities.items():
        if not isinstance(name, str) or not isinstance(pairs, Mapping) or not all(isinstance(x, str) for p in pairs.items() for x in p):
            raise SpecError(f"{s.name}: sensitivities are made by sensitivities(); {value_text(pairs)} of {value_text(name)} is none")
    if not isinstance(s.time, str):
        raise SpecError(f"{s.name}: time is the unit of t in words, such as 'SGD steps', not {value_text(s.time)}")
    if not isinstance(s.discrete, bool):
        raise SpecError(f"{s.name}: discrete says with True or False whether equations give the next state, not {value_text(s.discrete)}")


def _check_axes(s: "Definition") -> None:
    _check_mapping(s, "axes", "{i: M}")
    for number, (key, extent) in enumerate(s.axes.items()):
        with error_part("axes", number):
            if isinstance(key, tuple | list | sp.Tuple):
                raise SpecError(
                    f'{s.name}: axes has the key {value_text(key)}, which is a tuple: take the index out of it, (i,) = index("i")'
                )
            if not isinstance(key, Symbol):
                raise SpecError(
                    f"{s.name}: axes has the key {value_text(key)}, which is no index: write one of index(), "
                    "and give its name to nothing else"
                )
            if isinstance(extent, tuple | list | sp.Tuple):
                raise SpecError(f'{s.name}: axis {key} runs over {value_text(extent)}, a tuple: take the size out of it, (M,) = sizes("M")')
            whole = isinstance(extent, Integral) and not isinstance(extent, bool)
            if not (whole or isinstance(extent, sp.Expr)):
                raise SpecError(f"{s.name}: axis {key} runs over {value_text(extent)}, which is no whole number and no size")


def _check_mapping(s: "Definition", field: str, example: str) -> None:
    value = getattr(s, field)
    with error_part(field):
        if not isinstance(value, Mapping):
            raise SpecError(f"{s.name}: {field} must be a dict, such as {example}, not {value_text(value)}")


def _check_state_key(s: "Definition", field: str, key: Any) -> None:
    if isinstance(key, str):
        raise SpecError(f"{s.name}: {field} has the text {key!r} as a key: write it without quotes, {value_text(key)[1:-1]}")
    if isinstance(key, IndexedBase) and field == "equations":
        raise SpecError(
            f"{s.name}: {key} is an array and cannot be a state: write an element, such as {element_text(key.label, key.shape, s)}"
        )
    if not isinstance(key, Indexed | Symbol | IndexedBase):
        raise SpecError(f"{s.name}: {value_text(key)} cannot be a state: write an element such as v[i], or a symbol")


def _check_items(s: "Definition", field: str, kind: type) -> None:
    """Raises SpecError unless the field is a tuple or list of `kind`; a list becomes a tuple."""
    kinds = tuple(View.__subclasses__()) if kind is View else (kind,)
    value, name = getattr(s, field), kinds[0].__name__
    with error_part(field):
        if isinstance(value, kinds):
            name = type(value).__name__
            raise SpecError(f"{s.name}: {field} is one {name}, not a tuple of them: a comma is missing after it, {field}=({name}(...),)")
        if not isinstance(value, tuple | list):
            raise SpecError(f"{s.name}: {field} must be a tuple, such as ({name}(...),), not {value_text(value)}")
    for number, item in enumerate(value):
        with error_part(field, number):
            if not isinstance(item, kinds):
                arguments = ", ".join(f.name for f in fields(kind))  # type: ignore[arg-type]
                written = " or ".join(f"{one.__name__}({arguments})" for one in kinds)
                raise SpecError(f"{s.name}: {field} holds {value_text(item)}, which is no {kind.__name__}: write {written}")
            _check_name(s, name, item.name)  # type: ignore[attr-defined]
    object.__setattr__(s, field, tuple(value))


def _check_name(s: "Definition", what: str, name: Any) -> None:
    """Raises SpecError unless a name can be the name of a stored file."""
    if not isinstance(name, str):
        raise SpecError(f"{s.name}: the name of {_with_article(what)} is a text, not {value_text(name)}")
    if not name or len(name) > LONGEST or not name.isprintable():
        raise SpecError(
            f"{s.name}: the name of {_with_article(what)} has 1 to {LONGEST} characters that can be printed, not {value_text(name)}"
        )


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOUo" else f"a {name}"
