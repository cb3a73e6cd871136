"""What the Scan & Snap paper assumes of how contexts overlap, and its own data."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.scan_snap._snap_claims import FINE, PAPER
from odesim.symbolic import Source


def overlaps(c: np.ndarray) -> np.ndarray:
    """Eigenvalues (K,) of F^T F - I, for the contexts c (K, S) of the classes."""
    f = c / np.linalg.norm(c, axis=1, keepdims=True)
    return np.linalg.eigvalsh(f @ f.T - np.eye(len(c)))


def small() -> tuple[np.ndarray, int, float]:
    """(those eigenvalues of Syn-Small at the start, K, M)."""
    run = odesim.integrate("scan_snap.reduced", span=(0, 1), save=2, **FINE)
    c = run.observables["c"][0]
    return overlaps(c), len(c), float(run.attrs["params"]["M"])


def assumed() -> Iterable[Measurement]:
    """The two bounds on eigenvalues, of Syn-Small."""
    E, classes, M = small()
    yield Measurement("largest |eigenvalue of E| of Syn-Small, below 1/K", float(np.abs(E).max()), 1 / classes, 1e-12, "<=")
    yield Measurement("least |eigenvalue of E| of Syn-Small, 6 / sqrt(M) at least", float(np.abs(E).min()), 6 / np.sqrt(M), 1e-12, ">=")


def any_overlap() -> Iterable[Measurement]:
    """The overlap of Syn-Small; xi along the reduced flow of it, and of classes all of whose tokens are common."""
    E, _, M = small()
    yield deviation("eigenvalues of E of Syn-Small", E, [-0.722, 0.722], 5.1e-4)
    yield Measurement("6 / sqrt(M) of Syn-Small", float(6 / np.sqrt(M)), 1.03, 5.1e-3)
    rng = np.random.default_rng(0)
    tables: list[dict[str, Any]] = [{}, *({"P": rng.dirichlet(np.full(8, 2.0), 3), "M": 1e4} for _ in range(2))]
    for k, params in enumerate(tables):
        run = odesim.integrate("scan_snap.reduced", params=params, save=41, **FINE)
        c, xi = run.observables["c"], run.observables["xi"]
        if not params:
            yield deviation("eigenvalues of E of Syn-Small at t = 100", overlaps(c[-1]), [-0.199964, 0.199964], 5.1e-7)
        else:
            largest = float(np.abs(overlaps(c[0])).max())
            yield Measurement(f"largest |eigenvalue of E|, table {k}, above 1/K", largest, 1 / len(c[0]), 0.0, ">=")
        yield Measurement(f"least xi from t = 2.5 to 100, table {k}", float(xi[1:].min()), 0.0, 0.0, ">=")


OVERLAP = (
    Claim(
        "scan_snap.weak_overlap",
        Source(PAPER, "Assumption 2", "on the data of its own Fig. 4, Syn-Small"),
        "scan_snap.reduced at its defaults, and with two random tables of three classes without a distinct token, to t = 100",
        printed=Statement(
            "contexts overlap weakly: eigenvalues of E = F^T F - I are below 1/K in size, and 6 / sqrt(M) at least",
            assumed,
            "rounding",
            fails=True,
        ),
        corrected=Statement(
            "those of Syn-Small are -.722 and .722, where 1/K is .5 and 6 / sqrt(M) is 1.03, and .199964 at t = 100; xi >= 0 needs none",
            any_overlap,
            "half a unit of the last digit; rounding",
        ),
    ),
)
