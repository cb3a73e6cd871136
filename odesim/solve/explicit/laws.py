"""Laws along an explicit run, checked at the end of every step."""

from typing import Any

import numpy as np

from odesim.runtime.memory import call, doubles, floats, ints
from odesim.solve.explicit.norms import helper
from odesim.solve.explicit.places import LAW_BEST, LAW_NOW, LAW_SENSE, LAW_SIZE, LAW_TABLE, LAW_TIME, LAW_WORST, LAWS, WIDTH


@helper
def judge(at: Any, t: float, first: int) -> None:
    """Holds the laws' values at t against their senses (odesim.solve.laws): LAW_WORST and LAW_TIME. first: 1 at the start.

    What was once NaN stays so, with its time.
    """
    sense, best, worst, times = ints(at[LAW_SENSE]), doubles(at[LAW_BEST]), doubles(at[LAW_WORST]), doubles(at[LAW_TIME])
    for i in range(at[LAW_SIZE]):
        now = np.float64(floats(at[LAW_NOW])[i]) if at[WIDTH] == 4 else doubles(at[LAW_NOW])[i]
        if first == 1:
            best[i] = now
            worst[i] = 0.0
            times[i] = t
        off = now - best[i]
        if sense[i] == 0:
            off = abs(off)
        elif sense[i] == 1:
            if now < best[i]:
                best[i] = now
        elif sense[i] == 2:
            off = -off
            if now > best[i]:
                best[i] = now
        else:
            off = -now
        if worst[i] == worst[i] and not off <= worst[i]:
            worst[i] = off
            times[i] = t


@helper
def watch_laws(at: Any, t: float, y: int, first: int) -> None:
    """Updates the violations with the state y (n,) at t."""
    call(at[LAWS], (at[LAW_TABLE], t, y, at[LAW_NOW]))
    judge(at, t, first)
