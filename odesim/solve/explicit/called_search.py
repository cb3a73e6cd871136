"""The search for zeros in a step, on the processor: compiled by itself, and called by its address."""

from typing import Any

import numpy as np

from odesim.codegen.runtime.memory import call, doubles, ints
from odesim.solve.explicit.events import probe
from odesim.solve.explicit.norms import helper
from odesim.solve.explicit.places import ANSWER, COUNT, FOUND, SEARCH, SEARCHED


@helper
def searched(at: Any, t: float, h: float, new: float) -> tuple[int, float, float]:
    """odesim.solve.step.search.search of the step of h from t to new."""
    every = np.int64(-1)
    call(at[SEARCH], (at[SEARCHED], np.int64(0), ints(at[COUNT])[FOUND], every, t, h, new))
    answer = doubles(at[ANSWER])
    return int(answer[0]), answer[1], answer[2]


def probed(address: int, theta: float, l: int, _: int) -> None:
    """Puts the event functions at theta where the search looks for them; address: that of the table of the run."""
    probe(ints(address), l, theta, np.int64(0))
