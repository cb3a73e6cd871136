"""Eigenvalues along a run: of linear systems, of losses whose Hessian is a closed form, and of differences of a loss."""

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sympy import Interval, Sum, exp, oo, symbols

import odesim
from odesim.base.errors import OdesimError
from odesim.cli.app import cli
from odesim.symbolic import IndexedBase, Map, Param, Source, System, gradient_flow, index, over, sizes, time

SOURCE = Source("none", "made for the tests")
a, b, x, y = symbols("a b x y", real=True)
(m,), (M,) = index("m"), sizes("M")
v, k = IndexedBase("v", shape=(M,)), IndexedBase("k", shape=(M,))


def system(equations, **more):
    """A System of these equations {state: right-hand side}."""
    return System("test.spectrum", SOURCE, more.pop("axes", {}), equations, more.pop("params", ()), more.pop("initial"), **more)


@pytest.mark.parametrize("rate", [1.0, 3.0])
def test_a_product_of_two_numbers(rate):
    """L = (s - a b)^2 / 2 has the Hessian [[b^2, 2 a b - s], [2 a b - s, a^2]], a^2 + b^2 and 0 at the minimum; rates change no Hessian."""
    s = 2.0
    flow = system(gradient_flow((s - a * b) ** 2 / 2, {a: rate, b: rate}), initial={a: 0.1, b: 0.3}, span=(0.0, 20.0))
    found = odesim.spectrum(flow, save=9, most=2, rtol=1e-10)
    run = odesim.integrate(flow, save=9, rtol=1e-10)
    for n, (p, q) in enumerate(zip(run.y["a"], run.y["b"], strict=True)):
        H = np.linalg.eigvalsh([[q * q, 2 * p * q - s], [2 * p * q - s, p * p]])
        assert found["sharpness"].values[n] == pytest.approx(H[::-1], abs=1e-9) and found["lowest"].values[n] == pytest.approx(
            H[0], abs=1e-9
        )
        np.testing.assert_allclose(found["eigenvalue_real"].values[n], -rate * H, atol=1e-9)
    p, q = run.final["a"], run.final["b"]
    assert float(found["sharpness"][-1, 0]) == pytest.approx(float(p * p + q * q), abs=1e-6)
    assert float(found["lowest"][0]) < 0 < float(found["sharpness"][-1, 0])


def test_the_hessian_of_a_deep_linear_network():
    """By central differences of the loss that the model observes: 1e-5 of their truncation and rounding."""
    found = odesim.spectrum("classics.deep_linear", sizes={"d": 2}, save=3, most=4)
    run = odesim.integrate("classics.deep_linear", sizes={"d": 2}, save=3)
    names, h = [*run.y], 1e-3
    for n in range(3):
        start = np.concatenate([run.y[name][n].ravel() for name in names])
        H = np.empty((len(start), len(start)))
        loss = losses("classics.deep_linear", {name: run.y[name].shape[1:] for name in names})
        for i, j in np.ndindex(H.shape):
            e, f = h * np.eye(len(start))[[i, j]]
            H[i, j] = (loss(start + e + f) - loss(start + e - f) - loss(start - e + f) + loss(start - e - f)) / (4 * h * h)
        values = np.linalg.eigvalsh((H + H.T) / 2)
        np.testing.assert_allclose(found["sharpness"].values[n], values[::-1][:4], atol=1e-5)
        assert float(found["lowest"][n]) == pytest.approx(values[0], abs=1e-5)


def losses(name, shapes):
    """The loss of a deep linear network of three layers, by hand: half the squared distance of the product from the target."""
    from odesim.inputs.bind import bind
    from odesim.inputs.registry import load_model

    numbers = bind(load_model(name), sizes={"d": 2})
    target = next(np.asarray(value) for value in numbers.params.values() if np.shape(value) == (2, 2))

    def loss(vector):
        product, place = np.eye(2), 0
        for shape in shapes.values():
            product = vector[place : place + 4].reshape(shape) @ product
            place += 4
        return np.sum((target - product) ** 2) / 2

    return loss


