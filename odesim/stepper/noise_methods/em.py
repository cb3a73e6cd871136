"""The method of Euler and Maruyama: any noise in Ito's sense, of strong order 1/2, and 1 where it is additive."""

from odesim.stepper.tableau import make_scheme

METHOD = make_scheme("em", ((), (1.0,)), [(1.0, 0.0)], "Maruyama 1955")
