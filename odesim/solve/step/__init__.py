"""What all step loops share: the search for zeros of events, and whether a solution runs to infinity."""

SEARCH = tuple(f"odesim.solve.step.{name}" for name in ("sizes", "roots", "dips", "polynomial", "samples", "straight", "search"))
"""The modules of the search for zeros, whose source names what is compiled with it."""
