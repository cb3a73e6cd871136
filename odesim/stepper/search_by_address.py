# ruff: noqa: F821
# mypy: disable-error-code="name-defined"
"""The search for zeros as functions of numbers and addresses: compiled once, for all integrators on the processor.

Each of them describes its steps by a table (SEARCH in table.py), whose places are in the text that this is joined with. t, h, new: the
step, as in odesim.stepper.search. Their results are the numbers of ANSWER.
"""

import math
from typing import Any

import numpy as np

from odesim.runtime.functions import njit
from odesim.runtime.intrinsics import call, doubles, ints
from odesim.stepper.search import FINE, ROUNDING, roughness, search, straight_search
from odesim.stepper.search_samples import POINTS, helper

ROUNDED = 1e5
"""An error below that, as roughness() has it, is rounding where half of a part has a larger one."""


@helper
def sample(at: Any, l: int, k: int, i: int) -> float:
    """The value of component i at the end of piece k."""
    rows, between, gap, pieces, _, _, probed, probed_gap, _, _ = at
    if k > pieces:
        return doubles(probed)[i * probed_gap + l]
    return doubles(rows)[(k + 1) * between + i * gap + l]


@helper
def probe(at: Any, l: int, theta: float, i: int) -> float:
    """The value of component i at theta."""
    _, _, _, pieces, ask, what, _, _, start, part = at
    call(ask, (what, start + part * theta, l, np.int64(i)))
    return sample(at, l, pieces + 1, i)


@helper
def steps(at: Any) -> Any:
    """The entries of the table that are read for each sample; the values of a probe; start and length of the part, here all of the step."""
    between, gap, pieces = at[BETWEEN], at[GAP], at[PIECES]
    return at[ROWS], between, gap, pieces, at[ASK], at[ASKED], at[ROWS] + 8 * (pieces + 2) * between, gap, 0.0, 1.0


@helper
def sampled_part(whole: Any, buffer: int, l: int, size: int, start: float, part: float) -> Any:
    """steps() of the part of a step from start on, whose own samples are put behind those two that are there already."""
    _, _, _, pieces, ask, what, probed, gap, _, _ = whole
    at, last, samples = (buffer - 8 * l, size, 1, pieces, ask, what, probed, gap, start, part), start + part >= 1.0, doubles(buffer)
    for k in range(1, pieces + 1):
        inside = k < pieces or not last
        if inside:
            probe(at, l, k / pieces, np.int64(0))
        for i in range(size):
            samples[(k + 1) * size + i] = sample(whole, l, pieces + 1 if inside else pieces, i)
    return at


@helper
def begin_part(at: Any, buffer: int, l: int, size: int, k: int) -> None:
    """Makes samples k - 1 and k the first two of the next part."""
    samples = doubles(buffer)
    for j in range(2):
        for i in range(size):
            samples[j * size + i] = sample(at, l, k - 1 + j, i)


def search_step(table: int, l: int, first: int, marks: int, t: float, h: float, new: float) -> None:
    """Searches a step of lane l. ANSWER: how many zeros there are in ZEROS, the time of the first terminal one or new, its theta or -1.

    Where polynomials are too rough, part by part, each with samples of its own: half of the last one that was too rough, twice the last one
    that was not. Where that no longer helps, what is left is rounding. first, marks: as odesim.stepper.search has them.
    """
    numbers = ints(table)
    facts, zeros, answer, size, pieces = (
        ints(numbers[FACTS]),
        doubles(numbers[ZEROS]),
        doubles(numbers[ANSWER]),
        numbers[SIZE],
        numbers[PIECES],
    )
    room, buffer = numbers[ROOM], numbers[ZEROS] + 16 * (numbers[ROOM] + POINTS)
    at = whole = steps(numbers)
    count, stop, theta, start, part, before = first, new, -1.0, 0.0, 1.0, math.inf
    # many functions that jump at one time are found by halving alone. Samples much closer than that would show the rounding of the state
    least = FINE + ROUNDING * abs(new) / h
    while True:
        error = roughness(sample, probe, at, l, facts, size, pieces, zeros, 2 * room)
        if error > 1.0 and part > least and not before < error < ROUNDED:
            if part == 1.0:
                begin_part(whole, buffer, l, size, np.int64(0))
            before, part = error, 0.5 * part
        else:
            last = start + part >= 1.0
            begun, length, end = t + start * h, part * h, new if last else t + (start + part) * h
            count, stop, theta = search(sample, probe, at, l, facts, size, pieces, begun, length, end, zeros, count, room, marks)
            if last or theta >= 0.0:
                break
            begin_part(at, buffer, l, size, pieces)
            before, start, part = math.inf, start + part, min(2.0 * part, 1.0 - start - part)
        at = sampled_part(whole, buffer, l, size, start, part)
    answer[0], answer[1], answer[2] = count, stop, start + theta * part if theta >= 0.0 else theta


def search_polynomial(table: int, l: int, i: int, t: float, h: float, new: float) -> None:
    """Searches component i, the polynomial through its samples, in a step of lane l. ANSWER: how many zeros there are in ZEROS."""
    at = ints(table)
    facts, zeros, room, none = ints(at[FACTS]), doubles(at[ZEROS]), at[ROOM], np.int64(0)
    count = straight_search(sample, steps(at), l, i, at[PIECES], facts[i], t, h, new, zeros, 2 * room, none, room)
    doubles(at[ANSWER])[0] = count


step_searched = njit("void(int64, int64, int64, int64, float64, float64, float64)")
polynomial_searched = njit("void(int64, int64, int64, float64, float64, float64)")
