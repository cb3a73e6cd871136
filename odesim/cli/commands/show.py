"""`odesim show`: prints the description of a model."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.cli.options.kinds import ModelKind
from odesim.cli.output.tables import echo, number_text, shape_text, table, wrap_formula, wrap_paragraph

if TYPE_CHECKING:
    from odesim.symbolic import System

PATH = click.Path(path_type=Path)
DIRECTIONS = {-1: " downward", 0: "", 1: " upward"}


@click.command("show", short_help="Print a model's equations, parameters and laws.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@click.option("--latex", is_flag=True, help="Print all of it as a LaTeX document.")
@click.option("--derived", is_flag=True, help="Add the program that is compiled, with its temporaries.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--html", metavar="FILE.html", type=PATH, help="Write a web page instead, complete in one file.")
@click.option("--pdf", metavar="FILE.pdf", type=PATH, help="Write a pdf instead; this needs no LaTeX.")
@click.option("--overwrite", is_flag=True, help="Replace an existing FILE that odesim did not write.")
def show_command(model: str, latex: bool, derived: bool, as_json: bool, html: Path | None, pdf: Path | None, overwrite: bool) -> None:
    """Print the equations, states, parameters, observables, laws, events, closed forms and source of MODEL.

    A model file is Python code, and odesim executes it.
    """
    from odesim.cli.pages import check_page, write_pages
    from odesim.display.document import latex_document
    from odesim.display.text import derived_text, describe
    from odesim.inputs.registry import load_model

    if latex and as_json:
        raise click.UsageError("--latex and --json exclude each other; choose one", click.get_current_context())
    if latex and derived:
        raise click.UsageError("--latex does not print what --derived adds; leave one of them out", click.get_current_context())
    if (html or pdf) and (latex or derived or as_json):
        raise click.UsageError("--html and --pdf write files, --latex, --derived and --json print; choose one", click.get_current_context())
    for file, kind in ((html, "html"), (pdf, "pdf")):
        check_page(file, kind, overwrite=overwrite)
    system = load_model(model)
    if html or pdf:
        echo("\n".join(f"written to {file}" for file in write_pages(system, html, pdf)))
        return
    if latex:
        echo(latex_document(system), nl=False)
        return
    described = with_defaults(describe(system), system) | ({"derived": list(derived_text(system))} if derived else {})
    echo(json.dumps(described, allow_nan=False) if as_json else "\n".join(sections(described, system)))


def with_defaults(described: dict[str, Any], system: "System") -> dict[str, Any]:
    """The description with the default value of every parameter at the default sizes, and those sizes.

    A System without enough defaults to run keeps what it says.
    """
    from odesim.errors import OdesimError
    from odesim.inputs.bind import bind
    from odesim.store.plain_data import to_plain

    try:
        numbers = bind(system)
    except OdesimError:
        return described
    parameters = [{**p, "default": to_plain(numbers.params[p["name"]])} for p in described["parameters"]]
    return {**described, "sizes": numbers.sizes, "parameters": parameters}


def sections(described: dict[str, Any], system: "System") -> Iterator[str]:
    """The sections of the page, each with its title."""
    source = described["source"]
    yield described["name"]
    yield wrap_paragraph("; ".join(filter(None, (f"{source['key']}, {source['where']}", source["note"]))), "  ")
    yield from titled("equations", map(wrap_formula, described["equations"]))
    yield from titled("beyond the ends", (f"{i}: {kind}" for i, kind in described["boundary"].items()))
    yield from titled("where", map(wrap_formula, described["definitions"]))
    yield from titled("program", map(wrap_formula, described.get("derived", ())))
    yield from titled("states", [table((s["name"], shape_text(s["shape"]), f"starts at {s['initial']}") for s in described["states"])])
    yield from titled("parameters", [parameter_table(described["parameters"])])
    yield from titled("defaults", [default_rows(described)])
    above = described["definitions"]
    yield from titled("observables", (observable_text(o, callable(system.observables[o["name"]]), above) for o in described["observables"]))
    yield from titled("constraints", (wrap_formula(f"{c['name']}: {c['expression']}") for c in described["constraints"]))
    yield from titled("invariants", map(invariant_text, described["invariants"]))
    yield from titled("events", map(event_text, described["events"]))
    yield from titled("growth, of the rescaled clock", [wrap_formula(described["growth"])] if described["growth"] else [])
    yield from titled("closed forms", (wrap_formula(f"{c['name']}, {c['kind']}, {c['where']}") for c in described["closed_forms"]))


def invariant_text(law: dict[str, Any]) -> str:
    """The name, kind and expression of an invariant, and the initial values it holds for."""
    when = f", for starts with {law['when']}" if law["when"] else ""
    return wrap_formula(f"{law['name']}, {law['sense']}: {law['expression']}{when}")


def observable_text(observable: dict[str, Any], function: bool, definitions: Sequence[str]) -> str:
    """The name of an observable, its shape, and its expression, or the docstring of a function."""
    name = f"{observable['name']} {shape_text(observable['shape'])}".strip()
    if any(line.split(" = ")[0].split("[")[0] == observable["name"] for line in definitions):
        return f"  {name}, as above"
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
    """The default sizes and span of a run."""
    start, end = described["span"]
    sizes = ", ".join(f"{name} = {n}" for name, n in described["sizes"].items())
    return table([*([("sizes", sizes)] if sizes else []), ("span", f"{number_text(start)} to {number_text(end)} {described['time']}")])


def titled(title: str, lines: Iterable[str]) -> Iterator[str]:
    """A title and its lines; empty if there are no lines."""
    found = [line for line in lines if line]
    if found:
        yield title
        yield from found


def event_text(event: dict[str, Any]) -> str:
    """The expression of an event, the direction in which it passes 0, whether it ends the run, and what it sets states to."""
    start = ", also at the start," if event["at_start"] else ""
    way = f"passes 0{DIRECTIONS[event['direction']]}{start}{' and ends the run' if event['terminal'] else ''}"
    doc = [wrap_paragraph(event["doc"], "      ")] if event["doc"] else []
    resets = [wrap_formula(f"    {key} <- {e}") for key, e in event["resets"].items()]
    return "\n".join([wrap_formula(f"{event['name']}: {event['expression']} {way}"), *resets, *doc])


def default_text(value: Any) -> str:
    """A default value in a few characters: a number, the number that fills an array, or its minimum and maximum."""
    if isinstance(value, str):
        return value
    flat = [value["min"], value["max"]] if isinstance(value, dict) else list(entries(value))
    low, high = short(min(flat)), short(max(flat))
    return low if low == high else f"{low} to {high}"


def short(value: float) -> str:
    """A number with four digits."""
    return f"{value:.4g}"


def entries(value: Any) -> Iterator[float]:
    """The numbers of a nested list, in order."""
    if isinstance(value, list):
        for part in value:
            yield from entries(part)
    else:
        yield value
