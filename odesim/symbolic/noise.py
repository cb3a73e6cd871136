"""Noise of a System: dx = f dt + sum_c g_c dB_c, with one Brownian motion B_c for every element of its channels.

A channel is written as a state is, B or B[i, k]. An index of it that the state does not have is summed over: noise={x[i]: {B[i]: s}} is
diagonal, {x[i]: {B[k]: s[i, k]}} mixes, {x[i]: {B: s}} shakes all elements together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.base.errors import SpecError, value_text
from odesim.symbolic.definition import Definition, error_part
from odesim.symbolic.indices import base_name, our_element
from odesim.symbolic.parts import Key, checked_expression, key_indices
from odesim.symbolic.reductions import over
from odesim.symbolic.scope import NameScope

CALCULI = ("ito", "stratonovich")


@dataclass(frozen=True)
class Term:
    """The part g dB[J] of the equation of one state: `channel` is B[J], `factor` is g.

    summed {index: extent}: of the channel's indices, those that the state does not have.
    """

    state: Key
    channel: Key
    factor: Expr
    summed: Mapping[Symbol, Any]

    def times(self, element: Expr) -> Expr:
        """g times what stands for the channel's element, summed over."""
        return over(sp.Sum, self.factor * element, *self.summed.items()) if self.summed else self.factor * element


def terms_of(s: Definition) -> Iterator[Term]:
    """The terms of the noise of a System, in the order of its equations."""
    for state in s.equations:
        for channel, factor in s.noise.get(state, {}).items():
            summed = {i: s.axes[i] for i in key_indices(channel) if i not in key_indices(state)}
            yield Term(state, channel, factor, summed)


def channels_of(s: Definition) -> dict[str, tuple[Any, ...]]:
    """{channel: extents of its axes}, in the order in which the equations name them."""
    return {base_name(term.channel): tuple(s.axes[i] for i in key_indices(term.channel)) for term in terms_of(s)}


def noise_as_written(s: Definition, read: Any) -> dict[Any, dict[Any, Expr]]:
    """The noise {state: {channel: factor}} with factors in our form. read(expression): with neighbours at the boundary of the System."""
    SpecError.unless(isinstance(s.noise, Mapping), f"{s.name}: noise must be a dict, such as {{v[i]: {{B[i]: s}}}}", s.noise)
    out = {}
    for number, (state, parts) in enumerate(s.noise.items()):
        with error_part("noise", number):
            if not isinstance(parts, Mapping):
                hint = f"{{{state}: {{B: {value_text(parts)[:40]}}}}}, with a channel B"
                raise SpecError(f"{s.name}: the noise of {state} must be a dict of channels: write {hint}")
            where = f"{s.name}: the noise of {state}"
            out[our_element(state)] = {our_element(c): read(checked_expression(g, f"{where} by {c}")) for c, g in parts.items()}
    return out


def check_noise(s: Definition, scope: NameScope) -> None:
    """Raises SpecError unless the noise shakes states of s by channels that are no names of anything else."""
    if not isinstance(s.calculus, str) or s.calculus not in CALCULI:
        raise SpecError(f"{s.name}: calculus must be one of {', '.join(CALCULI)}, not {value_text(s.calculus)}")
    if s.step is not None:
        if not s.noise:
            raise SpecError(f"{s.name}: step is that of runs with noise, and there is none")
        if isinstance(s.step, bool) or not isinstance(s.step, Real) or not 0 < s.step < inf:
            raise SpecError(f"{s.name}: step must be a number above 0, not {value_text(s.step)}")
    if s.noise and s.discrete:
        raise SpecError(f"{s.name}: noise is for differential equations, and this is a Map")
    shapes: dict[str, tuple[Any, ...]] = {}
    taken = {**scope.words(), **dict.fromkeys(s.observables, "an observable")}
    for number, (state, parts) in enumerate(s.noise.items()):
        with error_part("noise", number):
            if state not in s.equations:
                raise SpecError(
                    f"{s.name}: noise has the key {value_text(state)}: write a state as in its equation, such as {next(iter(s.equations))}"
                )
            for channel, factor in parts.items():
                if not isinstance(channel, Symbol | Indexed):
                    raise SpecError(f"{s.name}: {value_text(channel)} is no channel of noise: write a symbol B, or an element such as B[i]")
                name, indices = base_name(channel), key_indices(channel)
                if name in taken:
                    raise SpecError(f"{s.name}: the channel {name} is {taken[name]} already: give it another name")
                if wrong := [i for i in indices if i not in s.axes] or [i for i in indices if indices.count(i) > 1]:
                    raise SpecError(
                        f"{s.name}: the channel {channel} has the index {wrong[0]}: its indices are different axes of the System"
                    )
                extents = tuple(s.axes[i] for i in indices)
                if shapes.setdefault(name, extents) != extents:
                    raise SpecError(f"{s.name}: the channel {name} has two shapes, {shapes[name]} and {extents}")
                scope.check(factor, {*key_indices(state), *indices}, f"the noise of {state} by {channel}")
