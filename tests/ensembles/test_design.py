"""Designs: a member's values follow from its number, whatever else is asked for."""

import re
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

import odesim
from odesim.base.errors import OdesimError, ParamError
from odesim.base.options import Values as EnsembleArguments
from odesim.ensembles import design as designs
from odesim.ensembles.design import Design, Points, Random, Spread, Table, design_from_plain, design_members, uniforms
from odesim.ensembles.sequences import SEQUENCES
from odesim.inputs.registry import load_model

MODEL = "joma.nonlinear"
PARTS = (
    Random("a", "uniform", -1.0, 3.0, 7, (3,)),
    Random("b", "normal", 2.0, 0.5, 7),
    Points("c", np.array([1.0, 2.0, 4.0]), 2, (5,)),
    Table("d", np.arange(24.0).reshape(12, 2), (2,)),
)
DESIGN = Design(PARTS, 12)


def of(**asked):
    """The Members of a design of joma.nonlinear with three modes."""
    seed = asked.pop("seed", 0)
    return design_members(load_model(MODEL), EnsembleArguments(**{"sizes": {"M": 3}, **asked}), seed)


@pytest.mark.parametrize(("first", "end"), [(0, 12), (0, 1), (1, 2), (5, 12), (3, 8), (11, 12), (4, 4)])
def test_rows_do_not_depend_on_what_is_asked_for(first, end):
    """The rows of any members are those rows of all of them."""
    whole, part = DESIGN.rows(0, 12), DESIGN.rows(first, end)
    for name, values in whole.items():
        np.testing.assert_array_equal(part[name], values[first:end])
        assert part[name].shape == (end - first, *{p.name: p.shape for p in PARTS}[name])


