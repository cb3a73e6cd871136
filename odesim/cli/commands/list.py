"""`odesim list`: the models and tasks there are."""

import click

from odesim.base.parsing import parse
from odesim.cli.output.tables import echo


@click.command("list", short_help="List the models and the tasks.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list with one object per model: name, summary.")
def list_command(as_json: bool) -> None:
    """List the models, of odesim and of other installed packages, and the tasks of `odesim train`."""
    import json

    from odesim.cli.lab import lab_commands
    from odesim.cli.output.tables import wrap_paragraph
    from odesim.inputs.registry import list_models

    found = [(name, summary(name)) for name in list_models()]
    if as_json:
        echo(json.dumps([{"name": name, "summary": text} for name, text in found]))
    else:
        echo("\n".join(f"{name}\n{wrap_paragraph(text, '  ')}" if text else name for name, text in found))
        tasks = "\n".join(f"  {name}\n{wrap_paragraph(doc, '    ')}" for name, doc in lab_commands().task_docs())
        echo(f"\nTasks, for odesim train TASK and odesim compare MODEL --task TASK:\n{tasks}")


def summary(name: str) -> str:
    """The first line of a shipped model file, which is read and not run; empty for a model of another package."""
    import ast
    from importlib.util import find_spec
    from pathlib import Path

    try:
        spec = find_spec(f"odesim.models.{name}")
        text = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
        return (ast.get_docstring(parse(text)) or "").partition("\n")[0].rstrip(".")
    except (ImportError, OSError, SyntaxError, ValueError):
        return ""
