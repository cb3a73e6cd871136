"""The search for zeros in a step, on a GPU: a part of the text of the loop."""

from typing import Any

import numpy as np

from odesim.runtime.memory import doubles, ints
from odesim.solve.explicit.events import probe, sample
from odesim.solve.explicit.norms import helper
from odesim.solve.explicit.places import COUNT, FACTS, FOUND, PIECES, ROOM, SIZE, ZEROS
from odesim.solve.step.search import search


@helper
def searched(at: Any, t: float, h: float, new: float) -> tuple[int, float, float]:
    """odesim.solve.step.search.search of the step of h from t to new."""
    facts, zeros, first, none, every = ints(at[FACTS]), doubles(at[ZEROS]), ints(at[COUNT])[FOUND], np.int64(0), np.int64(-1)
    found, stop, theta = search(sample, probe, at, none, facts, at[SIZE], at[PIECES], t, h, new, zeros, first, at[ROOM], every)
    return found, stop, theta
