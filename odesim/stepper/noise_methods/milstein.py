"""Milstein's method: strong order 1 in Ito's sense, for channels that commute; the symbols give the derivatives that it needs."""

from odesim.stepper.tableau import ALL, make_scheme

METHOD = make_scheme("milstein", ((), (1.0,)), [(1.0, 0.0)], "Milstein 1974", kinds=ALL[:-1], second=True)
