"""A System and numbers: sizes that follow from what is given, defaults, and one sentence for everything that does not fit."""

import json
import math
import sys

import numpy as np
import pytest
from sympy import Expr, FiniteSet, Integers, Interval, Range, Reals, S, Sum, Symbol, oo

from odesim.base.errors import ModelError, ParamError, SpecError
from odesim.inputs.bind import bind
from odesim.inputs.grammar import parse_value
from odesim.inputs.registry import load_model
from odesim.symbolic import Constraint, IndexedBase, Param, Source, System, index, over, sizes
from tests.support.models import CHEAPEST_FIRST

n, l, m, j = index("n l m j")
K, T, Q, L = sizes("K T Q L")
P, psi, p = IndexedBase("P", shape=(K, T)), IndexedBase("psi", shape=(K,)), IndexedBase("p", shape=(K,))
mu, pair, both = IndexedBase("mu", shape=(L - 1,)), IndexedBase("pair", shape=(2,)), IndexedBase("both", shape=(K + T,))
Z, v = IndexedBase("Z", shape=(Q, T)), IndexedBase("v", shape=(L - 1,))
tau, count, sign, B = Symbol("tau", positive=True), Symbol("count"), Symbol("sign"), Symbol("B")

SYSTEM = System(
    name="test.all",
    source=Source("none", ""),
    axes={n: K, l: T, m: Q, j: L - 1},
    equations={Z[m, l]: -Z[m, l], v[j]: mu[j] - v[j], B: -B / tau},
    params=(
        Param(P, lambda sizes, known: np.full((sizes["K"], sizes["T"]), 1 / sizes["T"]), Interval(0, 1), "rows"),
        Param(psi, lambda sizes, known: np.arange(len(known["P"])), Integers, "rows of Z", indexes=Q),
        Param(p, lambda sizes: np.full(sizes["K"], 1 / sizes["K"]), Interval.Lopen(0, 1), "weights"),
        Param(mu, 2, Interval(-oo, oo), "target"),
        Param(pair, 0.5, Interval.open(0, 1), "of two"),
        Param(both, 0.0, Interval(-oo, oo), "long"),
        Param(tau, 1.0, Interval.open(0, oo), "time"),
        Param(count, 3, Range(1, 10), "how many"),
        Param(sign, 1, FiniteSet(-1, 1), "which way"),
    ),
    initial={Z[m, l]: 0, v[j]: mu[j] / 2 + j, B: tau},
    sizes={K: 2, T: 4, L: 3},
    span=(0, 10),
    constraints=(
        Constraint("rows of P sum to 1", over(Sum, P[n, l], (l, T)) - 1, "==0", tol=1e-6),
        Constraint("sum p", over(Sum, p[n], (n, K)) - 1, "==0", tol=1e-6),
        Constraint("count is enough", 2 * count - K, ">=0"),
        Constraint("mu falls", over(Sum, P[n, l] * mu[j], (l, T)) + 9, ">=0"),
    ),
)
EVEN = [[0.5, 0.5], [0.25, 0.75], [1, 0]]


@pytest.mark.first(12)
@pytest.mark.parametrize("name", CHEAPEST_FIRST)
def test_every_shipped_model_binds_by_default(name):
    """Nothing given: arrays of the declared shapes, all finite, and the System's own span."""
    system = load_model(name)
    got = bind(system)
    for p in system.params:
        shape = tuple(int(S(d).subs({s: got.sizes[str(s)] for s in S(d).free_symbols})) for d in p.shape)
        assert np.shape(got.params[p.name]) == shape and np.isfinite(got.params[p.name]).all()
    assert tuple(got.initial) == system.states and (got.t0, got.t1) == system.span
    assert all(a.dtype == np.float64 and np.isfinite(a).all() for a in got.initial.values())


