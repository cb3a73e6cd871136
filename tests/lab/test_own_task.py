"""Tasks of one's own: a gradient by reverse mode is that by hand and of finite differences, and descent is the map on the System."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sympy import Interval, Sum, oo, tanh

import odesim
from odesim.base.errors import OdesimError
from odesim.cli.app import cli
from odesim.lab.own_task import OwnTask
from odesim.lab.training.task import Setting
from odesim.symbolic import IndexedBase, Param, Source, System, gradient_flow, index, over, sizes

i, n, k = index("i n k")
D, N, K = sizes("D N K")
W, v = IndexedBase("W", shape=(K, D)), IndexedBase("v", shape=(K,))
X, y = IndexedBase("X", shape=(N, D)), IndexedBase("y", shape=(N,))
REAL = Interval(-oo, oo)
SAID = over(Sum, v[k] * tanh(over(Sum, W[k, i] * X[n, i], (i, D))), (k, K))
LOSS = over(Sum, (SAID - y[n]) ** 2, (n, N)) / (2 * N)
NET = System(
    name="my.net",
    source=Source("none", "made for the tests"),
    axes={k: K, i: D},
    equations=gradient_flow(LOSS, {W[k, i]: 1, v[k]: 1}),
    params=(Param(X, 0.0, REAL, "inputs"), Param(y, 0.0, REAL, "labels")),
    initial={W[k, i]: 0.0, v[k]: 0.0},
    sizes={D: 3, K: 2, N: 5},
    observables={"loss": LOSS},
)
INPUTS = np.random.default_rng(1).normal(size=(5, 3))
BATCH = {"X": INPUTS, "y": np.sin(INPUTS[:, 0])}


def start(rng, settings):
    return {"W": settings["scale"] * rng.normal(size=(2, 3)), "v": settings["scale"] * rng.normal(size=2)}


def by_hand(params, batch, settings):
    """The loss of the network and its gradient."""
    h = np.tanh(batch["X"] @ params["W"].T)
    miss = (h @ params["v"] - batch["y"]) / len(h)
    back = miss[:, None] * params["v"] * (1 - h**2)
    return len(h) * np.sum(miss**2) / 2, {"v": h.T @ miss, "W": back.T @ batch["X"]}


SETTINGS = (Setting("scale", 0.5, "deviation of the start"),)
TASK = OwnTask("my.task", start, lambda rng, settings: BATCH, NET, eta=0.1, steps=12, settings=SETTINGS, described_by={"my.net": BATCH})
HAND = replace(TASK, loss=by_hand)


def test_gradients():
    """Reverse mode, by hand, and central differences of the loss: three ways to one gradient, for each seed."""
    experiments = [task.make({"eta": 0.1, "scale": 0.5, "optimizer": "sgd", "momentum": 0.0}, seeds=(3, 4)) for task in (TASK, HAND)]
    assert experiments[0].start is not None
    params = experiments[0].start("float64")
    (loss, of_system), (same, hand) = (e.model.loss_and_gradients(params, e.stream(0)) for e in experiments)
    np.testing.assert_allclose(loss, same, rtol=1e-13)
    for name in ("W", "v"):
        np.testing.assert_allclose(of_system[name], hand[name], rtol=1e-11, atol=1e-15)
        for place in np.ndindex(*params[name].shape):
            h, sides = 1e-5, []
            for sign in (1, -1):
                moved = {key: value.copy() for key, value in params.items()}
                moved[name][place] += sign * h
                sides.append(experiments[1].model.loss_and_gradients(moved, experiments[1].stream(0))[0][place[0]])
            assert (sides[0] - sides[1]) / (2 * h) == pytest.approx(hand[name][place], abs=1e-8)


@pytest.mark.parametrize("task", [TASK, HAND], ids=["reverse", "by hand"])
def test_descent_is_the_map_on_the_system(task):
    """With one batch and momentum, each seed is the discrete map from its own start; the flow is that of eta an iteration."""
    words: dict[str, Any] = {"task": task, "seeds": (3, 4), "settings": {"momentum": 0.5}}
    comparison = odesim.compare(NET, map="discrete", **words)
    assert {row["observable"] for row in comparison.table()} == {"loss", "W", "v"} and comparison.notes == ()
    assert max(row["sup"] for row in comparison.table()) < 1e-13
    flow = odesim.compare(NET, **{**words, "settings": {"eta": 1e-4}})
    assert max(row["sup"] for row in flow.table()) < 1e-6 and flow.t[-1] == pytest.approx(12e-4)  # steps of 1e-4 squared


def test_seeds_and_batches():
    """A seed has the bits that it has alone; batches that are drawn anew depend on seed and iteration alone."""
    task = replace(HAND, data=lambda rng, settings: {"X": rng.normal(size=(5, 3)), "y": rng.normal(size=5)}, anew=True)
    both, alone = odesim.train(task, seeds=(1, 2)), odesim.train(task, seeds=(2,))
    np.testing.assert_array_equal(both.observables["W"][1], alone.observables["W"][0])
    stream = task.make({"eta": 0.1, "scale": 0.5, "optimizer": "sgd", "momentum": 0.0}, seeds=(1,)).stream
    first = stream(3)["X"].copy()
    assert not np.array_equal(first, stream(4)["X"]) and np.array_equal(first, stream(3)["X"])


def grow(params):
    return np.sum(params["v"] ** 2)


def test_a_training_is_continued_by_its_own_task_alone(tmp_path):
    """Continued it has the bits of one that was not stopped; another start, batch or loss of the same name is refused."""
    path, seeds = tmp_path / "run.zarr", (3, 4)
    whole = odesim.train(HAND, seeds=seeds, steps=12)
    odesim.train(HAND, seeds=seeds, steps=5, out=path)
    others = {
        "start": replace(HAND, start=lambda rng, settings: {k: 2 * v for k, v in start(rng, settings).items()}),
        "data": replace(HAND, data=lambda rng, settings: {**BATCH, "y": np.cos(INPUTS[:, 0])}),
        "loss": replace(HAND, loss=lambda *given: (2 * by_hand(*given)[0], {k: 2 * g for k, g in by_hand(*given)[1].items()})),
    }
    for task in others.values():
        with pytest.raises(OdesimError, match="was trained with setting first_loss"):
            odesim.train(task, seeds=seeds, steps=12, out=path, resume=True)
    for command in ("resume", "rerun"):
        done = CliRunner().invoke(cli, [command, str(path)])
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1) and "odesim train FILE.py" in done.stderr
    continued = odesim.train(HAND, seeds=seeds, steps=12, out=path, resume=True)
    for name, values in whole.observables.items():
        np.testing.assert_array_equal(continued.observables[name], values)


def test_observables():
    """What the task computes of the parameters is recorded at every iteration, beside the parameters."""
    run = odesim.train(replace(HAND, observables={"size": grow}), seeds=range(2), steps=3)
    np.testing.assert_allclose(run.observables["size"], np.sum(run.observables["v"] ** 2, axis=-1), rtol=1e-14)


WRONG: dict[str, Any] = {
    "no gradient": (replace(HAND, loss=lambda p, b, s: (1.0, {"v": p["v"]})), "the loss of my.task returns no gradient of W"),
    "other name": (replace(HAND, loss=lambda p, b, s: (1.0, {"vv": 1})), "no parameter 'vv' in the start of my.task; choose from W, v"),
    "shape": (replace(HAND, loss=lambda p, b, s: (1.0, {"v": 1.0, "W": p["W"]})), "the gradient of v in my.task has shape (), not (2,)"),
    "number": (
        replace(HAND, loss=lambda p, b, s: 1.0),  # type: ignore[arg-type,return-value]
        "the loss of my.task returns (loss, {name: gradient}), not 1.0",
    ),
    "start": (replace(TASK, start=lambda rng, s: {"W": np.ones((2, 3))}), "the start of my.task has no v, a state of my.net"),
    "state": (replace(TASK, start=lambda rng, s: {"w": np.ones(2)}), "no state 'w' in my.net"),
    "batch": (replace(TASK, data=lambda rng, s: {"Y": np.ones(2)}), "no parameter 'Y' in my.net"),
    "data": (
        replace(TASK, data=lambda rng, s: np.ones(2)),  # type: ignore[arg-type,return-value]
        "start and data of a task return {name: array}",
    ),
    "theory": (replace(TASK, described_by={"my.nett": {}}), "no System 'my.net' in what describes my.task; choose from my.nett"),
}


@pytest.mark.first(3)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_task_is_a_sentence(name):
    """Parts that do not fit together are named."""
    task, sentence = WRONG[name]
    with pytest.raises(OdesimError) as error:
        odesim.compare(NET, task=task, steps=1)
    assert sentence in str(error.value)


def test_parts_are_functions():
    """A number where a function must be is said when the task is made."""
    with pytest.raises(OdesimError, match=r"data of the task my\.task is a function, not 3"):
        replace(TASK, data=3)  # type: ignore[arg-type]


FILE = """
import numpy as np
from sympy import Interval, oo, symbols
from odesim.lab.own_task import OwnTask
from odesim.symbolic import Param, Source, System
x = symbols("x", real=True)
k = symbols("k", positive=True)
SOURCE = Source("none", "none")
RATE = Param(k, 1.0, Interval.open(0, oo), "rate")
SYSTEM = System("my.decay", SOURCE, {}, {x: -k * x}, (RATE,), {x: 1.0}, observables={"loss": k * x**2 / 2})
def loss(params, batch, settings):
    return batch["k"] * params["x"] ** 2 / 2, {"x": batch["k"] * params["x"]}
