"""`odesim notebook`: writes a notebook that comes with odesim as an .ipynb file."""

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from odesim.cli.output.tables import echo

FORMAT = {"nbformat": 4, "nbformat_minor": 5}
FILE = re.compile(r"^(?:.*/)?(?:\d+_)?(\w+)(?:\.(?:py|ipynb))?$", re.ASCII)  # 01_first_steps.py, as the folder has it
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}}


def scripts() -> dict[str, Path]:
    """The notebooks {name without its number: script}, in order."""
    (folder,) = import_module("odesim.notebooks").__path__
    return {path.stem.partition("_")[2]: path for path in sorted(Path(folder).glob("[0-9]*_*.py"))}


def notebook_of(script: str) -> dict[str, Any]:
    """The notebook of a percent script, without outputs: a cell after each line `# %%`, text after `# %% [markdown]`."""
    cells: list[dict[str, Any]] = []
    for part in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        kind, _, body = part.partition("\n")
        if kind.strip() == "[markdown]":
            text = re.sub(r"^# ?", "", body.strip("\n"), flags=re.MULTILINE)
            cells.append({"cell_type": "markdown", "id": f"cell-{len(cells)}", "metadata": {}, "source": text})
        else:
            empty: dict[str, Any] = {"execution_count": None, "outputs": []}
            cells.append({"cell_type": "code", "id": f"cell-{len(cells)}", "metadata": {}, **empty, "source": body.strip("\n")})
    return {"cells": cells, "metadata": METADATA, **FORMAT}


def title_of(script: str) -> str:
    """The heading of a percent script."""
    (title,) = re.findall(r"^# # (.*)$", script, flags=re.MULTILINE)[:1] or [""]
    return title


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of notebooks, for the shell."""
    return [name for name in scripts() if name.startswith(incomplete)]


@click.command("notebook", short_help="Write a notebook that comes with odesim.")
@click.argument("name", metavar="[NAME]", required=False, shell_complete=complete)
@click.option("--out", metavar="FILE.ipynb", type=click.Path(path_type=Path), help="The file to write; default NAME.ipynb.")
def notebook_command(name: str | None, out: Path | None) -> None:
    """Write the notebook NAME as a file that Jupyter opens; without a name list the notebooks.

    An existing file stays as it is.
    """
    from odesim.base.errors import ParamError, StoreError, no_such
    from odesim.cli.output.tables import wrap_paragraph
    from odesim.store.paths import atomic_file, check_new_file, is_taken

    known = scripts()
    name = FILE.sub(r"\1", name) if name is not None else None
    if name is None:
        if out is not None:
            raise ParamError("--out: name the notebook to write")
        for slug, path in known.items():
            echo(f"{slug}\n{wrap_paragraph(title_of(path.read_text(encoding='utf-8')), '  ')}")
        return
    if name not in known:
        raise ParamError(no_such("notebook", name, known))
    file = out or Path(f"{name}.ipynb")
    if file.suffix != ".ipynb":
        raise StoreError(f"--out: a notebook is an .ipynb file, not {str(file)!r}")
    if is_taken(file):
        raise StoreError(f"{file} exists already; give another name with --out")
    text = json.dumps(notebook_of(known[name].read_text(encoding="utf-8")), indent=1, ensure_ascii=False)
    with atomic_file(check_new_file(file)) as work:
        work.write_text(text + "\n", encoding="utf-8")
    echo(f"{file} was written; open it with Jupyter")
