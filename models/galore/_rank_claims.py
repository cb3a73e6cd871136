"""What the GaLore paper states of the rank of gradients beside that of weights, in JoMA's linear MLP."""

from collections.abc import Iterable

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement
from odesim.models.galore.parametric_gradient import stable_rank
from odesim.models.joma.linear_multinode import SYSTEM
from odesim.symbolic import Source

PAPER = "zhao2024galore"
TAILS = {  # by 1 - t/t*: stable rank of V less 1, its formula; of dV/dt less 1, its formula
    1e-3: (3.0891, 4.3697, 2.3276e-3, 2.3290e-3),
    1e-6: (1.6980, 1.9845, 4.8387e-9, 4.8387e-9),
    1e-9: (1.1518, 1.2723, 7.1e-15, 7.4e-15),
    1e-15: (0.6959, 0.7370, 0.0, 1e-26),
}
DIGITS = {
    1e-3: (5.1e-5, 5.1e-5, 5.1e-8, 5.1e-8),
    1e-6: (5.1e-5, 5.1e-5, 7e-14, 5.1e-14),
    1e-9: (5.1e-5, 5.1e-5, 2e-14, 5.1e-17),
    1e-15: (5.1e-5, 5.1e-5, 2e-14, 5.1e-27),
}


def tails() -> Iterable[Measurement]:
    """Both stable ranks before the blow-up, by the closed form, and sums over the rows that do not win."""
    from scipy.special import erfcinv

    Delta = np.random.default_rng(0).standard_normal((40, 20))
    length = np.linalg.norm(Delta, axis=1)
    top = int(length.argmax())
    share, sine = length / length[top], 1 - (Delta @ Delta[top] / (length * length[top])) ** 2
    sine[top] = 0.0  # which leaves no rounding
    for x, row in TAILS.items():
        s = np.sqrt(2) * erfcinv((1 - share) + share * x)  # erfinv(share (1 - x)) without the rounding of 1 - x
        rate = length * np.exp((s**2 - s[top] ** 2) / 2)
        for name, rows, want, digits in (("V", s, row[:2], DIGITS[x][:2]), ("dV/dt", rate, row[2:], DIGITS[x][2:])):
            seen = stable_rank(Delta / length[:, None] * rows[:, None]) - 1
            yield Measurement(f"stable rank of {name} - 1 at 1 - t/t* = {x:g}", seen, want[0], digits[0])
            yield Measurement(f"its formula, {name}, 1 - t/t* = {x:g}", float((rows / rows[top]) ** 2 @ sine), want[1], digits[1])


def at_the_blow_up(second: float) -> Iterable[Measurement]:
    """The stable rank of dV/dt at 1 - t/t* = 1e-4, three rows of length 1, second and .6."""
    Delta = np.array([[1.0, 0.0], [0.0, second], [0.48, 0.36]])
    t = float(np.sqrt(np.pi / 2)) * (1 - 1e-4)
    run = odesim.integrate(SYSTEM, params={"Delta": Delta}, span=(0, t), save=2, backend="numpy", rtol=1e-9, atol=1e-12)
    yield Measurement(f"stable rank of dV/dt, lengths 1 and {second:g}", float(run.observables["stable_rank_dV"][-1]), 1.0, 0.01)


LOW_RANK = (
    Claim(
        "galore.ties",
        Source(PAPER, "low-rank gradients of transformers", "wording recalled"),
        "joma.linear_multinode, three tokens and two nodes, to 1 - t/t* = 1e-4",
        printed=Statement(
            "the gradient comes to rank one",
            lambda: at_the_blow_up(0.8),
            "what other rows have left, below .01",
            when="one row of Delta is the longest; two of one length leave rank two",
            otherwise=lambda: at_the_blow_up(1.0),
        ),
    ),
    Claim(
        "galore.rank_tails",
        Source(PAPER, "low-rank gradients of transformers", "wording recalled; the numbers by an independent script"),
        f"the closed form of {SYSTEM.name}, M = 40, K = 20, Delta of default_rng(0)",
        printed=Statement(
            "gradients reach rank one exponentially sooner than V: rho_l^2 sin^2(theta_l)/rho_*^2, where V has s_l^2 sin^2(theta_l)/s_*^2",
            tails,
            "half a unit of the last digit; rounding of a stable rank near 1, some 1e-14",
        ),
        depends=("galore.ties",),
    ),
)
