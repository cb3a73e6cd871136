"""The soft committee machine: names of students and teachers do not matter, and the end of the plateau."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import odesim

FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}
W = np.array([[0.5, 0.1, -0.2, 0.0], [0.0, 0.4, 0.3, -0.1], [0.1, -0.2, 0.3, 0.4]])  # three students in four dimensions
TEACHERS = np.array([[1.0, 0.2, 0.0, 0.0], [0.1, 0.0, 0.9, 0.3]])
V, A = np.array([0.8, 1.1, -0.4]), np.array([1.0, 0.7])


@cache
def run(students: tuple[int, ...], teachers: tuple[int, ...]) -> Any:
    """From the weights above in this order, with label noise, both layers trained."""
    w, B = W[list(students)], TEACHERS[list(teachers)]
    params = {"T": B @ B.T, "A": A[list(teachers)], "eta": 1.2, "eta_2": 0.6, "sigma": 0.2}
    return odesim.integrate(
        "classics.committee", params=params, initial={"Q": w @ w.T, "R": w @ B.T, "v": V[list(students)]}, span=(0, 3), **FINE
    )


@pytest.mark.first(1)
@pytest.mark.parametrize(("students", "teachers"), [([2, 0, 1], [0, 1]), ([0, 1, 2], [1, 0]), ([1, 0, 2], [1, 0])])
def test_permuting_students_or_teachers_permutes_the_run(students: list[int], teachers: list[int]) -> None:
    """1e-8: 100 times rtol, as sums in another order may change steps."""
    plain, other = run((0, 1, 2), (0, 1)), run(tuple(students), tuple(teachers))
    want = {
        "Q": plain.final["Q"][np.ix_(students, students)],
        "R": plain.final["R"][np.ix_(students, teachers)],
        "v": plain.final["v"][students],
    }
    for name, value in want.items():
        np.testing.assert_allclose(other.final[name], value, rtol=0, atol=1e-8, err_msg=name)
    assert other.observables["e_g"][-1] == pytest.approx(plain.observables["e_g"][-1], abs=1e-8)
    assert np.abs(plain.final["R"] - W @ TEACHERS.T).max() > 0.1 and np.abs(plain.final["R"] - other.final["R"]).max() > 0.1


@pytest.mark.slow
def test_the_plateau_ends() -> None:
    """Once, where its law says, where e_g leaves the plateau; ten times less difference at first: later by the time of a tenth."""
    ends = []
    for small in (1e-2, 1e-3, 1e-4):
        given: dict[str, Any] = {"params": {"eta_2": 0.0}, "initial": {"Q": np.diag([0.2, 0.2]), "R": small * np.eye(2), "v": 1.0}}
        given |= FINE | {"rtol": 1e-7, "atol": 1e-10}
        (event,) = odesim.integrate("classics.committee", **given, span=(0, 150), save=2).events["plateau ends"]
        ends.append(event["t"])
        seen = odesim.integrate("classics.committee", **given, span=(0, ends[-1]), save=[0, 20, ends[-1]])
        R, e_g = seen.final["R"], seen.observables["e_g"]
        assert R.std() == pytest.approx(R.mean() / 2, rel=1e-4)
        assert 0.5 * e_g[1] < e_g[2] < e_g[1]
    assert ends[2] - ends[1] == pytest.approx(ends[1] - ends[0], rel=0.02)  # of the order of the first difference, 1e-2