def test_defaults_follow_from_each_other():
    """Numbers fill, functions see the sizes and what was bound before, initial values are formulas of both."""
    got = bind(SYSTEM)
    assert got.sizes == {"K": 2, "T": 4, "Q": 2, "L": 3}
    np.testing.assert_array_equal(got.params["P"], np.full((2, 4), 0.25))
    np.testing.assert_array_equal(got.params["psi"], [0, 1])
    np.testing.assert_array_equal(got.params["mu"], [2.0, 2.0])
    np.testing.assert_array_equal(got.initial["v"], [1.0, 2.0])
    assert (got.initial["B"].shape, got.initial["B"][()]) == ((), 1.0)
    assert [type(got.params[k]) for k in ("tau", "count", "sign")] == [float, int, int]
    assert (got.params["psi"].dtype, got.params["P"].dtype) == (np.int64, np.float64)
    assert (got.t0, got.t1) == (0.0, 10.0)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"sizes": {"K": 5}}, {"K": 5, "Q": 5, "T": 4}),
        ({"params": {"P": EVEN}}, {"K": 3, "T": 2, "Q": 3}),
        ({"params": {"P": EVEN, "psi": [1, 0, 1]}}, {"K": 3, "Q": 2}),
        ({"params": {"psi": 0}}, {"K": 2, "Q": 1}),
        ({"params": {"psi": [0, 1, 2, 1]}}, {"K": 4, "Q": 3}),
        ({"params": {"mu": [1, 2, 3, 4]}}, {"L": 5}),
        ({"params": {"mu": 7}}, {"L": 3}),
        ({"initial": {"v": [0.0]}}, {"L": 2}),
        ({"initial": {"Z": np.zeros((2, 7))}}, {"Q": 2, "T": 7}),
        ({"params": {"both": np.zeros(9)}, "sizes": {"K": 3}}, {"K": 3, "T": 6}),
        ({"params": {"both": np.zeros(9)}}, {"K": 2, "T": 7}),
        ({"params": {"P": EVEN, "both": np.zeros(5)}, "sizes": {"T": 2}}, {"K": 3, "T": 2}),
    ],
    ids=str,
)
def test_sizes_follow_from_what_is_given(given, wanted):
    """Explicit sizes, then arrays (L from an axis of L - 1, T from one of K + T), then psi, then defaults."""
    got = bind(SYSTEM, **given)
    assert {k: got.sizes[k] for k in wanted} == wanted
    assert got.params["P"].shape == (got.sizes["K"], got.sizes["T"])
    assert got.initial["v"].shape == got.params["mu"].shape == (got.sizes["L"] - 1,)


@pytest.mark.parametrize("form", [list, np.array, json.dumps, lambda x: parse_value(json.dumps(x), "--set P"), lambda x: np.float32(x)])
def test_one_array_in_many_forms(form):
    """Lists, arrays of any number type, VALUE texts and Values are the same numbers."""
    got = bind(SYSTEM, params={"P": form(EVEN)})
    np.testing.assert_array_equal(got.params["P"], EVEN)
    assert got.params["P"].dtype == np.float64 and got.params["P"].flags.c_contiguous


def test_files_and_fills(tmp_path):
    np.save(tmp_path / "P.npy", np.array(EVEN))
    (tmp_path / "mu.csv").write_text("1\n2\n3\n")
    got = bind(
        SYSTEM, params={"P": f"@{tmp_path}/P.npy", "mu": f"@{tmp_path}/mu.csv", "both": "linspace(0,4)"}, initial={"v": "uniform(0,1)"}
    )
    assert got.sizes == {"K": 3, "T": 2, "Q": 3, "L": 4}
    np.testing.assert_array_equal(got.params["mu"], [1, 2, 3])
    np.testing.assert_array_equal(got.params["both"], [0, 1, 2, 3, 4])
    assert 0 < got.initial["v"].min() < got.initial["v"].max() < 1


def test_random_fills_depend_on_seed_and_name_alone():
    """The same seed gives the same bits, whatever else is given; another seed or name gives others."""

    def draw(seed, **more):
        return bind(SYSTEM, params={"mu": "normal(0,1)", **more}, initial={"v": "normal(0,1)"}, sizes={"L": 6}, seed=seed)

    first, again, other = draw(1), draw(1, both="normal(0,1)"), draw(2)
    np.testing.assert_array_equal(first.params["mu"], again.params["mu"])
    np.testing.assert_array_equal(first.initial["v"], again.initial["v"])
    assert not np.any(first.params["mu"] == other.params["mu"])
    assert not np.any(first.params["mu"] == first.initial["v"])


