"""Members whose conditions on time change at times of their own: in lanes, part by part, with the bits of single runs."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.api.ensemble import members_and_request
from odesim.base.options import RunOptions
from odesim.base.options import Values as EnsembleArguments
from odesim.run.choose import make_engine
from odesim.run.lanes import LaneEngine
from tests.support.matrix import slow_but
from tests.support.pulses import PULSES, own
from tests.support.threads import same_as_runs

CASES = slow_but([("tsit5", 2, 5), ("dop853", 2, None), ("rodas5p", 2, 5), ("rodas4", 8, 5)], [("tsit5", 2, 5)], several=True)


@pytest.mark.parametrize(("method", "states", "save"), CASES)
def test_parts_have_the_bits_of_runs(method: str, states: int, save: int | None) -> None:
    """Strict members have the states, steps, events and ends of strict single runs, whatever times they stop at."""
    given = own(19, states)
    run: dict[str, Any] = {"method": method, "sizes": {"M": states}, "save": save, "stop_at": [1.5], "max_step": 0.7, "first_step": 0.05}
    found = odesim.ensemble(PULSES, params=given, strict=True, threads=2, **run)
    fine = [i for i in range(19) if i != 2]
    names = found.attrs["status_names"]
    assert names[int(found.status[2])] == "ok" or np.isnan(given["late"][2]).all()
    part = found.isel(member=fine)
    same_as_runs(part, PULSES, len(fine), {name: values[fine] for name, values in given.items()}, **run)
    assert {names[int(s)] for s in part.status} >= {"ok", "event"} or states == 8


def test_parts_run_in_lanes() -> None:
    """Conditions on time alone keep members in lanes, and so do times that all of them stop at."""
    asked = EnsembleArguments(params=own(5))
    members, request = members_and_request(PULSES, asked, RunOptions(method="tsit5"))
    assert isinstance(make_engine(request, members), LaneEngine)
    members, request = members_and_request(PULSES, asked, RunOptions(method="rk4", step=0.1))
    assert not isinstance(make_engine(request, members), LaneEngine)


@pytest.mark.slow  # a kernel of its own; adaptive steps in parts are above
def test_fixed_steps_in_parts() -> None:
    """With a fixed step each part has its own whole steps, in an ensemble as in a run."""
    given = own(4)
    given["late"][2] = 1.0
    run: dict[str, Any] = {"method": "rk4", "step": 0.07, "save": 4}
    found = odesim.ensemble(PULSES, params=given, strict=True, **run)
    same_as_runs(found, PULSES, 4, given, **run)


@pytest.mark.slow
def test_few_steps_end_between_parts() -> None:
    """max_steps counts the steps of all parts."""
    given = own(6, 2)
    given["late"][2] = 1.0
    run: dict[str, Any] = {"method": "tsit5", "max_steps": 13, "save": 5, "sizes": {"M": 2}}
    found = odesim.ensemble(PULSES, params=given, strict=True, **run)
    same_as_runs(found, PULSES, 6, given, **run)
    assert found.attrs["status_names"][int(found.status[0])] == "max_steps"
