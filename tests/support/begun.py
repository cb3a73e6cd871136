"""A small ensemble in chunks of a few members, in memory and on disk."""

from typing import Any

import numpy as np

import odesim
from odesim.api.ensemble import ensemble_arguments, run_ensemble
from odesim.run.chunks import Execution
from odesim.store.paths import Destination

MODEL = "joma.nonlinear"
SIZE = 8  # members in a chunk here
COUNT = 37
RUN: dict[str, Any] = {"vary": {"mu": "uniform(0.5,2.5)"}, "members": COUNT, "sizes": {"M": 2}, "span": (0.0, 2.0), "save": 3, "seed": 5}


def memory(**asked):
    return odesim.ensemble(MODEL, **{**RUN, **asked})


def begun(out, **asked):
    """What run_ensemble says of the run."""
    ways = {name: asked.pop(name, None) for name in ("threads", "progress", "fail_fast")}
    execution = Execution(ways["threads"] or 1, ways["progress"], bool(ways["fail_fast"]))
    to = Destination(out, **{name: asked.pop(name) for name in ("overwrite", "resume", "shard") if name in asked})
    return run_ensemble(MODEL, *ensemble_arguments(**{"max_steps": 1000, **RUN, **asked}), to, execution)


def same(stored, held):
    """Every variable of the stored ensemble has the bits, the type and the axes that it has in memory."""
    assert set(held.variables) == set(stored.variables)
    for name, v in stored.variables.items():
        np.testing.assert_array_equal(v, held[name])
        assert (v.dtype, v.dims) == (held[name].dtype, held[name].dims)