def test_nothing_given_is_changed_or_shared():
    P, v0 = np.array(EVEN), np.zeros(2)
    got = bind(SYSTEM, params={"P": P}, initial={"v": v0})
    got.params["P"][:] = 9
    got.initial["v"][:] = 9
    np.testing.assert_array_equal(P, EVEN)
    np.testing.assert_array_equal(v0, 0)
    np.testing.assert_array_equal(bind(SYSTEM).initial["v"], [1, 2])


ROWS_093 = [[1, 0], [0.5, 0.5], [0.5, 0.43]]
BAD = [
    # names
    ({"params": {"sing": 1}}, ["no parameter 'sing' in test.all", "mu, p, pair", "did you mean 'sign'?"]),
    ({"params": {"v": 1}}, ["'v' is not a parameter of test.all but a state", "--init v"]),
    ({"params": {"L": 5}}, ["'L' is not a parameter", "--size L=N"]),
    ({"initial": {"w": 1}}, ["no state 'w' in test.all", "Z, v"]),
    ({"initial": {"mu": 1}}, ["'mu' is not a state", "--set mu"]),
    ({"sizes": {"X": 1}}, ["no size 'X' in test.all", "K, L, Q, T"]),
    ({"sizes": {"count": 4}}, ["'count' is not a size", "--set count"]),
    # shapes
    ({"params": {"P": [1, 2, 3]}}, ["P must have shape (K, T); it has shape (3,)"]),
    ({"params": {"mu": [[1, 2]]}}, ["mu must have shape (L - 1,); it has shape (1, 2)"]),
    ({"params": {"tau": [1, 2]}}, ["tau must be one number; it has shape (2,)"]),
    ({"params": {"tau": [1]}}, ["tau must be one number; it has shape (1,)"]),
    ({"params": {"pair": [0.1, 0.2, 0.3]}}, ["pair must have shape (2,); it has shape (3,)"]),
    ({"params": {"P": [[1, 2], [3]]}}, ["P is not an array of numbers: its rows have different lengths"]),
    ({"params": {"P": np.zeros((0, 3))}}, ["P is empty", "(0, 3)"]),
    ({"initial": {"Z": [1, 2]}}, ["Z must have shape (Q, T); it has shape (2,)"]),
    # no numbers, no finite numbers
    ({"params": {"tau": None}}, ["tau must hold numbers"]),
    ({"params": {"tau": True}}, ["tau must hold numbers", "bool"]),
    ({"params": {"tau": 1j}}, ["tau must hold real numbers, not complex ones"]),
    ({"params": {"mu": ["1", "2"]}}, ["mu must hold numbers"]),
    ({"params": {"mu": [10**400, 1]}}, ["mu must hold numbers that fit in float64"]),
    ({"params": {"tau": 10**400}}, ["tau overflows"]),
    ({"params": {"tau": math.nan}}, ["tau = nan is not a finite number"]),
    ({"params": {"tau": math.inf}}, ["tau = inf is not a finite number"]),
    ({"params": {"tau": "1e400"}}, ["tau: '1e400' overflows"]),
    ({"params": {"tau": "__import__('os')"}}, ["tau: no function '__import__'"]),
    ({"params": {"mu": [0, np.nan]}}, ["mu[1] = nan is not a finite number"]),
    ({"initial": {"v": [[1, 2]]}}, ["v must have shape (L - 1,)"]),
    ({"initial": {"v": [1, -np.inf]}}, ["v[1] = -inf is not a finite number"]),
    ({"initial": {"B": "nan"}}, ["B: nan is not a finite number"]),
    ({"params": {"mu": np.array([1, "1e400"], np.longdouble)}}, ["mu[1] = inf is not a finite number"]),
    ({"params": {"mu": np.ma.array([1.0, 2.0], mask=[False, True])}}, ["mu has masked entries"]),
    # domains
    ({"params": {"P": [[0.5, 0.2, 0.3], [1, 0.2, -0.2]]}}, ["P[1, 2] = -0.2 lies outside [0, 1]"]),
    ({"params": {"p": [0, 1]}}, ["p[0] = 0 lies outside (0, 1]"]),
    ({"params": {"p": "linspace(0,1)"}}, ["p[0] = 0 lies outside (0, 1]"]),
    ({"params": {"tau": 0}}, ["tau = 0 lies outside (0, inf)"]),
    ({"params": {"pair": 1}}, ["pair = 1 lies outside (0, 1)"]),
    ({"params": {"count": 2.5}}, ["count = 2.5 is not a whole number"]),
    ({"params": {"count": 0}}, ["count = 0 lies outside the whole numbers 1 to 9"]),
    ({"params": {"count": 1e300}}, ["count = 1e+300 is not a whole number"]),
    ({"params": {"sign": 0}}, ["sign = 0 lies outside {-1, 1}"]),
    ({"params": {"psi": [0, 0.5]}}, ["psi[1] = 0.5 is not a whole number"]),
    ({"params": {"psi": np.array([0, 2**63], np.uint64)}}, ["psi[1] = 9223372036854775808 is not a whole number"]),
    ({"params": {"psi": "uniform(0,2)"}}, ["psi[0] = ", "is not a whole number"]),
    # psi
    ({"params": {"psi": [0, 2]}}, ["psi is out of range", "0 .. 2 (Q = 3 from psi)", "no entry is 1"]),
    ({"params": {"psi": [1, 1]}}, ["psi is out of range", "no entry is 0"]),
    ({"params": {"psi": [0, -1]}}, ["psi[1] = -1 is out of range"]),
    ({"params": {"psi": [-1, -1]}}, ["psi[0] = -1 is out of range"]),
    ({"params": {"psi": [0, 10**12]}}, ["psi is out of range", "no entry is 1"]),
    ({"params": {"psi": [0, 3]}, "sizes": {"Q": 2}}, ["psi[1] = 3 is out of range", "0 .. 1 (Q = 2 as given)"]),
    ({"params": {"psi": [0, 1]}, "sizes": {"Q": 3}}, ["psi is out of range", "0 .. 2 (Q = 3 as given)", "no entry is 2"]),
    ({"params": {"psi": [0, 1]}, "initial": {"Z": np.zeros((3, 4))}}, ["psi is out of range", "(Q = 3 from Z)"]),
    # sizes
    ({"params": {"P": EVEN, "psi": [0, 1]}}, ["sizes disagree: K = 3 from P, K = 2 from psi"]),
    ({"params": {"mu": [1, 2]}, "sizes": {"L": 4}}, ["sizes disagree: L = 4 as given, L = 3 from mu"]),
    ({"params": {"mu": [1, 2]}, "initial": {"v": [1]}}, ["sizes disagree: L = 3 from mu, L = 2 from v"]),
    ({"params": {"P": EVEN, "both": [1] * 9}}, ["sizes disagree: K = 3 from P, T = 2 from P, K + T = 9 from both"]),
    ({"params": {"P": EVEN[:2], "both": [1] * 2}}, ["sizes disagree", "K + T = 2 from both"]),
    ({"params": {"both": [1] * 4}, "sizes": {"K": 4}}, ["both has an axis of 4", "K + T", "no T of at least 1"]),
    ({"sizes": {"L": 1}}, ["axis L - 1", "0 long", "L = 1 as given"]),
    ({"sizes": {"K": 0}}, ["size K = 0 as given: a size is at least 1"]),
    ({"sizes": {"K": -2}}, ["size K = -2"]),
    ({"sizes": {"K": 2.0}}, ["size K must be a whole number, not 2.0"]),
    ({"sizes": {"K": True}}, ["size K must be a whole number"]),
    ({"sizes": {"K": 10**30}}, ["size K = 1" + "0" * 30, "no memory"]),
    ({"sizes": {"K": 10**9, "T": 10**9}}, ["P would have 1e+18 entries"]),
    ({"sizes": {"K": 10**7, "T": 10**7}}, ["test.all: P (K, T) takes 8e+05 GB (K = 10000000 as given, T =", "GB are free"]),
    # constraints
    ({"params": {"P": ROWS_093}}, ["rows of P must sum to 1: row 2 sums to 0.93 (tolerance 1e-06)"]),
    ({"params": {"P": EVEN, "p": [1 / 3, 1 / 3, 1 / 3 + 2e-6]}}, ["p must sum to 1: it sums to 1.000002 (tolerance 1e-06)"]),
    ({"params": {"P": EVEN, "p": [0.5, 0.5, 0.5]}}, ["p must sum to 1: it sums to 1.5 (tolerance 1e-06)"]),
    ({"sizes": {"K": 7}}, ["count is enough: 2*count - K must be at least 0; it is -1"]),
    ({"params": {"mu": [1, -9.5]}}, ["mu falls", "sum of P[n, l]*mu[j] over l", "at least -9; it is -9.5 at n = 0, j = 1"]),
    # span and seed
    ({"span": (5, 1)}, ["span 5:1 does not go forward"]),
    ({"span": (0, math.inf)}, ["span 0:inf is not finite"]),
    ({"span": (0, math.nan)}, ["not finite"]),
    ({"span": 3}, ["two numbers (t0, t1)"]),
    ({"span": (1, 2, 3)}, ["two numbers"]),
    ({"params": {"mu": "normal(0,1)"}, "seed": 0.5}, ["seed must be a whole number"]),
    ({"params": {"mu": "normal(0,1)"}, "seed": -1}, ["seed must be at least 0, not -1"]),
]


