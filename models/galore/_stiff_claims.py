"""How stiff the flow of a parametric gradient is for random samples: the largest eigenvalue of S over the smallest."""

from collections.abc import Iterable

import numpy as np

from odesim.lab.claims import Claim, Measurement, Statement
from odesim.models.galore._draw_claims import wishart
from odesim.models.galore._few_claims import matrix
from odesim.symbolic import Source

PAPER = "zhao2024galore"
SIX, MEDIAN_SIX = 6, 20.0
ONE = {0.5: 2.4e4, 0.95: 1.7e7}
"""Quantiles of another program for one sample. How many draws it had is not recorded: OF is taken for it."""
OF, EXACT = 200, {0.5: 3.41e4, 0.95: 2.21e7}
"""EXACT: the same quantiles by the singular values of two million pairs of normal matrices."""


def spread(count: int, draws: int) -> np.ndarray:
    """lambda_max / lambda_1 (draws,), sorted, of S for so many random B (4, 4) and C (5, 5), squares of normal matrices."""
    rng, found = np.random.default_rng(0), np.empty(draws)
    for k in range(draws):
        B, C = wishart(rng, count, 4), wishart(rng, count, 5)
        # of one sample the eigenvalues are products: those of a Kronecker product of condition 1e8 have few digits
        products = np.outer(np.linalg.eigvalsh(B[0]), np.linalg.eigvalsh(C[0])) if count == 1 else np.linalg.eigvalsh(matrix(B, C))
        found[k] = products.max() / products.min()
    return np.sort(found)


def quantile(values: np.ndarray, share: float, name: str, want: float, digit: float) -> Measurement:
    """The quantile of sorted draws beside a number, to a digit and four standard errors of a rank."""
    rank, error = share * len(values), 4 * np.sqrt(share * (1 - share) * len(values))
    low, middle, high = (float(values[round(x)]) for x in (rank - error, rank, rank + error))
    return Measurement(name, middle, want, digit + max(high - middle, middle - low))


def stiff() -> Iterable[Measurement]:
    """Quantiles for six samples and for one; how many draws of one are below those of another program."""
    six, one = spread(SIX, 1500), spread(1, 5000)
    yield quantile(six, 0.5, "median of lambda_max / lambda_1, N = 6", MEDIAN_SIX, 0.51)
    for share, value in EXACT.items():
        yield quantile(one, share, f"quantile {share:g} of lambda_max / lambda_1, N = 1", value, 0.0051 * value)
    for share, value in ONE.items():
        wide = 4 * np.sqrt(share * (1 - share) * (1 / OF + 1 / len(one)))
        yield Measurement(f"share of draws below {value:g}, N = 1", float((one < value).mean()), share, float(wide))


STIFF = (
    Claim(
        "galore.stiffness",
        Source(PAPER, "Theorem 3.2 and Lemma 3.3", "their rates; quantiles by independent programs"),
        "eigenvalues of S for random B (4, 4) and C (5, 5), squares of normal matrices: 1500 draws of six samples, 5000 of one",
        printed=Statement(
            "lambda_max / lambda_1 has the median 20 for six samples; 3.4e4 for one, with 2.2e7 at 95 %",
            stiff,
            "four standard errors of a rank, of ours and of 200 draws of the other program; half a digit",
        ),
        models=("galore.parametric_gradient",),
    ),
)
