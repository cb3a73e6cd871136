"""Lanes with loops: members side by side, the right-hand side in loops over arrays. For systems that are too long to write out."""

LOOP = (
    "odesim.engines.loop_lanes.memory",
    "odesim.stepper.powers",
    "odesim.stepper.control",
    "odesim.engines.loop_lanes.step",
    "odesim.engines.loop_lanes.look",
    "odesim.engines.loop_lanes.feed",
)
"""The modules of the loop, in the order in which their text is joined."""

PLAIN = ("odesim.stepper.control",)
"""The modules of the loop whose functions take only numbers: the text compiles them, and Python may call them."""