@pytest.mark.parametrize(("given", "words"), BAD, ids=lambda x: ascii(x)[:60])
def test_bad_input_is_one_sentence(given, words):
    """It names the thing, its value, and what may stand there."""
    with pytest.raises(ParamError) as caught:
        bind(SYSTEM, **given)
    text = str(caught.value)
    assert all(w in text for w in words), text
    assert "\n" not in text and len(text) < 300


def test_tolerance_is_the_constraints_own():
    """Rows that miss 1 by less than 1e-6 pass and are not renormalised."""
    P = [[0.5, 0.5 + 9e-7], [0.5, 0.5]]
    np.testing.assert_array_equal(bind(SYSTEM, params={"P": P}).params["P"], P)
    with pytest.raises(ParamError, match="row 0 sums to 1"):
        bind(SYSTEM, params={"P": [[0.5, 0.5 + 2e-6], [0.5, 0.5]]})


def small(**changes):
    """x' = -a x with changes."""
    x, a = IndexedBase("x", shape=(K,)), IndexedBase("a", shape=(K,))
    parts = {
        "name": "test.small",
        "source": Source("none", ""),
        "axes": {n: K},
        "equations": {x[n]: -a[n] * x[n]},
        "params": (Param(a, 1.0, Interval(0, oo), "rate"),),
        "initial": {x[n]: 1 / a[n]},
        **changes,
    }
    return System(**parts), a


