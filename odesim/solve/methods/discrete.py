"""Discrete time as a method: a step of size 1 whose new state is the right-hand side itself."""

from odesim.solve.methods.explicit import make_method

# last = 0: no stage lies at the new point, so that the loops take stage 0 for the new state. Between two updates the state stays.
MAP = make_method("map", order=0, last=0, c=(0,), A=((),), P={0: (0.0,)}, dense_order=0, source="")
