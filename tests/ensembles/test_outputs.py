"""Members' own values have names that nothing else of an ensemble has."""

from typing import Any

import numpy as np
import pytest
from sympy import symbols

import odesim
from odesim.ensembles.request import RESERVED_NAMES
from odesim.symbolic import System
from tests.support.systems import SOURCE, param


@pytest.mark.slow
def test_a_parameter_may_be_called_like_a_start(tmp_path):
    """v_start is the parameter of that name, and the start of v stands there too."""
    v, p = symbols("v v_start")
    system = System(name="rate", source=SOURCE, axes={}, equations={v: -p * v}, params=(param(p),), initial={v: 1})
    own: dict[str, Any] = {
        "params": {"v_start": np.linspace(1, 2, 5)},
        "initial": {"v": np.linspace(3, 4, 5)},
        "method": "rk4",
        "step": 0.5,
    }
    odesim.ensemble(system, out=tmp_path / "run.zarr", **own)
    with odesim.open_run(tmp_path / "run.zarr") as run:
        for found in (odesim.ensemble(system, **own), run):
            np.testing.assert_array_equal(found["v_start"], own["params"]["v_start"])
            np.testing.assert_array_equal(found["v_start_"], own["initial"]["v"])


@pytest.mark.first(2)
@pytest.mark.parametrize("name", RESERVED_NAMES)
def test_a_parameter_may_be_called_like_a_part_of_a_run(name, tmp_path):
    """Each member's own value stands beside that part, under a name of its own."""
    x, p = symbols("x"), symbols(name)
    system = System(name="rate", source=SOURCE, axes={}, equations={x: -p * x}, params=(param(p),), initial={x: 1})
    odesim.ensemble(system, params={name: np.linspace(1, 2, 5)}, out=tmp_path / "run.zarr", method="rk4", step=0.5)
    with odesim.open_run(tmp_path / "run.zarr") as run:
        np.testing.assert_array_equal(run[f"{name}_start"], np.linspace(1, 2, 5))