@pytest.mark.parametrize(
    ("default", "error", "words"),
    [
        (lambda sizes: sizes["X"], ModelError, ["default of a fails with K = 3 as given", "KeyError"]),
        (lambda sizes: "x", ModelError, ["default of a fails"]),
        (lambda sizes: np.linspace(0, 1, -1), ModelError, ["default of a fails with K = 3 as given: Number of samples"]),
        (lambda sizes: np.zeros(2), ModelError, ["default of a has shape (2,); (K,) is (3,)"]),
        (lambda sizes: -1.0, ParamError, ["a = -1 lies outside [0, inf)"]),
        (0, ParamError, ["x[0] = inf is not a finite number"]),
        (lambda sizes: sys.exit(3), ModelError, ["default of a fails with K = 3 as given", "SystemExit: 3"]),
        (lambda sizes: np.empty(10**17), ParamError, ["test.small: the arrays do not fit in memory (K = 3)"]),
    ],
)
def test_a_bad_model_is_one_sentence(default, error, words):
    """Defaults of a model file that fail, have another shape, or give an infinite start."""
    _, a = small()
    system, _ = small(params=(Param(a, default, Interval(0, oo), "rate"),))
    with pytest.raises(error) as caught:
        bind(system, sizes={"K": 3})
    assert all(w in str(caught.value) for w in words), str(caught.value)


