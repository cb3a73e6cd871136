"""Planes as arrays: flow, nullclines and rest states of a toggle switch that are known by hand, and maps against single runs."""

import numpy as np
import pytest
from sympy import Interval, exp, oo, symbols

import odesim
from odesim.base.errors import OdesimError
from odesim.explorer.controls import POINTS, Controls, Explored, Scale, scale_of
from odesim.explorer.views import Plane, axis_points, borders, component_names, sweep_of
from odesim.symbolic import Param, Source, System

x, y, z, t = symbols("x y z t", real=True)
a = symbols("a", positive=True)


def system(equations, **more) -> System:
    """A System of these equations."""
    params = (Param(a, 3.0, Interval.open(0, oo), "a rate"),)
    start = {key: 0.5 - 0.1 * k for k, key in enumerate(equations)}
    return System("test.plane", Source("none", "made for the tests"), {}, equations, params, start, span=(0.0, 20.0), **more)


TOGGLE = system({x: a / (1 + y**2) - x, y: a / (1 + x**2) - y})


def plane_of(model: System, first: str, second: str) -> Plane:
    """The plane of a run with the defaults."""
    explored, controls = Explored(model), Controls()
    return Plane(explored, controls, explored.run(controls), first, second)


def test_the_portrait_of_a_toggle_switch():
    """Flow by hand; nullclines on which it is 0; rest states x y = 1, x + y = 3 (stable) and x^3 + x = 3 (a saddle)."""
    plane = plane_of(TOGGLE, "x", "y")
    portrait = plane.portrait()
    assert portrait.whole
    X, Y = np.meshgrid(portrait.x, portrait.y)
    assert portrait.flow == pytest.approx(np.array([3 / (1 + Y**2) - X, 3 / (1 + X**2) - Y]), abs=1e-12)
    for k, lines in enumerate(portrait.nullclines):
        assert lines
        for line in lines:
            u, v = line[:, k], line[:, 1 - k]
            assert np.abs(u - 3 / (1 + v**2)).max() < 0.02  # linear between 20 places a side
    run = odesim.integrate(TOGGLE, save=POINTS)
    assert np.array_equal(portrait.way, np.stack([run.y["x"], run.y["y"]], axis=1))

    *_, (rests, stability) = plane.rests()
    low, high = (3 - 5**0.5) / 2, (3 + 5**0.5) / 2
    saddle = float(np.roots([1, 0, 1, -3])[-1].real)
    expected = sorted([(low, high, "stable"), (saddle, saddle, "saddle"), (high, low, "stable")])
    assert [word for *_, word in sorted(zip(*rests.T, stability, strict=True))] == [word for *_, word in expected]
    assert np.array(sorted(map(tuple, rests))) == pytest.approx(np.array([row[:2] for row in expected]), abs=1e-8)  # Newton's method


def test_a_slice_is_that_at_the_end_of_the_run():
    """Of three numbers the flow in the plane of two has the third one's value at the end; first and second are as chosen."""
    portrait = plane_of(system({x: -x + z, y: x - y, z: 1 - z}), "y", "x").portrait()
    end = odesim.integrate(system({x: -x + z, y: x - y, z: 1 - z})).y_end["z"]
    Y, X = np.meshgrid(portrait.x, portrait.y)
    assert not portrait.whole
    assert portrait.flow == pytest.approx(np.array([X - Y, end - X]), abs=1e-9)


def test_no_flow_field_where_the_right_hand_side_depends_on_time():
    """The sentence says why."""
    with pytest.raises(OdesimError, match="do not depend on t"):
        plane_of(system({x: exp(-t) - x, y: x - y}), "x", "y")


def test_a_map_is_single_runs():
    """Each number of a sweep is the end of the run with its two numbers, x along columns, also where a slider had changed one of them."""
    explored, controls = Explored(TOGGLE), Controls(params={"a": "2"}, initial={"y": "0.7"}, span="0:3")
    axes = {"a": scale_of(Interval.open(0, oo), 3.0), "x": Scale(-1.0, 1.0)}
    sweep = sweep_of(explored, controls, axes, "y", 3)
    assert sweep.x == pytest.approx(3 * 10.0 ** np.array([-4 / 3, 0, 4 / 3])) and sweep.y == pytest.approx([-2 / 3, 0, 2 / 3])
    for row, column in ((0, 2), (2, 1)):
        one = odesim.integrate(TOGGLE, params={"a": sweep.x[column]}, initial={"x": sweep.y[row], "y": 0.7}, span=(0, 3))
        assert sweep.values[row, column] == pytest.approx(float(one.y_end["y"]), rel=1e-5)  # 10 rtol: another engine


@pytest.mark.parametrize("scale", [Scale(0.0, 2.0), Scale(0.01, 100.0, log=True)])
def test_cells_lie_between_their_borders(scale):
    """Points are inside the cells, which fill the range of the slider."""
    edges, points = borders(scale, 5), axis_points(scale, 5)
    assert edges[[0, -1]] == pytest.approx([scale.low, scale.high])
    assert np.all(edges[:-1] < points) and np.all(points < edges[1:])


def test_component_names():
    """In C order, as in texts of the command line."""
    assert component_names(["u", "W"], [(), (1, 2)]) == ["u", "W[0, 0]", "W[0, 1]"]
