"""Scan & Snap in numbers: closed-form identities, the exact reductions of each other, and values computed independently before."""

from typing import Any

import numpy as np
import pytest
from scipy.special import lambertw

import odesim
from odesim.inputs.registry import load_model

FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}
SMALL = {"K": 2.0, "M": 34.0, "k_m": 1.0}
"""Syn-Small of the official generator: 10 common tokens of weight 1, 10 distinct ones a class of weights .1, .2, ..., 1."""


def last(run: Any) -> dict[str, Any]:
    """States and observables at the end of a run that got there."""
    assert run.status == "ok"
    return {name: rows[-1] for name, rows in (*run.y.items(), *run.observables.items())}


def assert_close(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9)


def table(K: int, common: int = 10) -> np.ndarray:
    """P (K, common + 10 K) of the official generator, written out."""
    P = np.zeros((K, common + 10 * K))
    P[:, :common] = 1
    for n in range(K):
        P[n, common + 10 * n : common + 10 * n + 10] = np.linspace(0.1, 1, 10)
    return P / P.sum(axis=1, keepdims=True)


def test_default_table_is_the_official_one():
    run = odesim.integrate("scan_snap.full", span=(0, 0.1), backend="numpy")
    np.testing.assert_allclose(run.attrs["params"]["P"], table(2), rtol=1e-14)
    assert run.attrs["params"]["M"] == 34
    assert run.observables["loss"][0] == pytest.approx(np.log(34), rel=1e-14)
    assert run.observables["entropy_distinct"][0] == pytest.approx([2.15128] * 2, abs=5e-6)  # z = 0 value behind Fig. 6


@pytest.mark.first(1)
@pytest.mark.parametrize(("K", "shared", "M"), [(2, False, 34.0), (3, True, 500.0)])
def test_symmetric_is_full(K, shared, M):
    """The reduction is exact: 1e-8 is integration. A shared query shows k_m, one each shows the other branch."""
    psi = np.zeros(K, int) if shared else np.arange(K)
    times = np.array([0.0, 1.0, 10.0, 300.0])
    full = odesim.integrate("scan_snap.full", params={"P": table(K), "psi": psi, "M": M}, span=(0, 300), save=times, **FINE)
    params = {"K": K, "M": M, "k_m": K if shared else 1}
    small = odesim.integrate("scan_snap.symmetric", params=params, span=(0, 300), save=times, **FINE)
    assert_close(full.y["Z"][:, 0, 10:20], small.y["z"])
    assert_close(full.y["Z"][:, 0, :10], np.repeat(small.y["zc"], 10, axis=1))
    for column, state in ((0, "a"), (1, "b"), (K, "d")):
        assert_close(full.y["Y"][:, 10:20, column], small.y[state])
    assert_close(full.y["Y"][:, 0, [0, K]], np.hstack([small.y["u"], small.y["v"]]))
    assert_close(full.observables["loss"], small.observables["loss"])
    assert_close(full.observables["c"][:, 1, 20:30], small.observables["c"])


def test_symmetric_values():
    """Syn-Small; digits as recorded from an independent script."""
    run = odesim.integrate("scan_snap.symmetric", span=(0, 1000), save=np.array([100.0, 1000.0]), **FINE)
    c = run.observables["c"]
    assert [run.y["zc"][0, 0], run.y["z"][0, -1], c[0, -1]] == pytest.approx([-0.22764, 0.49586, 0.10538], abs=5e-6)
    assert [run.observables["loss"][0], c[1, -1], run.observables["loss"][1]] == pytest.approx([0.02793, 0.11542, 0.00224], abs=5e-6)


def test_small_time_expansion():
    """zc ~ -(eta_Z k_m/K)(eta_Y/K) fc^2 ((K-1)/M) F_D t^2/2: the force on the attention starts as O(1/M)."""
    for M in (34.0, 1e4):
        run = odesim.integrate("scan_snap.symmetric", params={"M": M}, span=(0, 1e-3), rtol=1e-10, atol=1e-22, backend="numpy")
        p, pc = (run.attrs["params"][name] for name in ("p", "pc"))
        rho2 = p @ p + 10 * pc[0] ** 2
        want = -0.5 * 0.5 * pc[0] ** 2 / rho2 / M * (p @ p) / rho2 * 1e-6 / 2
        assert run.y["zc"][-1, 0] == pytest.approx(want, rel=2e-3)  # the next term is t times that


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("t", "want"),
    [
        (14.1054, {"u": 4.5184, "B": 5.27079, "zc": -0.21085, "z": 0.69869, "c": 0.12695}),
        (100.0, {"B": 6.93577, "zc": -0.32513, "z": 1.31727}),
        (1e4, {"B": 7.81160, "c": 0.33262, "common": 0.3356}),
    ],
)
def test_reduced_values(t, want):
    """Syn-Small; digits as recorded from an independent script; the winner is the last distinct token."""
    end = last(odesim.integrate("scan_snap.reduced_symmetric", span=(0, t), **FINE))
    got = {"u": end["u"], "B": end["B"], "zc": end["zc"][0], "z": end["z"][-1], "c": end["c"][-1], "common": 10 * end["cc"][0]}
    for name, digits in want.items():
        assert got[name] == pytest.approx(digits, abs=5e-5 if name in ("u", "common") else 5e-6), name


