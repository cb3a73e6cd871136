"""Heun's method: any noise in Stratonovich's sense, of strong order 1 where channels commute, and of drift order 2 without noise."""

from odesim.stepper.tableau import make_scheme

METHOD = make_scheme("heun", ((), (1.0,), (0.5, 0.5)), [(1.0, 0.0)] * 2, "Ruemelin 1982", calculus="stratonovich")
