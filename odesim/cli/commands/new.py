"""`odesim new`: writes a commented model file to start from."""

import re
from pathlib import Path
from shlex import quote

import click

from odesim.cli.output.tables import echo

TEMPLATE = '''\
"""{name}: gradient flow of linear units; the weights relax to the targets at one rate.

This file is code that runs when it is integrated:   odesim integrate {name}.py --plot {name}.png
What it holds:                                       odesim show {name}.py
"""

from sympy import Interval, Rational, Sum, exp, oo, symbols

from odesim.symbolic import ClosedForm, Event, IndexedBase, Invariant, Param, Source, System, index, over, sizes

# Indices, and the sizes they run over. Nothing is unrolled: M may be a million.
(m,) = index("m")
(M,) = sizes("M")

# States and parameters: IndexedBase for arrays, symbols for numbers.
w, s = IndexedBase("w", shape=(M,)), IndexedBase("s", shape=(M,))
tau = symbols("tau", positive=True)


def solution(t, y0, params):
    """The solution known by other means, {{state: array}}: the tests of a model compare with it."""
    from numpy import exp

    return {{"w": params["s"] + (y0["w"] - params["s"]) * exp(-t / params["tau"])}}


SYSTEM = System(
    name="{name}",
    source=Source("nobody2026", "eq. 1", "a stand-in; put the paper's key and equation here"),
    # which index runs over which extent
    axes={{m: M}},
    # d state / dt, for every value of its indices; sums are over(Sum, f, (index, extent))
    equations={{w[m]: (s[m] - w[m]) / tau}},
    # symbol, default (a number fills the shape, or a function of the sizes), domain, what it is
    params=(
        Param(s, lambda sizes: [(-1) ** i / (1 + i) for i in range(sizes["M"])], Interval(-oo, oo), "target"),
        Param(tau, 1.0, Interval.open(0, oo), "time constant"),
    ),
    initial={{w[m]: 0.0}},
    # all that follows may be left out
    sizes={{M: 4}},
    span=(0.0, 8.0),
    time="time constants",
    observables={{
        "loss": over(Sum, Rational(1, 2) * (w[m] - s[m]) ** 2, (m, M)),
        "gap": s[m] - w[m],
    }},
    invariants=(Invariant("distance", (s[m] - w[m]) ** 2, "nonincreasing"),),
    # where an expression passes 0; a terminal event ends the run
    events=(Event("half_way", w[0] - s[0] / 2, 1, doc="the first weight is half of its target"),),
    closed_forms=(ClosedForm("relaxation", "always", solution),),
)
'''


@click.command("new", short_help="Write a commented model file that runs.")
@click.argument("file", metavar="FILE.py", type=click.Path(path_type=Path))
def new_command(file: Path) -> None:
    """Write a commented example model to FILE.py, to start from. An existing file is not changed."""
    from odesim.base.errors import StoreError
    from odesim.store.paths import atomic_file, check_new_file, is_taken

    if not file.name:
        raise StoreError(f"{str(file)!r} names no file; a model is a Python file, such as my_model.py")
    if file.suffix != ".py":
        raise StoreError(f"a model is a Python file: name it {file.with_suffix('.py')}, not {file}")
    if is_taken(file):
        raise StoreError(f"{file} exists already; give another name")
    name = re.sub(r"\W+", "_", file.stem)  # nothing that ends a docstring
    with atomic_file(check_new_file(file)) as work:
        work.write_text(TEMPLATE.format(name=name), encoding="utf-8")
    echo(f"{file} was written; next: odesim integrate {quote(str(file))} --plot {name}.png")
