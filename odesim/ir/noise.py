"""What schemes need to know of noise: its kind, derivatives of its factors along itself, and the System that a step sees.

One field says it all: the noise as a velocity, state x[i] -> sum_c g_c(x) r_c with a rate r_c for every channel. Its derivative along
itself is the term of Milstein; that along a channel's own column, summed over channels, is what separates Ito from Stratonovich.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp
from sympy import Expr, Interval, KroneckerDelta, Symbol, oo

from odesim.base.errors import SpecError
from odesim.ir.derive import Direction, directional_derivative
from odesim.symbolic.definition import Definition, all_names
from odesim.symbolic.indices import IndexedBase, base_name, time
from odesim.symbolic.layered import names_read
from odesim.symbolic.noise import Term, channels_of, terms_of
from odesim.symbolic.parts import Key, Param, key_indices
from odesim.symbolic.reductions import at, over
from odesim.symbolic.system import System

ADDITIVE, TIMED, DIAGONAL, COMMUTING, GENERAL = KINDS = ("additive", "additive in time", "diagonal", "commuting", "general")
"""Factors that are constant, that change with the time alone, that read their own state alone; channels whose order makes no difference."""


def rate_of(channel: Key, name: str = "") -> Expr:
    """The rate of a channel's element, as an array element: B[i], and B[0] of a channel without indices."""
    indices = key_indices(channel)
    shape = channel.base.shape if indices else (1,)
    return IndexedBase(name or base_name(channel), shape=shape)[indices or (0,)]


def noise_velocity(s: Definition, name: Callable[[str], str] = str) -> dict[Key, Expr]:
    """{state: sum_c g_c r_c}, the rate r of a channel B in an array called name("B")."""
    out: dict[Key, Expr] = {}
    for term in terms_of(s):
        out[term.state] = out.get(term.state, sp.S.Zero) + term.times(rate_of(term.channel, name(base_name(term.channel))))
    return out


def along_noise(s: Definition, velocity: Mapping[Key, Expr], way: Mapping[Key, Expr]) -> dict[Key, Expr]:
    """{state: derivative of its velocity, where the states move by `way`}."""
    ways: dict[str, Direction] = {base_name(key): _direction(key, e) for key, e in way.items()}
    return {key: directional_derivative(e, ways) for key, e in velocity.items()}


def _direction(key: Key, e: Expr) -> Direction:
    names = key_indices(key)
    return lambda indices: at(e, dict(zip(names, indices, strict=True)))


def correction(s: Definition) -> dict[Key, Expr]:
    """{state: (1/2) sum_c (Dg_c) g_c}: the Ito drift is that of Stratonovich plus this."""
    out: dict[Key, Expr] = {}
    every = list(terms_of(s))
    for term in every:
        ways: dict[str, Direction] = {}
        for state in s.noise:
            mine = [other for other in every if other.state == state and base_name(other.channel) == base_name(term.channel)]
            if mine:
                ways[base_name(state)] = _column(mine, key_indices(term.channel))
        slope = directional_derivative(term.factor, ways)
        if slope != 0:
            summed = over(sp.Sum, slope, *term.summed.items()) if term.summed else slope
            out[term.state] = out.get(term.state, sp.S.Zero) + summed / 2
    return out


def _column(terms: Sequence[Term], element: tuple[Any, ...]) -> Direction:
    """The factors, at any element of the state of these terms, of this element of their channel."""

    def factor(indices: tuple[Any, ...]) -> Expr:
        total = sp.S.Zero
        for term in terms:
            places, here = key_indices(term.channel), dict(zip(key_indices(term.state), indices, strict=True))
            same = [KroneckerDelta(here[p], j) for p, j in zip(places, element, strict=True) if p in here]
            total += at(term.factor, {**dict(zip(places, element, strict=True)), **here}) * sp.Mul(*same)
        return total

    return factor


def noise_kind(s: Definition) -> str:
    """One of KINDS, from the symbols: what is not seen to commute counts as general."""
    every, states = list(terms_of(s)), set(s.states)
    if not any(names_read(term.factor) & states for term in every):
        return TIMED if any(term.factor.has(time) for term in every) else ADDITIVE
    owners = [base_name(term.channel) for term in every]
    alone = len(set(owners)) == len(owners) == len({term.state for term in every})
    if alone and all(set(key_indices(t.channel)) == set(key_indices(t.state)) and _reads_itself(t, states) for t in every):
        return DIAGONAL
    u, v = noise_velocity(s, "u_{}".format), noise_velocity(s, "v_{}".format)
    uv, vu = along_noise(s, u, v), along_noise(s, v, u)
    return COMMUTING if all(sp.expand(uv[key] - vu[key]) == 0 for key in u) else GENERAL


def _reads_itself(term: Term, states: set[str]) -> bool:
    """Whether the factor of a term reads no element of a state but its own."""
    hole = Symbol("hole", real=True)
    return not names_read(term.factor.xreplace({term.state: hole})) & states


def noise_shapes(s: Definition) -> dict[str, tuple[Any, ...]]:
    """{channel: shape of the array of its rates}."""
    return {name: shape or (sp.S.One,) for name, shape in channels_of(s).items()}


# The right-hand side that a stochastic scheme sees: the drift plus the noise at rates that a step holds, as parameters.
#
# dx = f dt + sum_c g_c dB_c  ->  dx/dt = f + sum_c g_c B_c, with the array B of a channel's rates, dB/h of a step of h

STEP = "noise_step"
"""The parameter that holds the length of a step, for schemes whose right-hand side has it."""
MEMBER = "noise_member"
"""The number of a member, beside its parameters."""


def step_system(system: System, calculus: str, *, second: bool = False) -> System:
    """The System without noise that a scheme of this calculus steps through.

    Its parameters have the channels too, in the order of channels_of(). second: with the term of Milstein,
    (h/2) sum_ab (Dg_b) g_a B_a B_b - (1/2) sum_a (Dg_a) g_a, where h is the parameter STEP.
    Raises SpecError where a name is taken.
    """
    shapes, velocity = noise_shapes(system), noise_velocity(system)
    if taken := sorted({STEP, *(f"d_{name}" for name in shapes)} & all_names(system)):
        raise SpecError(f"{system.name}: {taken[0]!r} is needed for the noise; call it something else, such as {taken[0]}_1")
    whole = Interval(-oo, oo)
    rates = [Param(IndexedBase(name, shape=shape), 0.0, whole, "rate of the noise") for name, shape in shapes.items()]
    sign = {("ito", "stratonovich"): -1, ("stratonovich", "ito"): 1}.get((system.calculus, calculus), 0) - second
    equations = {key: f + velocity.get(key, 0) for key, f in system.equations.items()}
    for key, e in correction(system).items() if sign else ():
        equations[key] += sign * e
    if second:
        h = Symbol(STEP, real=True)
        rates.append(Param(h, 0.0, whole, "length of a step"))
        for key, e in along_noise(system, velocity, velocity).items():
            equations[key] += h * e / 2
    return replace(
        system, equations=equations, params=(*system.params, *rates), noise={}, calculus="ito", step=None, display={}, closed_forms=()
    )
