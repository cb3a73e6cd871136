"""Euler's method: comparison with a program that takes such steps."""

from odesim.stepper.tableau import make_method

# Between two steps Euler's polygon is the straight line.
METHOD = make_method("euler", order=1, last=1, c=(0, 1), A=((), (1,)), P=((1.0,),), dense_order=1, source="Euler 1768")
