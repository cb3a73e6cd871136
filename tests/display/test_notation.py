"""Mathematics in published prose is in one notation, that of formulas: sources are ASCII for terminals, pages are not."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from odesim.display.notation import pieces
from tests.support.notation import ASCII, NUMBER

ROOT = Path(__file__).parents[2]


def shown(text: str) -> str:
    """Prose with its formulas between brackets."""
    return "".join(f"⟦{part}⟧" if formula else part for formula, part in pieces(text))


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("k^2 I_k(beta)", "⟦k^{2}⟧ ⟦I_{k}⟧(⟦\\beta⟧)"),
        ("dtheta_i/dt = -sum_j A_ij sin(theta_i)", "⟦d\\theta_{i}⟧/dt = −⟦\\sum_{j}⟧ ⟦A_{ij}⟧ sin(⟦\\theta_{i}⟧)"),
        ("|xbar|, P^l[r, s'], v[l]", "|⟦\\bar{x}⟧|, ⟦P_{r, s'}^{l}⟧, ⟦v_{l}⟧"),
        ("d^((k - 2)/2), e^(-beta x^2/2), (1 - x)^2", "⟦d^{(k - 2)/2}⟧, ⟦e^{-\\beta x^{2}/2}⟧, (1 − x)⟦{}^{2}⟧"),
        ("t* < 1, rho_*^2, F + K * R, M*a", "⟦t^{*}⟧ < 1, ⟦\\rho_{*}^{2}⟧, F + K * R, M*a"),
        ("x_best >= 10^-5 -> [0, inf)", "⟦x_{\\mathrm{best}}⟧ ≥ ⟦10^{-5}⟧ → [0, ∞)"),
        (
            "W2^T, |V|_F^2, sin^2(phi), sum_(d in S), rho0",
            r"⟦{W_2}^{T}⟧, |V|⟦{}_{F}^{2}⟧, ⟦\sin^{2}⟧(⟦\phi⟧), ⟦\sum_{d \in S}⟧, ⟦{\rho_0}⟧",
        ),
        ("a_k' = -w_l, P_m'^2, pi[s'], exp(-V)", "⟦a'_{k}⟧ = −⟦w_{l}⟧, ⟦P'_{m}^{2}⟧, ⟦\\pi_{s'}⟧, exp(−V)"),
        ("p = .5 - 1e-8, -.25, 3e5, [-1, .1^2], v0.5", "p = 0.5 − 10⁻⁸, −0.25, 3·10⁵, [−1, ⟦0.1^{2}⟧], v0.5"),
        ("gap_(n-1), Cov_p(z, x), ln gam, stable_rank_V", r"⟦\mathrm{gap}_{n-1}⟧, ⟦\mathrm{Cov}_{p}⟧(z, x), ln ⟦\gamma⟧, stable_rank_V"),
        ("p+- = (1 +- sqrt(5)) / 2, .166 +- .255i", "p± = (1 ± √(5)) / 2, 0.166 ± 0.255i"),
        ("particles.gamma, no_stop, what, model's, E[x], U[0, 1]", "particles.gamma, no_stop, what, model's, E[x], U[0, 1]"),
    ],
)
def test_mathematics_in_prose(text: str, formulas: str) -> None:
    """Names of models, words and means stay what they are."""
    assert shown(text) == formulas


def published() -> Iterator[tuple[str, str]]:
    """(file, prose) of models, claims, figures and pages: of Python the texts that have more than one word."""
    for path in [*(ROOT / "models").rglob("*.py"), *(ROOT / "figures").glob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        words = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        yield from ((path.name, text) for text in (words if "models" in path.parts else words[:1]) if " " in text)
    for path in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "howto").glob("*.md")]:
        if path.name not in ("reference.md", "command_line.md"):
            text = re.sub(r"\]\([^)]*\)|^(?:    |:).*$", "]", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            yield path.name, re.sub(r"\\([*_|<>])", r"\1", text)


def test_no_ascii_mathematics_is_published() -> None:
    left = []
    for where, text in published():
        prose = re.sub(r"^```.*?^```|(`+)[^`].*?\1|\$\$.*?\$\$|\$[^$]+\$|<[^>]+>", "", text, flags=re.MULTILINE | re.DOTALL)
        rest = "".join(" " if formula else part for formula, part in pieces(prose))
        left += [f"{where}: {rest[max(0, m.start() - 30) : m.end() + 20]!r}" for m in (*ASCII.finditer(rest), *NUMBER.finditer(rest))]
    assert not left, "\n".join(left)
