"""`auto` from the facade: choices on the shipped models, and what is said of them in a Solution and by an ensemble."""

import json
import re
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import odesim
from odesim.cli import cli
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.run.auto import PILOT, explicit_name
from odesim.run.problem import make_problem, parts_of
from odesim.stepper.methods import METHODS
from odesim.stepper.tableau import step_cost
from tests.support.matrix import slow_but
from tests.support.models import COMPILED, FLOWS
from tests.support.stiff_set import SET

EXPLICIT = ("tsit5", "vern7", "dop853")
STIFF: dict[str, Any] = {"params": {"mu": [0.5, 2.0, 3.5, 5.0]}, "span": (0.0, 10.0)}  # rates up to exp(12.5) = 2.7e5


@pytest.mark.first(3)
@pytest.mark.parametrize("rtol", [1e-6, 1e-10])
@pytest.mark.parametrize("name", slow_but(FLOWS, COMPILED))
def test_choice_on_the_shipped_models(name: str, rtol: float) -> None:
    """The choice costs at most 1.5 times the right-hand sides of the cheapest explicit method, dop853 not counted where events are
    looked for on its interpolant; none of the models is stiff by default. For optimisers.momentum 2 times, 716 for 374."""
    kw: dict[str, Any] = {"rtol": rtol, "atol": 1e-3 * rtol}
    events = bool(load_model(name).events)
    calls = {m: odesim.integrate(name, method=m, **kw).stats["rhs_calls"] for m in EXPLICIT if m != "dop853" or not events}
    run = odesim.integrate(name, **kw)
    assert run.method == ("tsit5" if rtol == 1e-6 else "vern7" if events else "dop853") and run.attrs["auto"].startswith(
        f"{run.method}: done in "
    )
    assert run.stats["rhs_calls"] == calls[run.method] <= (2 if name == "optimisers.momentum" else 1.5) * min(calls.values())


@pytest.mark.parametrize("rtol", [1e-8, 1e-10])
@pytest.mark.parametrize("name", ["joma.nonlinear", "joma.nonlinear_softmax"])
def test_saved_points_are_as_exact_as_ends(name: str, rtol: float) -> None:
    """Within 50 tolerances of a run at 1e-13, at every saved time: dop853 is off by 500 to 3000 between its steps here."""
    run = odesim.integrate(name, rtol=rtol, atol=1e-3 * rtol, save=11)
    true = odesim.integrate(name, method="vern7", rtol=1e-13, atol=1e-15, save=11)
    assert np.max(np.abs(run.y["v"] - true.y["v"]) / (1e-3 + np.abs(true.y["v"]))) < 50 * rtol


@pytest.mark.parametrize("name", slow_but(SET, ("orego", "hires")))
def test_the_pilot_costs_less_than_what_it_ends_with(name: str) -> None:
    """On the stiff test set: fewer right-hand sides were computed before rodas5p takes over than it computes itself.

    The Oregonator's spikes look to a turn that ends in one as if the whole rest was so.
    """
    known = SET[name]
    rtol, atol = known.tolerances[0]
    run = odesim.integrate(known.system, rtol=rtol, atol=atol, max_steps=MOST)
    spent = re.search(r"with (\d+) right-hand sides", run.attrs["auto"])
    assert run.method == "rodas5p" and spent is not None and int(spent[1]) < run.stats["rhs_calls"]


MOST = 120_000
CHOICES = {
    f"{mu}, {rtol:g}{', strict' * strict}": (mu, span, rtol, strict)
    for rtol, strict in ((1e-6, False), (1e-8, False), (1e-6, True))
    for mu, span in (((2.0, 2.0, 2.0), 5.0), ((3.5, 3.0, 2.0), 5.0), ((4.0, 4.0, 4.0), 5.0), ((4.8, 3.0, 2.0), 4.0), ((7.0, 6.0, 5.0), 5.0))
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CHOICES)
def test_choice_by_counted_work(case: str) -> None:
    """What was chosen costs at most three times the cheapest method in counted operations, and the reason has its real numbers."""
    mu, span, rtol, strict = CHOICES[case]
    kw: dict[str, Any] = {"params": {"mu": mu}, "span": (0.0, span), "rtol": rtol, "atol": 1e-3 * rtol, "strict": strict}
    system = load_model("joma.nonlinear")
    compiled = parts_of(system, "numba", "float64", strict).compiled
    costs = make_problem(compiled, bind(system, params=kw["params"])).costs
    assert costs is not None
    explicit = explicit_name(rtol, None, between=True)  # the model has events

    def work(run: odesim.Solution) -> float:
        stiff = run.method == "rodas5p"
        step = costs.compiled() if stiff else step_cost(METHODS[run.method], costs.right(), 3)
        tried = float(run.stats["steps"] + run.stats["rejected"])
        return tried * step + (costs.derivation() if stiff else 0.0) if run.ok else np.inf

    chosen = odesim.integrate(system, **kw)
    named = {m: odesim.integrate(system, method=m, **kw, max_steps=MOST) for m in (explicit, "rodas5p")}
    assert chosen.ok and work(chosen) <= 3 * min(map(work, named.values())), chosen.attrs["auto"]
    assert chosen.attrs["auto"].startswith(f"{chosen.method}: done in {chosen.stats['steps']:.0f} steps")
    spent = re.search(r"came to t = (\S+) with (\d+) right-hand sides", chosen.attrs["auto"])
    assert (spent is not None) is (chosen.method == "rodas5p")
    if spent:  # what the pilot did: the explicit method, by its name, with the steps that it had by then
        tried = PILOT * 2 ** round(np.log2(int(spent[2]) / METHODS[explicit].last / PILOT))
        pilot = odesim.integrate(system, **kw, method=explicit, max_steps=tried)
        assert (f"{pilot.t_end:.4g}", pilot.stats["rhs_calls"]) == (spent[1], int(spent[2]))


