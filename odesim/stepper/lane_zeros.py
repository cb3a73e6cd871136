"""Stores the zeros found in one lane's step among those of its member."""

from typing import Any

from odesim.stepper.search_samples import helper


@helper
def keep(found: Any, count: int, stop: float, facts: Any, size: int, first: int, most: int, times: Any, places: Any, counts: Any) -> None:
    """Puts the zeros up to stop among those of a member, in the order of time: the first `most` of each event, and their number.

    times, places (events, most) and counts (events,) of the member begin at row first. facts (4, size): as odesim.stepper.search has
    them, then of each component which event it belongs to, and its number there.
    """
    for q in range(count):
        time, i = found[2 * q], int(found[2 * q + 1])
        if not time <= stop:
            continue
        row = first + facts[2 * size + i]
        k = min(counts[row], most)
        counts[row] += 1
        while k > 0 and times[row * most + k - 1] > time:
            if k < most:
                times[row * most + k], places[row * most + k] = times[row * most + k - 1], places[row * most + k - 1]
            k -= 1
        if k < most:
            times[row * most + k], places[row * most + k] = time, facts[3 * size + i]