@pytest.mark.parametrize(("Gamma", "want"), [(5, (0.06766747, -0.25453490, 0.40388369)), (20, (0.16132727, -0.58746549, 0.83568193)),
                                             (60, (0.25122536, -0.88656511, 1.17656747))])  # fmt: skip
def test_gamma_collapse(Gamma, want):
    """z and B depend on eta_Y, eta_Z and t through Gamma = eta_Z int gamma alone (K = 3, one query, 3 common tokens, M = 500)."""
    K, M = 3.0, 500.0
    for eta_Y, eta_Z in ((1.0, 1.0), (5.0, 0.3)):
        u = np.sqrt(2 * eta_Y * Gamma / (eta_Z * K)) * M / (M - 1)
        t = (np.expm1(u) + (M - 1) * u) * K / (M * eta_Y)
        params = {"mc": 3.0, "K": K, "k_m": K, "M": M, "eta_Y": eta_Y, "eta_Z": eta_Z}
        end = last(odesim.integrate("scan_snap.reduced_symmetric", params=params, span=(0, t), **FINE))
        assert end["u"] == pytest.approx(u, rel=1e-8)
        assert (end["z"][-1], end["zc"][0], end["B"]) == pytest.approx(want, abs=2e-8)


@pytest.mark.parametrize(("K", "shared", "M"), [(2, False, 34.0), (3, True, 500.0)])
def test_reduced_is_reduced_symmetric(K, shared, M):
    """The K x K inverse and its closed form for classes that are alike: 1e-8 is integration."""
    times = np.array([0.0, 1.0, 10.0, 300.0])
    request: dict[str, Any] = {"span": (0, 300), "save": times, **FINE}
    psi = np.zeros(K, int) if shared else np.arange(K)
    run = odesim.integrate("scan_snap.reduced", params={"P": table(K), "psi": psi, "M": M}, method="vern7", **request)
    small = odesim.integrate("scan_snap.reduced_symmetric", params={"K": K, "M": M, "k_m": K if shared else 1}, **request)
    assert_close(run.y["Z"][:, 0, 10:20], small.observables["z"])
    assert_close(run.y["Z"][:, 0, :10], np.repeat(small.observables["zc"], 10, axis=1))
    assert_close(run.y["B"], np.repeat(small.y["B"][:, None], K, axis=1))
    assert_close(run.y["u"], small.y["u"])
    for name in ("gamma", "loss"):
        assert_close(run.observables[name], small.observables[name])


@pytest.mark.slow
def test_the_decorrelated_flow_tends_to_the_reduced_one():
    """Syn-Small, t = 300: the reduced flow is ahead by 3.0 % and .29 % for eta_Z/eta_Y = .03 and .003, as in an independent program."""
    for eta_Z, ahead in ((0.03, 0.0298981), (0.003, 0.0029486)):
        request: dict[str, Any] = {"params": {"eta_Z": eta_Z}, "span": (0, 300), "backend": "numpy", "method": "vern7", **FINE}
        full, reduced = (last(odesim.integrate(f"scan_snap.{name}", **request))["Z"] for name in ("full_decorrelated", "reduced"))
        assert reduced[0, 19] / full[0, 19] - 1 == pytest.approx(ahead, abs=1e-6)


def test_one_number_carries_all_distinct_tokens():
    """Theorem 3: ct_l^2/ct_l'^2 - 1 grows by chi_l = exp(2 z_l), which 1/ct^2 = 1/p^2 - S_d makes true for every pair."""
    run = odesim.integrate("scan_snap.reduced_symmetric", save=5, **FINE)
    p, z = run.attrs["params"]["p"], run.observables["z"]
    ct = p * np.exp(z)
    r = ct[:, :, None] ** 2 / ct[:, None, :] ** 2 - 1
    np.testing.assert_allclose(r, r[0] * np.exp(2 * z)[:, :, None], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("k_m", "want", "formula", "speed"), [(10.0, 0.12929, 0.12865, 9.97), (1.0, 0.49787, 0.49643, 0.996)])
