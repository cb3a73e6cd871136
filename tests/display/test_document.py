"""The LaTeX document of a System names everything in it, and TeX takes it."""

import shutil
import subprocess
from collections import ChainMap
from pathlib import Path

import pytest
from sympy import Symbol

from odesim.display.document import latex_document
from odesim.display.page import escape
from odesim.inputs.registry import load_model
from odesim.symbolic import Event, IndexedBase, Invariant, Param, Source, System, index, sizes
from tests.support.models import CHEAPEST_FIRST, Shipped
from tests.support.systems import REAL, SYSTEMS

(m,), (M,) = index("m"), sizes("M")
odd, lambda_ = IndexedBase("odd_name_2", shape=(M,)), Symbol("lambda_", real=True)
ODD = System(
    name="odd.names",
    source=Source("key_with_line", "eq. 1 & 2 # 50 %", "{braces} ~ \\ ^ < $"),
    axes={m: M},
    equations={odd[m]: -lambda_ * odd[m]},
    params=(Param(lambda_, 1.0, REAL, "rate & more, in % of $"),),
    initial={odd[m]: 1.0},
    observables={"f_of_t": lambda t, y, dy, params: t},
    invariants=(Invariant("a_b & c", odd[m] ** 2, "nonincreasing", when=lambda_ >= 0),),
    events=(Event("half_way", odd[m] - 0.5, -1, True),),
)
ALL = ChainMap({ODD.name: ODD}, SYSTEMS, Shipped())  # type: ignore[arg-type]
NAMES = [ODD.name, *CHEAPEST_FIRST, *SYSTEMS]


@pytest.mark.first(9)
@pytest.mark.parametrize("name", NAMES)
def test_everything_is_named(name):
    """Parameters' meanings, observables, constraints, laws, events, closed forms and the source stand in it; braces balance."""
    system, text = ALL[name], latex_document(ALL[name])
    said = [*(p.doc for p in system.params), system.source.where, *system.observables]
    said += [part.name for group in (system.constraints, system.invariants, system.events, system.closed_forms) for part in group]
    assert [words for words in said if escape(words) not in text] == []
    plain = text.replace(r"\\", "").replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}") and text.count(r"\begin{") == text.count(r"\end{")


def test_an_array_observable_has_its_indices():
    """gap of joma.nonlinear is a vector: its index stands on the left, and its range beside it."""
    assert r"\mathtt{gap}_{l} = {\mu}_{l} - {v}_{l} \qquad l = 0, \dots, M - 1" in latex_document(load_model("joma.nonlinear"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.parametrize("name", NAMES)
def test_tex_takes_it(name, tmp_path: Path):
    """pdflatex makes a pdf of it, without an error and without a line that leaves the page."""
    (tmp_path / "system.tex").write_text(latex_document(ALL[name]), encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", "system.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "system.pdf").read_bytes().startswith(b"%PDF") and "Overfull" not in done.stdout
