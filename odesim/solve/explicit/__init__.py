"""Explicit Runge-Kutta runs: one loop over the steps for numba and CUDA."""

LOOP = (
    "odesim.solve.explicit.norms",
    "odesim.solve.explicit.control",
    "odesim.solve.explicit.dense",
    "odesim.solve.step.roots",
    "odesim.solve.explicit.events",
    "odesim.solve.explicit.laws",
    "odesim.solve.explicit.loop",
)
"""The modules of the loop, in the order in which their text is joined."""