@pytest.mark.parametrize("name", ["value", "f", "xp", "out", "sizes", "t0", "r0", "erf_1"])
def test_an_initial_value_may_use_any_name(name):
    """A formula's own names are not a model's: 2 p + n is what it says, whatever p is called."""
    p = Symbol(name)
    x = IndexedBase("x", shape=(K,))
    system, _ = small(params=(Param(p, 3.0, Reals, "p"),), equations={x[n]: -p * x[n]}, initial={x[n]: 2 * p + n})
    np.testing.assert_array_equal(bind(system, sizes={"K": 3}).initial["x"], [6, 7, 8])


def test_an_axis_of_an_observable_has_a_length():
    """An axis that only an observable runs over is as long as it says, and at least 1."""
    x = IndexedBase("x", shape=(K,))
    system, _ = small(axes={n: K, l: K - 4}, observables={"table": x[n] * l})
    assert bind(system, sizes={"K": 5}).sizes == {"K": 5}
    with pytest.raises(ParamError, match=r"test\.small: its axis K - 4 is -1 long \(K = 3 as given\); it must be at least 1"):
        bind(system, sizes={"K": 3})


def test_a_size_without_default_is_asked_for():
    with pytest.raises(ParamError, match=r"size K of test\.small has no default: give it \(--size K=N\)"):
        bind(small()[0])
    assert bind(small()[0], params={"a": [1, 2]}).sizes == {"K": 2}


def test_a_second_bind_touches_no_symbol(monkeypatch):
    """Repeated binding runs compiled checks alone: with sympy's methods taken away it still works."""
    bind(SYSTEM)
    for name in ("subs", "xreplace", "replace", "atoms", "free_symbols", "has", "evalf", "is_number"):
        monkeypatch.setattr(Expr, name, None)
    bind(SYSTEM, params={"P": EVEN, "psi": [0, 1, 0]})


LABEL, W = IndexedBase("label", shape=(K,)), IndexedBase("W", shape=(Q,))
LOOSE = System(
    name="test.loose",
    source=Source("none", ""),
    axes={m: Q},
    equations={W[m]: over(Sum, W[LABEL[n]], (n, K)) - W[m]},
    params=(Param(LABEL, lambda sizes: np.arange(sizes["K"]) % sizes["Q"], Integers, "rows of W", indexes=Q, cover=False),),
    initial={W[m]: 1},
    sizes={K: 2, Q: 5},
)


@pytest.mark.parametrize(
    ("asked", "size"),
    [
        ({}, 5),
        ({"params": {"label": [0, 3]}}, 5),
        ({"params": {"label": [0, 7, 7]}}, 8),
        ({"params": {"label": [0, 1]}, "sizes": {"Q": 3}}, 3),
        ({"params": {"label": 4}, "initial": {"W": np.ones(9)}}, 9),
    ],
)
def test_without_cover_rows_may_be_left_out(asked, size):
    """The size is as given, else the default, or as many as the values need."""
    assert bind(LOOSE, **asked).sizes["Q"] == size


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"params": {"label": [0, 3]}, "sizes": {"Q": 3}}, "label[1] = 3 is out of range: label names rows 0 .. 2 (Q = 3 as given)"),
        ({"params": {"label": [0, -1]}}, "label[1] = -1 is out of range"),
        ({"params": {"label": 9}}, "label[0] = 9 is out of range"),
    ],
)
def test_without_cover_rows_must_exist(asked, said):
    with pytest.raises(ParamError) as caught:
        bind(LOOSE, **asked)
    assert said in str(caught.value)


@pytest.mark.parametrize(("more", "said"), [({"cover": 1, "indexes": Q}, "not 1"), ({"cover": False}, "a parameter with indexes")])
def test_cover_is_for_index_parameters(more, said):
    with pytest.raises(SpecError, match=said):
        Param(LABEL, 0, Integers, "rows", **more)
