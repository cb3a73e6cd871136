"""Events that states below the absolute tolerance decide have a mark, in lists, counts, pictures and stored runs, and no other has."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sympy import Interval, Symbol, oo

import odesim
from odesim.cli.results import event_text
from odesim.store.write import write_solution
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, sizes

(i,), (N,) = index("i"), sizes("N")
S, I = IndexedBase("S", shape=(N,)), IndexedBase("I", shape=(N,))
x, v, beta = (Symbol(name, real=True) for name in ("x", "v", "beta"))
OUTBREAKS = System(
    name="own", source=Source("own", "epidemics in patches"), axes={i: N}, span=(0, 120),
    equations={S[i]: -beta * (1 + i) * S[i] * I[i], I[i]: beta * (1 + i) * S[i] * I[i] - I[i]},
    params=(Param(beta, 2.0, Interval(-oo, oo), "rate"),), initial={S[i]: 0.999, I[i]: 1e-3},
    events=(Event("peak", beta * (1 + i) * S[i] * I[i] - I[i], -1),),
)  # fmt: skip
SWING = System(
    name="own", source=Source("own", "a pendulum"), axes={}, span=(0, 12), equations={x: v, v: -x}, params=(), initial={x: 1, v: 0},
    events=(Event("passes", x), Event("turns", v)),
)  # fmt: skip


@pytest.mark.first(2)
@pytest.mark.parametrize("method", ["tsit5", "rodas5p", "vern7", "auto"])
@pytest.mark.parametrize("rate", [1.5, 3.5, 2.0])
def test_an_epidemic_has_one_peak(rate: float, method: str) -> None:
    """In each patch, whatever atol is: dI/dt passes 0 once; what is found in the noise that is left of I has the mark."""
    for atol in (1e-6, 1e-9, 1e-13):
        size = {"N": 3} if method != "tsit5" else {"N": 5}
        run = odesim.integrate(OUTBREAKS, sizes=size, params={"beta": rate}, method=method, atol=atol, backend="numpy")
        peaks = [event for event in run.events["peak"] if "below_tolerance" not in event]
        assert sorted(event["index"] for event in peaks) == [(k,) for k in range(size["N"])]
        # where S is 1/(beta (1 + i)), from the first integral I + S - ln(S)/R
        for event in peaks:
            R = rate * (1 + event["index"][0])
            state = run.at(event["t"])
            height = 1e-3 + 0.999 - (1 + np.log(0.999 * R)) / R
            assert state["I"][event["index"]] == pytest.approx(height, rel=1e-3)


@pytest.mark.filterwarnings("ignore::odesim.base.errors.ToleranceWarning")
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
@pytest.mark.parametrize("scale", 10.0 ** np.arange(-13, 1, 2))
def test_a_mark_is_one_of_size(scale: float, method: str) -> None:
    """Zeros of a pendulum that swings a hundred atol and more have none, of one that swings a fifth of it all have one."""
    given: dict[str, Any] = {"method": method, "backend": "numpy", "initial": {"x": scale}}
    for atol, marked in ((scale / 200, False), (scale * 5, True)):
        run = odesim.integrate(SWING, atol=atol, **given)
        for name in ("passes", "turns"):
            assert len(run.events[name]) > 1 and all(("below_tolerance" in event) == marked for event in run.events[name])


def test_fixed_steps_have_no_marks() -> None:
    """They have no tolerance."""
    run = odesim.integrate(SWING, method="rk4", step=0.01, backend="numpy", initial={"x": 1e-15}, span=(0, 30))
    assert len(run.events["passes"]) == 10 and not any("below_tolerance" in event for event in run.events["passes"])


def test_marks_are_shown_and_stored(tmp_path: Path) -> None:
    """In the text of a command, in the legend, and as faint marks; also of a run that is read again."""
    run = odesim.integrate(OUTBREAKS, sizes={"N": 1}, method="tsit5", backend="numpy", save=400)
    noise = sum("below_tolerance" in event for event in run.events["peak"])
    assert noise == len(run.events["peak"]) - 1 > 2
    text = event_text(run.events["peak"]).replace("\u00a0", " ")
    assert "(below atol)" in text
    write_solution(run, tmp_path / "run.zarr")
    stored = odesim.open_run(tmp_path / "run.zarr").load().events["peak"]
    assert [(e["t"], e.get("below_tolerance")) for e in stored] == [(e["t"], e.get("below_tolerance")) for e in run.events["peak"]]
    axes: Any = run.plot("I")
    texts = [t.get_text() for t in axes.figure.findobj(plt.Text)]
    assert any(f"{noise} below atol" in text for text in texts)
    plt.close(axes.figure)
