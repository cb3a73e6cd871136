"""The step control of the stiff methods by itself: what a step may do after any history."""

import ast
from functools import cache
from types import CodeType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odesim.stepper import control as rules
from odesim.stepper.control import SAFETY
from odesim.stepper.control import STIFF_GROW as GROW
from odesim.stepper.control import STIFF_SHRINK as SHRINK
from odesim.stepper.readers import Switches, implicit_reader
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.statements import Let

METHODS = {m.error_order: m for m in ROSENBROCK.values()}


@cache
def judgement(power: int) -> CodeType:
    """The text's own rule, for the method whose error norm goes with this power of h."""
    read = implicit_reader(METHODS[power], 1, Switches(together=True)).read
    # of the step itself the last lines, which make powers of the error
    powers = [s for s in read("step") if isinstance(s, Let) and s.names[0] in ("ratio", "less")]
    lines = [f"{', '.join(s.names)} = {ast.unparse(s.value)}" for s in [*powers, *read("judge")] if isinstance(s, Let)]
    return compile("\n".join(lines), "the text", "exec")


class Control:
    """A history of steps, as the text of a step judges them."""

    def __init__(self, power: int) -> None:
        self.code = judgement(power)
        self.names: dict[str, Any] = {"past": np.float64(0.0), "retry": 0.0, "steps": 0.0, "rejected": 0.0, "code": 0.0}
        self.names |= {"small": False, "last": False, "longest": np.inf, "most": np.inf, "nan": np.nan, "inf": np.inf}
        self.names |= {rule: getattr(rules, rule) for rule in ("next_step", "at_most", "gustafsson")}
        self.names["power"] = lambda x, e: x**e

    def after(self, h: float, error: float) -> float:
        """The step after h with this error norm."""
        self.names |= {"used": h, "error": np.float64(error) ** 2}
        with np.errstate(all="ignore"):
            exec(self.code, self.names)
        return float(self.names["h"])


NOT_FINITE = [np.nan, np.inf]
ERRORS = st.lists(st.one_of(st.floats(1e-14, 1e6), st.sampled_from([0.0, 1.0, *NOT_FINITE])), min_size=1, max_size=8)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(ERRORS, st.sampled_from([4, 5]))
def test_bounds(errors, power):
    """A step shrinks to no less than a fifth and grows sixfold at most; one that was rejected is followed by a shorter one, and the
    first accepted after it by none that is longer."""
    control, h, rejected = Control(power), 1.0, False
    for error in errors:
        following = control.after(h, error)
        most = 0.9 if not error <= 1 else 1.0 if rejected else GROW
        assert SHRINK * h <= following <= most * h
        h, rejected = following, not error <= 1


@pytest.mark.parametrize("error", NOT_FINITE)
def test_an_error_that_is_no_number_is_forgotten(error):
    """It quarters the step, and the next ones are as if a step of that size had been rejected for an error above 1."""
    odd, plain = Control(4), Control(4)
    for control, middle in ((odd, error), (plain, 2.0)):
        control.after(1.0, 0.5)
        found = control.after(1.0, middle)
    assert odd.after(0.25, 0.1) == plain.after(0.25, 0.1) and odd.after(0.25, 0.1) == plain.after(0.25, 0.1)
    assert found == pytest.approx(SAFETY * 2.0 ** (-1 / 4), rel=1e-14) and Control(4).after(1.0, error) == 0.25


def test_the_rule_of_gustafsson():
    """The smaller of err^(-1/p) and its form with the last step; Hairer and Wanner II (1996), IV.8, eq. 8.28; err counts as .01 or more
    where it is the older one, as in rodas.f."""
    for old in (0.5, 1e-5):
        control = Control(4)
        control.after(1.0, old)
        wanted = min(0.3 ** (-1 / 4), 0.7 / 1.0 * (max(old, 0.01) / 0.3**2) ** (1 / 4))
        assert control.after(0.7, 0.3) == pytest.approx(0.7 * 0.9 * wanted, rel=1e-14)