@pytest.mark.parametrize(("seed", "name", "first", "count"), [(0, "mu", 0, 9), (3, "v", 5, 6), (3, "v", 4, 1), (1, "x", 4_000_003, 2)])
def test_a_stream_is_philox_entered_anywhere(seed, name, first, count):
    """The numbers are those of numpy's Philox with the key of seed and name, which has jumped there by `advance`; 52 bits of each."""
    source = np.random.Philox(key=np.random.SeedSequence([seed, *name.encode()]).generate_state(2, np.uint64))
    source.advance(first // 4)
    raw = [int(r) for r in source.random_raw(first % 4 + count)][first % 4 :]
    found = uniforms(seed, name, first, count)
    assert [int(u * 2**53) for u in found] == [2 * (r >> 12) + 1 for r in raw]


@pytest.mark.parametrize(
    ("part", "law"),
    [
        (Random("x", "uniform", -1.0, 3.0, 0), stats.uniform(-1, 4)),
        (Random("x", "normal", 2.0, 0.5, 0), stats.norm(2.0, 0.5)),
        (Random("x", "loguniform", 0.01, 30.0, 0), stats.loguniform(0.01, 30.0)),
    ],
    ids=["uniform", "normal", "loguniform"],
)
def test_draws_have_their_law(part, law):
    """20 000 draws against the distribution function, Kolmogorov-Smirnov; the seed is fixed, p = 1e-3 would be bad luck."""
    assert stats.kstest(Design((part,), 20_000).rows(0, 20_000)["x"], law.cdf).pvalue > 1e-3


def test_streams_differ():
    """Another seed, or another name, is another stream."""
    streams = [tuple(uniforms(seed, name, 0, 4)) for seed in (0, 1) for name in ("a", "b")]
    assert len(set(streams)) == 4


ENGINES = {"sobol": qmc.Sobol, "halton": qmc.Halton, "latin": qmc.LatinHypercube}
EVEN: dict[str, Any] = {"vary": {"mu": "uniform(0,1)", "v": "loguniform(0.01,3)", "A": "normal(1,2)"}, "seed": 5}


def even(model=MODEL, **asked):
    """The rows of an even design of three numbers, and of their places in the unit cube as scipy has them."""
    vary = {**EVEN["vary"]} if model != MODEL else {name: value for name, value in EVEN["vary"].items() if name != "A"}
    members = design_members(load_model(model), EnsembleArguments(**{"vary": vary, "sizes": {"M": 3}, **asked}), EVEN["seed"])
    return members.source


@pytest.mark.parametrize("name", SEQUENCES)
def test_an_even_design_is_that_of_scipy(name):
    """Point for point with the same seed, a dimension for each entry in the order of vary, through scipy's quantiles."""
    u = ENGINES[name](6, rng=5).random(16)
    labels = even(members=16, design=name).labels(0, 16)
    np.testing.assert_array_equal(labels["mu"], u[:, :3])
    np.testing.assert_allclose(labels["v"], stats.loguniform(0.01, 3.0).ppf(u[:, 3:]), rtol=1e-14)  # rounding
    normal = Spread("x", "normal", 1.0, 2.0, 5, (2,), name, 16, 0, 2)
    np.testing.assert_allclose(normal.values(np.arange(16), 0), stats.norm(1, 2).ppf(ENGINES[name](2, rng=5).random(16)), rtol=1e-14)


@pytest.mark.parametrize("name", SEQUENCES)
def test_an_even_design_does_not_depend_on_what_is_asked_for(name):
    """Any rows are those of all, for a count that is no power of 2 too, and every point of a grid has the same ones."""
    design = even(members=12, design=name)
    whole = design.rows(0, 12)
    for first, end in [(0, 1), (1, 2), (5, 12), (3, 8), (11, 12), (4, 4)]:
        for key, values in design.rows(first, end).items():
            np.testing.assert_array_equal(values, whole[key][first:end])
    grid = design_members(
        load_model(MODEL),
        EnsembleArguments(vary={"v": "loguniform(0.01,3)"}, grid={"mu": "1,2"}, members=6, design=name, sizes={"M": 2}),
        5,
    )
    rows = grid.source.rows(0, 12)["v"]
    np.testing.assert_array_equal(rows[:6], rows[6:])
    np.testing.assert_array_equal(grid.source.rows(4, 9)["v"], rows[4:9])
    again = design_from_plain(design.to_plain(), 12, {}, {}).with_shapes({part.name: part.shape for part in design.parts})
    np.testing.assert_array_equal(again.rows(3, 7)["v"], whole["v"][3:7])


@pytest.mark.parametrize("name", SEQUENCES)
def test_points_of_another_scipy_are_refused(name, monkeypatch):
    """A stored design whose points scipy makes otherwise by now is no design: half of the members would be of another one."""
    design = even(members=12, design=name)
    plain, shapes = design.to_plain(), {part.name: part.shape for part in design.parts}
    made = designs.sequence
    assert design_from_plain(plain, 12, {}, {}).with_shapes(shapes).to_plain() == plain
    monkeypatch.setattr(designs, "sequence", lambda *arguments: made(*arguments) / 2)
    with pytest.raises(ParamError, match=f"the points of the design {name} are made by scipy, and this version makes others"):
        design_from_plain(plain, 12, {}, {}).with_shapes(shapes)


@pytest.mark.parametrize("name", SEQUENCES)
def test_an_even_design_has_smaller_gaps(name):
    """The centred discrepancy of 128 points is below that of random ones, and of a uniform(0,1) each decile has 12 or 13, up to one."""
    random, placed = (even(members=128, design=kind).rows(0, 128)["mu"] for kind in ("random", name))
    assert qmc.discrepancy(placed) < 0.5 * qmc.discrepancy(random)
    counts = np.array([np.histogram(column, 10, (0, 1))[0] for column in placed.T])
    assert counts.min() >= 11 and counts.max() <= 14


def test_an_even_ensemble_is_stored_and_continued(tmp_path):
    """In memory, stored in shards and by two threads: the same numbers, to which the Dataset gives the name of the design."""
    request: dict[str, Any] = {
        **EVEN,
        "vary": {"mu": "uniform(0.5,1)"},
        "members": 24,
        "design": "sobol",
        "sizes": {"M": 2},
        "span": (0, 0.5),
    }
    here = odesim.ensemble(MODEL, **request)
    for shard in ((1, 2), (2, 2)):
        there = odesim.ensemble(MODEL, **request, out=tmp_path / "run.zarr", shard=shard, threads=2)
    for name in ("mu", "v"):
        np.testing.assert_array_equal(here[name], there[name])
    assert here["mu"].attrs["design"] == there["mu"].attrs["design"] == "sobol"


def test_a_grid_is_every_combination():
    """Two grids and a zip: the members are itertools' product, the first grid slowest, the zip fastest."""
    from itertools import product

    made = of(grid={"mu": "linspace(1,2,3)"}, zipped={"v": [0.1, 0.2]})
    labels, rows = made.source.labels(0, 6), made.source.rows(0, 6)
    assert list(zip(labels["mu"], labels["v"], strict=True)) == list(product([1.0, 1.5, 2.0], [0.1, 0.2]))
    np.testing.assert_array_equal(rows["mu"], np.repeat(labels["mu"][:, None], 3, axis=1))
    np.testing.assert_array_equal(of(grid={"mu": "logspace(-1,1,3)"}).source.labels(0, 3)["mu"], [0.1, 1.0, 10.0])


@pytest.mark.parametrize("kind", ["grid", "zipped"])
def test_draws_at_each_point_of_a_grid(kind):
    """Neighbours share a point; every member has its own random value, that of its number; without members one at each point."""
    given = {kind: {"mu": "1,2,3"}, "vary": {"v": "uniform(0,1)"}}
    made = of(**given, members=4)
    labels = made.source.labels(0, made.source.count)
    assert made.source.count == 12 and list(labels["mu"]) == [mu for mu in (1, 2, 3) for _ in range(4)]
    np.testing.assert_array_equal(labels["v"], of(vary={"v": "uniform(0,1)"}, members=12).source.labels(0, 12)["v"])
    one, alone = of(**given, members=1), of(**given)
    assert one.source.count == alone.source.count == 3
    np.testing.assert_array_equal(one.source.labels(0, 3)["mu"], alone.source.labels(0, 3)["mu"])


def test_draws_at_each_point_of_a_grid_and_a_zip():
    """The grid is slowest, the draws are fastest."""
    given: dict[str, Any] = {"vary": {"A": "normal(0,1)"}, "grid": {"sigma": "0,0.1"}, "zipped": {"eta": "1,2,3"}, "members": 2}
    made: Any = design_members(load_model("classics.committee"), EnsembleArguments(**given), 0)
    labels = made.source.labels(0, 12)
    assert list(zip(labels["sigma"], labels["eta"], strict=True)) == [(s, eta) for s in (0, 0.1) for eta in (1, 2, 3) for _ in range(2)]
    assert len(np.unique(labels["A"])) == labels["A"].size


def test_points_with_a_shape():
    """A grid of whole arrays, and of one zipped with numbers."""
    points = np.array([[1.0, 2.0, 3.0], [0.5, 1.0, 1.5]])
    rows = of(zipped={"mu": points, "v": "0.1,0.2"}).source.rows(0, 2)
    np.testing.assert_array_equal(rows["mu"], points)
    np.testing.assert_array_equal(rows["v"], [[0.1] * 3, [0.2] * 3])


def test_a_design_is_said_and_read():
    """What to_plain() gives, with points and tables, is the same design again."""
    again = design_from_plain(DESIGN.to_plain(), 12, {"c": PARTS[2].points}, {"d": PARTS[3].table}).with_shapes(
        {p.name: p.shape for p in PARTS}
    )
    for name, values in DESIGN.rows(0, 12).items():
        np.testing.assert_array_equal(again.rows(0, 12)[name], values)


def test_a_table_of_a_file_stays_there(tmp_path):
    """A .npy file is mapped, not read; its rows are the members'."""
    values = np.random.default_rng(0).uniform(0.5, 1.0, (7, 3))
    np.save(tmp_path / "mu.npy", values)
    made = of(vary={"mu": f"@{tmp_path / 'mu.npy'}"})
    assert isinstance(made.source.parts[0].table, np.memmap) and made.source.count == 7
    np.testing.assert_array_equal(made.source.rows(2, 5)["mu"], values[2:5])


def test_in_memory_a_design_is_its_rows():
    """odesim.ensemble with a design has the bits of one with the arrays that it stands for; points are coordinates."""
    design = odesim.ensemble(MODEL, vary={"v": "uniform(0,0.1)"}, grid={"mu": [0.5, 1.0]}, sizes={"M": 2}, span=(0.0, 1.0), save=2)
    arrays = odesim.ensemble(
        MODEL,
        params={"mu": np.outer([0.5, 1.0], np.ones(2))},
        initial={"v": design.v_start.values},
        sizes={"M": 2},
        span=(0.0, 1.0),
        save=2,
    )
    np.testing.assert_array_equal(design.v, arrays.v)
    assert design.mu.dims == ("member",) and design.v_start.dims == ("member", "l")
    assert {"mu", "v_start"} <= set(design.coords)


WRONG: dict[str, Any] = {
    "nothing": ({"members": 3}, "needs members that differ"),
    "unknown": ({"vary": {"my": "uniform(0,1)"}, "members": 3}, "no parameter or state 'my' in joma.nonlinear; .*did you mean 'mu'"),
    "no count": ({"vary": {"mu": "uniform(0,1)"}}, "how many members should be drawn for mu"),
    "none": ({"vary": {"mu": "uniform(0,1)"}, "members": 0}, "members must be a whole number"),
    "too many": ({"vary": {"mu": "uniform(0,1)"}, "members": 10**11}, "members must be a whole number"),
    "members and grid": ({"grid": {"mu": "1,2"}, "members": 3}, "already make 2 members; --members counts random draws at each"),
    "zips": ({"zipped": {"mu": "1,2", "v": "1,2,3"}}, "zipped values go together: mu has 2, v has 3"),
    "twice": ({"vary": {"mu": "uniform(0,1)"}, "grid": {"mu": "1,2"}}, "mu is given twice: --vary and --grid"),
    "shared too": ({"grid": {"mu": "1,2"}, "params": {"mu": 1.0}}, "mu is given twice: --set and --grid"),
    "same for all": ({"vary": {"mu": "3"}, "members": 3}, "the same for every member"),
    "not random": ({"vary": {"mu": "linspace(0,1)"}, "members": 3}, "not drawn at random: write --grid mu=linspace"),
    "points that are not random": ({"vary": {"mu": "linspace(0,1,5)"}}, r"not drawn at random: write --grid mu=linspace\(0,1,5\)"),
    "a slice to draw from": ({"vary": {"mu": "0:1"}}, r"write uniform\(0,1\) for .*, --grid mu=linspace\(0,1,n\) for even ones"),
    "a slice of points to draw from": ({"vary": {"mu": "0:1:20"}}, r"--grid mu=linspace\(0,1,20\) for even ones"),
    "points as a slice": ({"grid": {"mu": "0:1:10"}}, r"write linspace\(0,1,10\) for points"),
    "points without their number": (
        {"grid": {"mu": "0:1"}},
        r"'0:1' lacks the number of points .start:stop:number.* linspace.0,1,n.",
    ),
    "a slice of no numbers": ({"grid": {"mu": "log:4"}}, "'log' is not a number; write linspace"),
    "points by a step": ({"grid": {"mu": "0:1:0.1"}}, r"write linspace\(0,1,11\) for points"),
    "points by a step down": ({"grid": {"mu": "1:0:-0.25"}}, r"write linspace\(1,0,5\) for points"),
    "a step in the middle": ({"grid": {"mu": "0:0.1:1"}}, r"write linspace\(a,b,n\) for n points from a to b, not '0:0.1:1'"),
    "random points": ({"grid": {"mu": "uniform(0,1)"}}, r"write linspace.*; --vary mu=uniform\(0,1\) draws at random"),
    "two numbers": ({"grid": {"mu": "linspace(0,1)"}}, "takes two numbers and how many points"),
    "half a point": ({"grid": {"mu": "linspace(0,1,2.5)"}}, "whole number"),
    "overflow": ({"grid": {"mu": "logspace(0,400,3)"}}, "overflows"),
    "huge": ({"grid": {"mu": "linspace(0,1,100000)", "v": "linspace(0,1,1000000)"}}, "are more than"),
    "rows": ({"vary": {"mu": "[[1,2,3],[1,2,3]]"}, "members": 3}, "mu has 2 rows for 3 members"),
    "rank": ({"vary": {"mu": "1,2,3"}}, "needs 2 axes"),
    "shape": ({"grid": {"mu": "[[1,2],[3,4]]"}}, r"M|shape"),
    "seed": ({"vary": {"mu": "uniform(0,1)"}, "members": 3, "seed": -1}, "seed must be"),
    "words": ({"vary": {"mu": ["a", "b"]}}, "must hold numbers"),
    "rows of several lengths": ({"grid": {"mu": [[1, 2], [3]]}}, "--grid mu is not an array of numbers: its rows have different lengths"),
    "a tuple": ({"vary": {"mu": ("uniform", 0, 1)}}, "a distribution is text"),
    "file": ({"vary": {"mu": "@absent.npy"}}, "no file 'absent.npy'"),
    "design": ({"vary": {"mu": "uniform(0,1)"}, "members": 3, "design": "sobel"}, "no design 'sobel'; .*did you mean 'sobol'"),
    "even and nothing random": ({"grid": {"mu": "1,2"}, "design": "latin"}, "design latin places random values, and none are"),
    "wide": ({"vary": {"v": "uniform(0,1)"}, "members": 2, "design": "halton", "sizes": {"M": 1001}}, "at most 1000 numbers of a member"),
    "many": ({"vary": {"mu": "uniform(0,1)"}, "members": 2**30 + 1, "design": "sobol"}, "at most 1073741824 members"),
    "logarithm": ({"vary": {"mu": "loguniform(0,1)"}, "members": 3}, "both numbers must be positive"),
    "code": ({"grid": {"mu": "__import__('os').system('x')"}}, "no function '__import__'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_designs(case):
    """A design that cannot be met says in one sentence why."""
    asked, words = WRONG[case]
    with pytest.raises(OdesimError, match=words) as raised:
        of(**asked)
    assert "\n" not in str(raised.value) and not re.search(r"Traceback|numpy\.", str(raised.value))


def test_members_of_several_lengths():
    with pytest.raises(ParamError, match="mu is not an array of numbers: its rows have different lengths"):
        odesim.ensemble(MODEL, params={"mu": [[1, 2], [3]]})


def test_draws_outside_a_domain_are_refused_by_member(tmp_path):
    """normal() reaches below a domain that starts at 0: a wrong request, before a folder is there."""
    from tests.run.test_ensemble import forced

    with pytest.raises(ParamError, match=r"of member \d+ lies outside"):
        odesim.ensemble(forced(), vary={"a": "normal(1,0.6)"}, members=500, out=tmp_path / "run.zarr")
    assert not (tmp_path / "run.zarr").exists()
