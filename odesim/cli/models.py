"""Models: `odesim list`, `show` and `new`."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from odesim.base.errors import ModelError, StoreError, nearest, shorten
from odesim.cli.options import ModelKind
from odesim.cli.tables import WIDTH, echo, number_text, shape_text, table, wrap_formula, wrap_paragraph

if TYPE_CHECKING:
    from odesim.symbolic import System


@click.command("list", short_help="List the models and the tasks.")
@click.argument("text", metavar="[FAMILY|TEXT]", required=False)
@click.option("--tasks", "of_tasks", is_flag=True, help="Describe the tasks of `odesim train`; with TEXT, those that have it.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list with one object per model: name, summary.")
def list_command(text: str | None, of_tasks: bool, as_json: bool) -> None:
    """List the models by family, those of other installed packages too; with a FAMILY, or any TEXT, describe those that it is about.

    TEXT is sought in names, summaries and model files: sphere, Adam, loss.
    """
    from odesim.inputs.registry import list_models, summary

    if of_tasks:
        if as_json:
            raise click.UsageError("--json is a list of models; leave out --tasks")
        from odesim.cli.lab import lab_commands

        tasks = [row for row in lab_commands().task_docs() if (text or "").lower() in " ".join(row).lower()]
        if not tasks:
            raise ModelError(f"no task has {shorten(str(text), 60)!r} in its name or its description; `odesim list --tasks` names all")
        return echo(described(tasks))
    if text is None and not as_json:
        return echo(families_text(list_models()))
    rows, others = about(text or "")
    if as_json:
        return echo(json.dumps([{"name": model, "summary": summary(model)} for model in sorted([*dict(rows), *others])]))
    echo(described(rows))
    if others:
        echo(("\nalso in the files of\n" if rows else "") + wrap_paragraph(", ".join(others), "  "))


def about(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """(name, summary) of models with text in their names, else of those with such a word in the summary; names of others by their files.

    Raises ModelError where there is none.
    """
    from odesim.inputs.registry import list_models, source_text, summary

    word = re.compile(rf"\b{re.escape(text)}", re.IGNORECASE)
    summaries = {model: summary(model) for model in list_models()}
    rows = {model: line for model, line in summaries.items() if text.lower() in model}
    rows = rows or {model: line for model, line in summaries.items() if word.search(line)}
    others = [model for model, line in summaries.items() if model not in rows and word.search(f"{line}\n{source_text(model)}")]
    if not rows and not others:
        parts = {part for model in summaries for part in model.split(".")}
        hint = nearest(text, parts) or "; `odesim list` names all"
        raise ModelError(f"no model has {shorten(text, 60)!r} in its name, its summary or its file{hint}")
    return list(rows.items()), others


def described(rows: Iterable[tuple[str, str]]) -> str:
    """Names with what they are, indented below them."""
    return "\n".join(f"{name}\n{wrap_paragraph(text, '  ')}" if text else name for name, text in rows)


def families_text(models: Iterable[str]) -> str:
    """A paragraph a family: a line on what it is, up to its last pause that fits, and the names of its models; one alone is in the line."""
    from odesim.inputs.registry import summary

    lines = []
    for family, members in groupby(models, key=lambda name: name.partition(".")[0]):
        first, *others = members
        about = f"{family if others else first}: {summary(family)}".removesuffix(": ")
        while (len(about) > WIDTH or about.count("(") > about.count(")")) and (parts := re.split(r"([,:;] | \()", about))[3:]:
            about = "".join(parts[:-2])
        lines.append(about)
        if others:
            lines.append(wrap_paragraph(", ".join(name.partition(".")[2] or name for name in (first, *others)), "  "))
    more = (
        "`odesim list FAMILY` describes models, `odesim list --tasks` the tasks of `odesim train`; `odesim show FAMILY.MODEL` prints one."
    )
    return "\n".join(lines) + f"\n\n{wrap_paragraph(more)}"


def write_page(system: "System", file: Path) -> None:
    """Writes the page of a System as html. Raises StoreError."""
    from odesim.display.document import html_page
    from odesim.plot.files import write_atomically

    text = html_page(system)
    write_atomically(file, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    echo(f"written to {file}")


SCREEN, MAIN = 30, ("equations", "states", "parameters")  # lines of a page; sections that are left as they are longest
PATH = click.Path(path_type=Path)
DIRECTIONS = {-1: " downward", 0: "", 1: " upward"}


@click.command("show", short_help="Print a model's equations, parameters and laws.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@click.option("--all", "everything", is_flag=True, help="Print long sections to their end.")
@click.option("--latex", is_flag=True, help="Print all of it as a LaTeX document.")
@click.option("--derived", is_flag=True, help="Add the program that is compiled, with its temporaries.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--html", metavar="FILE.html", type=PATH, help="Write a web page instead, complete in one file; a browser prints it as pdf.")
@click.option("--overwrite", is_flag=True, help="Replace an existing FILE that odesim did not write.")
def show_command(model: str, everything: bool, latex: bool, derived: bool, as_json: bool, html: Path | None, overwrite: bool) -> None:
    """Print the equations, states, parameters, observables, laws, events, closed forms and source of MODEL.

    Where that is more than a screen, the longest sections say how much they
    have left out. A model file is Python code, and odesim executes it.
    """
    from odesim.display.document import latex_document
    from odesim.display.text import derived_text, describe
    from odesim.inputs.registry import load_with_origin, summary

    if latex and as_json:
        raise click.UsageError("--latex and --json exclude each other; choose one", click.get_current_context())
    if latex and derived:
        raise click.UsageError("--latex does not print what --derived adds; leave one of them out", click.get_current_context())
    if html:
        from odesim.plot.files import is_odesim_picture
        from odesim.store.paths import check_new_file

        if latex or derived or as_json:
            raise click.UsageError("--html writes a file, --latex, --derived and --json print; choose one", click.get_current_context())
        if html.suffix.lower() != ".html":
            raise StoreError(f"--html writes a file that ends in .html, not {str(html)!r}")
        check_new_file(html, overwrite=overwrite or is_odesim_picture(html))
    system, origin = load_with_origin(model)
    if html:
        return write_page(system, html)
    if latex:
        echo(latex_document(system), nl=False)
        return
    described = with_defaults(describe(system), system) | ({"derived": list(derived_text(system))} if derived else {})
    if as_json:
        return echo(json.dumps(described, allow_nan=False))
    page = "\n".join(sections(described, system, summary(model.partition(":")[0], origin)))
    echo(page if everything or derived else shortened(page))


def with_defaults(described: dict[str, Any], system: "System") -> dict[str, Any]:
    """The description with the default value of every parameter at the default sizes, and those sizes.

    A System without enough defaults to run keeps what it says.
    """
    from odesim.base.errors import OdesimError
    from odesim.inputs.bind import bind
    from odesim.store.plain import to_plain

    try:
        numbers = bind(system)
    except OdesimError:
        return described
    parameters = [{**p, "default": to_plain(numbers.params[p["name"]])} for p in described["parameters"]]
    return {**described, "sizes": numbers.sizes, "parameters": parameters}


def sections(described: dict[str, Any], system: "System", about: str) -> Iterator[str]:
    """The name, what the model is, and the sections of the page, each with its title."""
    yield described["name"]
    yield from [wrap_paragraph(about, "  ")] * bool(about)
    yield wrap_paragraph(str(system.source), "  ")
    yield from titled("equations", map(wrap_formula, described["equations"]))
    yield from titled("beyond the ends", (f"  {i}: {kind}" for i, kind in described["boundary"].items()))
    noise = described["noise"]
    yield from titled("noise", [f"  {noise['calculus']}, {noise['kind']}"] if noise else [])
    yield from titled("where", map(wrap_formula, described["definitions"]))
    yield from titled("program", map(wrap_formula, described.get("derived", ())))
    alike = groupby(described["states"], key=lambda s: (shape_text(s["shape"]), f"starts at {s['initial']}"))
    yield from titled("states", [table((", ".join(s["name"] for s in states), *words) for words, states in alike)])
    yield from titled("parameters", [parameter_table(described["parameters"])])
    yield from titled("defaults", [default_rows(described)])
    above = described["definitions"]
    yield from titled("observables", (observable_text(o, callable(system.observables[o["name"]]), above) for o in described["observables"]))
    yield from titled("constraints", (wrap_formula(f"{c['name']}: {c['expression']}") for c in described["constraints"]))
    yield from titled("invariants", (invariant_text(law, described["observables"]) for law in described["invariants"]))
    yield from titled("events", map(event_text, described["events"]))
    yield from titled("growth, of --clock rescaled", [wrap_formula(described["growth"])] if described["growth"] else [])
    yield from titled("closed forms", (wrap_formula(f"{c['name']}, {c['kind']}, {c['where']}") for c in described["closed_forms"]))


def shortened(page: str) -> str:
    """The page in SCREEN lines, or few more: of the longest sections the first entries, and how many more they have."""
    parts: list[list[list[str]]] = []  # sections, each its title with a head and its entries, all as lines
    for line in page.splitlines():
        if not line.startswith(" "):
            parts.append([[line]])
        elif line[2] != " ":
            parts[-1].append([line])
        else:
            parts[-1][-1].append(line)
    left_out: list[list[list[str]]] = [[] for _ in parts]
    height = [sum(map(len, part)) for part in parts]
    for kept, least in ((MAIN, 2), ((), 5)):
        while sum(height) > SCREEN:
            long = [k for k, part in enumerate(parts) if k and part[0][0] not in kept and len(part) > 1 + least]
            if not long:
                break
            k = max(long, key=lambda k: height[k])
            left_out[k].append(parts[k].pop())
            height[k] = sum(map(len, parts[k])) + 1
    ends = [rest if sum(map(len, rest)) < 2 else [[f"  ... {len(rest)} more with --all"]] for rest in left_out]
    return "\n".join(line for part, end in zip(parts, ends, strict=True) for entry in [*part, *end] for line in entry)


def invariant_text(law: dict[str, Any], observables: Sequence[dict[str, Any]]) -> str:
    """The name, kind and expression of an invariant, an observable by its name, and the initial values it holds for."""
    when = f", for starts with {law['when']}" if law["when"] else ""
    named = next((o["name"] for o in observables if o["expression"] == law["expression"]), law["expression"])
    return wrap_formula(f"{law['name']}, {law['sense']}: {named}{when}")


def observable_text(observable: dict[str, Any], function: bool, definitions: Sequence[str]) -> str:
    """The name of an observable, its shape, and its expression, or the docstring of a function."""
    name = f"{observable['name']} {shape_text(observable['shape'])}".strip()
    if any(line.split(" = ")[0].split("[")[0] == observable["name"] for line in definitions):
        return f'  {name}, under "where"'
    return wrap_formula(f"{name}: {observable['expression']}" if function else f"{name} = {observable['expression']}")


def parameter_table(parameters: list[dict[str, Any]]) -> str:
    """Name, shape, default, domain and meaning of every parameter; the meaning on its own line if there is no room for it."""
    if not parameters:
        return ""
    rows = [(p["name"], shape_text(p["shape"]), default_text(p["default"]), p["domain"]) for p in parameters]
    header = ("", "shape", "default", "domain")
    wide = sum(max(len(row[i]) for row in [header, *rows]) + 2 for i in range(4)) > 48
    if not wide:
        return table([(*row, p["doc"]) for row, p in zip(rows, parameters, strict=True)], (*header, ""))
    first, *lines = table(rows, header).splitlines()
    pairs = zip(lines, parameters, strict=True)
    return "\n".join([first, *(f"{line}\n{wrap_paragraph(p['doc'], '      ')}" for line, p in pairs)])


def default_rows(described: dict[str, Any]) -> str:
    """The default sizes, span and step of a run."""
    start, end = described["span"]
    unit = f" ({described['time']})" * bool(described["time"])
    sizes = ", ".join(f"{name} = {n}" for name, n in described["sizes"].items())
    step, pairs = described["noise"].get("step"), [("sizes", sizes)] if sizes else []
    steps = [("step", number_text(step))] if step else []
    return table([*pairs, ("span", f"{number_text(start)} to {number_text(end)}{unit}"), *steps])


def titled(title: str, lines: Iterable[str]) -> Iterator[str]:
    """A title and its lines; empty if there are no lines."""
    shown = [line for line in lines if line]
    if shown:
        yield title
        yield from shown


def event_text(event: dict[str, Any]) -> str:
    """The expression of an event, the direction in which it passes 0, whether it ends the run, and what it sets states to."""
    start = ", also at the start," if event["at_start"] else ""
    way = f"passes 0{DIRECTIONS[event['direction']]}{start}{' and ends the run' if event['terminal'] else ''}"
    doc = [wrap_paragraph(event["doc"], "      ")] if event["doc"] else []
    resets = [wrap_formula(f"    {key} <- {e}") for key, e in event["resets"].items()]
    return "\n".join([wrap_formula(f"{event['name']}: {event['expression']} {way}"), *resets, *doc])


def default_text(value: Any) -> str:
    """A default value in a few characters: a number, the number that fills an array, or its minimum and maximum."""
    import numpy as np

    if isinstance(value, str):
        return value
    flat = np.ravel([value["min"], value["max"]] if isinstance(value, dict) else value)
    low, high = f"{flat.min():.4g}", f"{flat.max():.4g}"
    return low if low == high else f"{low} to {high}"


TEMPLATE = '''\
"""Gradient flow of linear units: the weights relax to the targets at one rate.

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