@pytest.mark.parametrize("count", [5, 300])
def test_many_states(count):
    """L = sum (k v^2 / 2) + (sum v)^2 / 2: k on the diagonal and 1 everywhere, by LAPACK and by Lanczos' method."""
    loss = over(Sum, k[m] * v[m] ** 2 / 2, (m, M)) + over(Sum, v[m], (m, M)) ** 2 / 2
    rates = np.linspace(-40.0, 4.0, count)  # the least is larger in size than the second largest
    flow = system(
        gradient_flow(loss, {v[m]: 1}), axes={m: M}, sizes={M: count}, initial={v[m]: 0.1}, span=(0.0, 0.1),
        params=(Param(k, 1.0, Interval(-oo, oo), "curvatures"),), views=(),
    )  # fmt: skip
    found = odesim.spectrum(flow, params={"k": rates}, save=2)
    values = np.linalg.eigvalsh(np.diag(rates) + 1.0)
    np.testing.assert_allclose(found["sharpness"].values, [values[::-1][:3]] * 2, rtol=1e-9)
    np.testing.assert_allclose(found["lowest"].values, values[0], rtol=1e-9)
    np.testing.assert_allclose(found["eigenvalue_real"].values[0], -values, atol=1e-9)


def test_time_scales():
    """A turning pair that decays at 0.5, and a state that grows at 2; of a Map the updates in which it halves."""
    turning = system({x: -x / 2 + 3 * y, y: -3 * x - y / 2, a: 2 * a}, initial={x: 1.0, y: 0.0, a: 1e-3}, span=(0.0, 1.0))
    found = odesim.spectrum(turning, save=2)
    np.testing.assert_allclose(found["time_scale"].values, [[-0.5, 2, 2]] * 2, rtol=1e-12)
    np.testing.assert_allclose(found["eigenvalue_imag"].values, [[0, 3, -3]] * 2, atol=1e-12)
    assert "sharpness" not in found and found.attrs["loss"] == ""
    halving = Map("test.map", SOURCE, {}, {x: x / 2, y: -3 * y}, (), {x: 1.0, y: 1e-3})
    found = odesim.spectrum(halving, steps=3, save=2)
    np.testing.assert_allclose(found["eigenvalue_real"].values, [[-3, 0.5]] * 2)
    np.testing.assert_allclose(found["time_scale"].values, [[-1 / np.log(3), 1 / np.log(2)]] * 2)


def test_the_time_of_a_run_counts():
    """x' = -t x has the eigenvalue -t."""
    found = odesim.spectrum(system({x: -time * x}, initial={x: 1.0}, span=(1.0, 3.0)), save=3)
    np.testing.assert_allclose(found["eigenvalue_real"].values[:, 0], [-1, -2, -3])


def test_another_loss_of_some_states():
    """An observable of one of two states: its own second derivative."""
    model = system({x: -x, y: -y}, initial={x: 1.0, y: 1.0}, span=(0.0, 1.0), observables={"bump": exp(-(x**2))})
    found = odesim.spectrum(model, save=2, of="bump", rtol=1e-10)
    at = np.exp(-np.array([0.0, 1.0]))
    np.testing.assert_allclose(found["sharpness"].values[:, 0], (4 * at**2 - 2) * np.exp(-(at**2)), rtol=1e-8)
    assert np.isnan(found["sharpness"].values[:, 1:]).all()


WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "loss": ("joma.nonlinear", {"of": "lost"}, "no observable of one expression 'lost'"),
    "still": (system({x: -x}, initial={x: 1.0}, observables={"c": 2 + 0 * a}, span=(0.0, 1.0)), {"of": "c"}, "depends on no state"),
    "none": ("joma.nonlinear", {"most": 0}, "most is at least 1"),
    "noise": ("particles.noisy_circle", {}, "has noise"),
    "early": (system({x: x**2}, initial={x: 1.0}, span=(0.0, 2.0)), {}, "the run ends before"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_a_sentence(name):
    """What has no eigenvalues, or asks for what is not there, is refused."""
    model, request, words = WRONG[name]
    with pytest.raises(OdesimError, match=words):
        odesim.spectrum(model, **request)


def test_the_command(tmp_path, monkeypatch):
    """Prints a table in 80 columns; stores, draws and prints the numbers that Python has; `odesim plot` draws the file."""
    monkeypatch.chdir(tmp_path)
    words = ["spectrum", "classics.deep_linear", "--size", "d=2", "--save", "4", "--most", "2"]
    done = CliRunner().invoke(cli, [*words, "--out", "s.nc", "--plot", "s.png"])
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80, done.output
    import xarray as xr

    found = odesim.spectrum("classics.deep_linear", sizes={"d": 2}, save=4, most=2)
    with xr.open_dataset("s.nc") as stored:
        np.testing.assert_array_equal(stored["sharpness"], found["sharpness"])
    printed = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    np.testing.assert_array_equal(printed["lowest"], found["lowest"])
    assert CliRunner().invoke(cli, ["plot", "s.nc", "--out", "again.png"]).exit_code == 0
    assert (tmp_path / "s.png").read_bytes() == (tmp_path / "again.png").read_bytes()