def test_single_common_token(k_m, want, formula, speed):
    """All k_m classes of a query push its common token, so B is far below what Theorem 4 prints (above 1 here)."""
    K, M, eps0, eta_Z = 10.0, 1e6, 0.01, 40.0
    pc = 1 / (1 + np.sqrt(1 / eps0 - 1))
    params = {"mc": 1.0, "p": [1 - pc], "pc": [pc], "K": K, "M": M, "k_m": k_m, "eta_Z": eta_Z}
    end = last(odesim.integrate("scan_snap.reduced_symmetric", params=params, span=(0, 2000), **FINE))
    Gamma = eta_Z * K / 2 * ((M - 1) / M) ** 2 * end["u"] ** 2
    law = np.log1p(4 * (k_m + 1) * (K - 1) * eps0**2 * Gamma / K) / (4 * (k_m + 1))
    assert (end["B"], law) == pytest.approx((want, formula), abs=5e-6)
    assert -end["zc"][0] / end["B"] == pytest.approx(speed, abs=5e-3)


PUSH = [
    (1.0, 10.0, 36.0, 9.80),
    (1.0, 10.0, 1e3, 39.2),
    (1.0, 10.0, 1e4, 95.4),
    (0.6, 1.0, 36.0, 3.16),
    (0.6, 1.0, 1e3, 52.8),
    (0.6, 1.0, 1e4, 442),
]


@pytest.mark.parametrize(("weight", "mc", "M", "want"), PUSH)
def test_plain_gradients_are_slower(weight, mc, M, want):
    """The reduced flow moves common tokens too fast, 39-fold at M = 1000, t = K ln M: never to be mended by making them agree."""
    own = np.arange(1, 11) / 10
    total = own.sum() + weight * mc
    params = {"mc": mc, "p": own / total, "pc": weight / total, "M": M, "eta_Z": 0.01}
    request: dict[str, Any] = {"params": params, "span": (0.0, 2 * np.log(M)), **FINE}
    reduced, plain = (last(odesim.integrate(f"scan_snap.{name}", **request)) for name in ("reduced_symmetric", "symmetric"))
    assert reduced["zc"][0] / plain["zc"][0] == pytest.approx(want, rel=5e-3)  # three printed digits


def test_first_push_ratio():
    """At t -> 0 the two forces differ by M beta ((M-1)/M)^2, about 1.5 M on Syn-Small."""
    M = 1e3
    request: dict[str, Any] = {"params": {"M": M}, "span": (0, 1e-4), **FINE, "atol": 1e-24}
    reduced, plain = (odesim.integrate(f"scan_snap.{name}", **request) for name in ("reduced_symmetric", "symmetric"))
    p, pc = (plain.attrs["params"][name] for name in ("p", "pc"))
    eps = 10 * pc[0] ** 2 / (p @ p + 10 * pc[0] ** 2)
    E = eps / ((1 - eps) * (1 + eps))
    beta = M / (M - 1) * E + M / (M - 1) ** 2 * (1 + eps * E)
    ratio = last(reduced)["zc"][0] / last(plain)["zc"][0]
    assert ratio == pytest.approx(M * beta * ((M - 1) / M) ** 2, rel=1e-3)
    assert ratio == pytest.approx(1.5 * M, rel=0.02)


def test_a_common_token_may_grow():
    """Without symmetry a common token can gain (token 0 of class 0 here), which the slides' rule excludes."""
    P = [[0.35, 0.25, 0.4, 0], [0.01, 0.45, 0, 0.54]]
    end = last(odesim.integrate("scan_snap.full", params={"P": P, "M": 200, "eta_Z": 0.05}, span=(0, 400), **FINE))
    assert end["Z"][0, 0] == pytest.approx(0.0108277, abs=1e-6)  # by a program with all 200 columns of Y
    assert end["Z"][0, 1] < 0 and end["Z"][1, 0] < 0
    end = last(odesim.integrate("scan_snap.reduced", params={"P": P, "M": 200}, method="vern7", **FINE))
    assert end["Z"][0, 0] == pytest.approx(0.19987504, abs=1e-8)  # of an independent program


SLIDE = {
    0.5: (0.65047, 0.98153, 1.17261, 1.27904, 1.33025, 1.35828, 1.38952, 1.40782),
    1.0: (0.98153, 1.27904, 1.35828, 1.38952, 1.40782, 1.42051, 1.43784, 1.44973),
    2.0: (1.27904, 1.38952, 1.42051, 1.43784, 1.44973, 1.45872, 1.47189, 1.48145),
    4.0: (1.38952, 1.43784, 1.45872, 1.47189, 1.48145, 1.48893, 1.50022, 1.50862),
    8.0: (1.43784, 1.47189, 1.48893, 1.50022, 1.50862, 1.51529, 1.52551, 1.53321),
}
SNAP = {0.5: 46.668, 1.0: 23.334, 2.0: 11.667, 4.0: 5.834, 8.0: 2.917}