def start(rng, settings):
    return {"x": 1.0 + rng.random()}
def data(rng, settings):
    return {"k": 2.0}
TASK = OwnTask("my.bowl", start, data, loss, steps=20, described_by={"my.decay": {"k": 2.0}})
NUMBER = 3
"""


def test_a_file(tmp_path, monkeypatch):
    """train, --settings and compare take the file; what is wrong with it is one sentence with code 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bowl.py").write_text(FILE)
    for words, text in (
        ("train bowl.py --seeds 0:2", "my.bowl (own): ok at iteration 20, 2 seeds"),
        ("train bowl.py --settings", "eta        0.01     learning rate (above 0)"),
        ("compare bowl.py --task bowl.py --seeds 0:2 --map discrete --plot c.png", "my.bowl (own), 2 seeds"),
    ):
        done = CliRunner().invoke(cli, words.split())
        assert (done.exit_code, done.stderr) == (0, "") and text in done.stdout, done.output
    for words, sentence in (
        ("train bowls.py", "there is no task file 'bowls.py'; did you mean 'bowl.py'?"),
        ("compare bowl.py --task bowl.py:TASKS", "bowl.py has no TASKS, it has TASK; did you mean 'TASK'?"),
        ("train bowl.py:NUMBER", "bowl.py: NUMBER must be a task, not 3"),
        ("train bowl.py --set etta=1", "no setting 'etta' in bowl.py"),
    ):
        done = CliRunner().invoke(cli, words.split())
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1) and sentence in done.stderr, done.output
