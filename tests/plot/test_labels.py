"""Names as symbols: what the model's LaTeX shows, words as they stand."""

import re

import numpy as np
import pytest
import sympy as sp
from matplotlib.mathtext import MathTextParser

from odesim.inputs.registry import list_models, load_model
from odesim.plot.labels import alike, symbol


def bare(text: str) -> str:
    """A formula without what does not change it: dollar signs, spaces, braces, upright type."""
    return re.sub(r"\\mathrm|[${}\s]", "", text)


@pytest.mark.parametrize("model", list_models())
def test_a_symbol_is_that_of_the_models_latex(model):
    """States and parameters of every model: the same symbol as sympy prints, with and without indices, or the name as it stands."""
    system = load_model(model)
    names = [*map(str, system.states), *(p.name for p in system.params)]
    for name in names:
        shown = symbol(name)
        assert bare(shown) == bare(sp.latex(sp.Symbol(name))) if shown.startswith("$") else shown == name
        assert shown.startswith("$") or len(name) > 1
        if shown.startswith("$"):
            assert bare(symbol(name, ("l", "k"))).startswith(bare(shown))


@pytest.mark.parametrize(
    ("ends", "labels"),
    [
        ([1.0, 2.0, 3.0], {"0": 1.0, "1": 2.0, "2": 3.0}),
        ([2.0, 1.0, 2.0], {"0, 2": 2.0, "1": 1.0}),
        ([2.0] * 8, {"0 … 7": 2.0}),
        ([1.0, 1.0 + 1e-15, np.nan], {"0, 1": 1.0}),
        ([0.0, 1e-3, 1.0], {"0": 0.0, "1": 1e-3, "2": 1.0}),
        ([np.nan], {}),
    ],
)
def test_curves_that_end_alike_have_one_label(ends, labels):
    """Equal ends, but for rounding, are one; whatever can be seen apart is labelled apart."""
    assert dict(alike([str(k) for k in range(len(ends))], ends)) == labels


@pytest.mark.parametrize(
    ("name", "index", "label"),
    [
        ("mu", ("m",), r"$\mu_{m}$"),
        ("V", ("l", "k"), "$V_{l,k}$"),
        ("eta_Y", ("m",), r"$\eta_{{Y},m}$"),
        ("lambda_", (), r"$\lambda$"),
        ("chi_bound", (), r"$\chi_{\mathrm{bound}}$"),
        ("dv_dmu", (), r"$\partial v/\partial \mu$"),
        ("dS_d_deta_Y", (), r"$\partial S_{d}/\partial \eta_{Y}$"),
        ("dv_dmu", ("l", "mu_l"), r"$\partial v/\partial \mu$[l, mu_l]"),
        ("distinct_data", (), "distinct_data"),
        ("V", ("token", "node"), "$V$[token, node]"),
        ("zc", ("g",), r"$\mathrm{zc}_{g}$"),
        ("gap", ("l",), r"$\mathrm{gap}_{l}$"),
        ("half_way", ("3", "l"), r"$\mathrm{half\_way}_{3,l}$"),
        ("w", ("0",), "$w_{0}$"),
        ("loss", (), "loss"),
        ("entropy_distinct", ("n",), "entropy_\n" + r"$\mathrm{distinct}_{n}$"),
        ("gap", ("token",), "gap[token]"),
        ("stable_rank_of_the_velocity", (), "stable_rank_\nof_the_\nvelocity"),
        ("$x$", (), r"\$x\$"),
        ("nu", ("$k$",), r"$\nu$[\$k\$]"),
    ],
)
def test_labels(name, index, label):
    """Indices below, derivatives as fractions, words as words; a stranger's dollar signs start no formula; all of it can be drawn."""
    assert symbol(name, index) == label
    MathTextParser("path").parse(label)
