"""Explicit Runge-Kutta runs: one loop over the steps for numba and CUDA."""

LOOP = (
    "odesim.solve.explicit.norms",
    "odesim.solve.step.arithmetic",
    "odesim.solve.step.control",
    "odesim.solve.explicit.control",
    "odesim.solve.step.interpolant",
    "odesim.solve.explicit.dense",
    "odesim.solve.step.sizes",
    "odesim.solve.step.roots",
    "odesim.solve.step.dips",
    "odesim.solve.step.polynomial",
    "odesim.solve.step.samples",
    "odesim.solve.step.straight",
    "odesim.solve.step.search",
    "odesim.solve.explicit.events",
    "odesim.solve.explicit.zeros",
    "odesim.solve.explicit.laws",
    "odesim.solve.explicit.loop",
)
"""The modules of the loop, in the order in which their text is joined."""

CALLED, INLINE = "odesim.solve.explicit.called_search", "odesim.solve.explicit.inline_search"
"""The module that belongs to them for numba, and the one for CUDA: how a step is searched for events."""

PLAIN = ("odesim.solve.step.control", "odesim.solve.step.interpolant")
"""The modules of the loop whose functions take only numbers: the text compiles them, and Python may call them."""