@pytest.mark.slow
def test_stiff() -> None:
    """joma.nonlinear with mu = 5, where tsit5 takes 7e5 steps: rodas5p, with the bits it has by its name, dense output too."""
    run, named = odesim.integrate("joma.nonlinear", **STIFF), odesim.integrate("joma.nonlinear", method="rodas5p", **STIFF)
    assert run.method == "rodas5p" and run.ok and "stability, not accuracy" in run.attrs["auto"]
    assert np.array_equal(run.y["v"], named.y["v"]) and "auto" not in named.attrs
    assert np.array_equal(run.at(1.0)["v"], named.at(1.0)["v"])


@pytest.mark.slow
@pytest.mark.parametrize("most", [20_000, 200_000])
def test_too_few_steps_for_an_explicit_method(most: int) -> None:
    """vern7 needs some 7e5 steps here and costs less than rodas5p, which ends after 700: it is chosen where vern7 may not take as many."""
    run = odesim.integrate("joma.nonlinear", rtol=1e-10, atol=1e-13, max_steps=most, **STIFF)
    assert run.method == "rodas5p" and run.ok and "stability, not accuracy" in run.attrs["auto"]


@pytest.mark.slow
def test_strict() -> None:
    """rodas5p where the system fits lanes, with the bits it has by its name; where it does not, the reason says so."""
    asked: dict[str, Any] = {"params": {"mu": (7.0, 6.0, 5.0)}, "span": (0.0, 5.0), "strict": True}
    run, named = odesim.integrate("joma.nonlinear", **asked), odesim.integrate("joma.nonlinear", method="rodas5p", **asked)
    assert run.method == "rodas5p" and run.ok and "stability, not accuracy" in run.attrs["auto"]
    assert np.array_equal(run.y["v"], named.y["v"]) and run.stats["steps"] == named.stats["steps"]
    single = odesim.integrate("joma.nonlinear", params={"mu": (2.0, 3.5, 5.0)}, span=(0.0, 2.0), strict=True, dtype="float32", rtol=1e-5)
    assert single.method == "tsit5" and single.ok and "no strict mode for float32" in single.attrs["auto"]


@pytest.mark.slow
def test_ensemble() -> None:
    """rodas5p for a member that is stiff; members that are done soon have the explicit method of the tolerance, and its bits by name."""
    stiff = odesim.ensemble("joma.nonlinear", params={"mu": np.full((1, 2), 5.0)}, span=(0.0, 10.0))
    assert methods(stiff) == ["rodas5p"] and stiff.attrs["method"] == "auto"
    mu = np.linspace(0.5, 2.5, 200).reshape(100, 2)
    for rtol, most, name in ((1e-6, 8, "tsit5"), (1e-9, 0, "dop853")):
        easy = odesim.ensemble("joma.nonlinear", params={"mu": mu}, rtol=rtol, max_events=most)
        assert set(methods(easy)) == {name} and easy.attrs["auto"].startswith(f"{name}; rodas5p for members whose steps ")
        named = odesim.ensemble("joma.nonlinear", params={"mu": mu}, rtol=rtol, method=name, max_events=most)
        assert np.array_equal(easy.v, named.v) and "auto" not in named.attrs
    fixed = odesim.ensemble("joma.nonlinear", params={"mu": mu[:2]}, step=0.01, max_events=0)
    assert (fixed.attrs["method"], fixed.attrs["auto"]) == ("tsit5", "tsit5: a fixed step was asked for")


def methods(members: Any) -> list[str]:
    """The method of each member."""
    return [members.attrs["method_names"][k] for k in members.method.values]


def test_command_line() -> None:
    """The reason stands in --json and in the table; null for a method by its name."""
    said = {}
    for method in ("auto", "tsit5"):
        result = CliRunner().invoke(cli, ["integrate", "joma.nonlinear", "--method", method, "--json"])
        said[method] = json.loads(result.stdout)
    assert said["auto"]["method"] == "tsit5" and said["auto"]["auto"].startswith("tsit5: done in ")
    assert said["tsit5"]["auto"] is None and said["tsit5"]["final"] == said["auto"]["final"]
    assert "auto" in CliRunner().invoke(cli, ["integrate", "joma.nonlinear"]).stdout
