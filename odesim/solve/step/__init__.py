"""Shared by all step loops: step control, the interpolant, the search for zeros of events, and the test for a blow-up."""

SEARCH = tuple(f"odesim.solve.step.{name}" for name in ("sizes", "roots", "dips", "polynomial", "samples", "straight", "search"))
"""The modules of the search for zeros, whose source names what is compiled with it."""