@pytest.mark.parametrize("eta", SLIDE)
def test_slide_table(eta):
    """B at nu = 1, M = 10000, K = C0 = 1, and the times of the events; at the snap B is 1.402536 on every curve.

    There exp(u) = (M - 1) u, so t = (2 (M - 1) u - 1)/(M eta), which the paper's t0 = 2 u/eta rounds by 1e-4.
    """
    times = np.array([5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0])
    run = odesim.integrate("scan_snap.theorem4", params={"eta_Y": eta, "eta_Z": eta}, save=times, **FINE)
    np.testing.assert_allclose(run.y["B"], SLIDE[eta], atol=1e-5)
    M, (solution,) = 1e4, load_model("scan_snap.theorem4").closed_forms
    peak, u = 1 + lambertw((M - 1) / np.e).real, -lambertw(-1 / (M - 1), -1).real
    assert 2 * u / eta == pytest.approx(SNAP[eta], abs=6e-4)
    for name, want in (
        ("snap", (2 * (M - 1) * u - 1) / (M * eta)),
        ("scanning ends", np.log(M) / eta),
        ("gamma peaks", (np.expm1(peak) + (M - 1) * peak) / (M * eta)),
    ):
        (event,) = run.events[name]
        assert event["t"] == pytest.approx(want, rel=1e-7), name
    (snap,) = run.events["snap"]
    start = {name: 0.0 for name in run.y}
    assert solution.function(snap["t"], start, run.attrs["params"])["B"] == pytest.approx(1.402536, abs=1e-6)


def test_regimes():
    """B against the two approximations of Theorem 4 (K = C0 = eta = 1, M = 10000): scanning, t < ln M, and snapped, t > t0."""
    M, (form,) = 1e4, load_model("scan_snap.theorem4").closed_forms
    params, start = {"K": 1.0, "M": M, "C0": 1.0, "eta_Y": 1.0, "eta_Z": 1.0}, {"z": 0.0, "B": 0.0, "u": 0.0}
    factor = 2 * ((M - 1) / M) ** 2
    for t, want in ((4.0, 0.0006), (8.0, 0.0148), (np.log(M), 0.0315)):
        exact = form.function(t, start, params)
        assert np.log1p(factor * t**2) / 4 - exact["B"] == pytest.approx(want, abs=5e-5)
    assert exact["u"] == pytest.approx(np.log(M) - 0.567, abs=5e-4)
    for t, want in ((25.4, 0.0257), (50.0, 0.0114), (100.0, 0.0053), (1e3, 0.0005)):
        exact = form.function(t, start, params)
        assert np.log1p(factor * np.log(M * t) ** 2) / 4 - exact["B"] == pytest.approx(want, abs=6e-5)
    for m, w in ((1e2, 0.40296), (1e3, 0.31980), (1e4, 0.26673), (50272.0, 0.23989)):
        assert -lambertw(-1 / (m - 1), -1).real / np.log(m) - 1 == pytest.approx(w, abs=5e-6)


def test_largest_gamma():
    """gamma_max = ((M-1)/M) W0((M-1)/e) = 6.35955 at t = 7.5166 (M = 10000, K = eta_Y = 1)."""
    run = odesim.integrate("scan_snap.theorem4", save=np.linspace(7, 8, 1001), **FINE)
    k = run.observables["gamma"].argmax()
    assert run.observables["gamma"][k] == pytest.approx(0.9999 * lambertw(9999 / np.e).real, rel=1e-7)
    assert (run.observables["gamma"][k], run.t[k]) == pytest.approx((6.35955, 7.5166), abs=5e-4)


def test_paper_figures_9_and_3():
    """Fig. 9, left (nu = 10, M = 100): B(5). Fig. 3 (eta_Z = .5, K = 10, M = 1000): exp(2 B) at t = 700, with the C0 that fits."""
    B = [
        last(odesim.integrate("scan_snap.theorem4", params={"eta_Y": 10 * e, "eta_Z": e, "M": 100}, span=(0, 5), **FINE))["B"]
        for e in (0.5, 1.0, 2.0, 4.0, 8.0)
    ]
    np.testing.assert_allclose(B, [0.62016, 0.67068, 0.71252, 0.74933, 0.78279], atol=5e-6)
    for C0, want in ((1.0, (45.2, 34.7, 26.3, 18.0)), (1 / 160, (572, 439, 332, 227))):
        chi = [
            last(
                odesim.integrate(
                    "scan_snap.theorem4", params={"eta_Y": e, "eta_Z": 0.5, "M": 1000, "K": 10, "C0": C0}, span=(0, 700), **FINE
                )
            )["chi_bound"]
            for e in (0.5, 1.0, 2.0, 5.0)
        ]
        np.testing.assert_allclose(chi, want, rtol=2.5e-3)  # three printed digits
