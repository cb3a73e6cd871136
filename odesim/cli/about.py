"""What comes with odesim and what it finds here: `odesim figure`, `notebook`, `cache`, `doctor`, `completion`."""

import json
import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import BACKENDS
from odesim.base.errors import CodegenError, ParamError, StoreError, counted, no_such
from odesim.base.options import __version__, version_of
from odesim.cli.options import OneOf
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.tables import bytes_text, echo, table, wrap_paragraph

if TYPE_CHECKING:
    from odesim.plot.figures import FigureRun

ALL = "all"


def complete_figure(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of figures, for the shell."""
    from odesim.plot.figures import list_figures

    return [name for name in (ALL, *list_figures()) if name.startswith(incomplete)]


@click.command("figure", short_help="Make a paper's figure and check its numbers.")
@click.argument("name", metavar="[NAME|all]", required=False, shell_complete=complete_figure)
@click.option("--fast", is_flag=True, help="Compute less, as fewer points, seeds or steps; the features are the same.")
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), default=Path(), help="Folder for the files; default: the current one."
)
@click.option(
    "--format", "formats", metavar="png,pdf", default="png", help="Format of the picture: png, pdf, svg, html, or several; default png."
)
def figure_command(name: str | None, fast: bool, out: Path, formats: str) -> int:
    """Compute figure NAME, or all figures. Without a name, list them by what they answer.

    This writes the picture, NAME.nc (data) and NAME.json (parameters, versions, features), and replaces what odesim wrote there before.
    It prints each feature (a number that the figure shows) as measured, beside its target. Targets are published, follow from theory, or
    come from a script that follows the code of the paper. The exit code is 3 if a feature is off its target.
    """
    from odesim.plot.figures import figures_by_question, list_figures, load_figure, run_figure

    if name is None:
        for question, answers in figures_by_question().items():
            echo(f"{question[0].upper()}{question[1:]}\n")
            for figure in answers:
                first = (load_figure(figure).__doc__ or "").strip().partition("\n")[0]
                echo(f"{figure}\n{wrap_paragraph(first, '  ')}")
            echo("")
        return DONE
    wanted = tuple(part.strip().lower() for part in formats.split(","))
    code = DONE
    for one in list_figures() if name == ALL else [name]:
        run = run_figure(one, fast=fast, out=out, formats=wanted)
        echo(features_text(run))
        if not run.passed:
            off = [feature.name for feature in run.features if not feature.passed]
            say(f"{run.name}: {len(off)} of {len(run.features)} features are off their target: {', '.join(off)}")
            code = STOPPED
    return code


def features_text(run: "FigureRun") -> str:
    """The features of a figure with their targets, and the files written."""

    rows = [
        ("ok" if f.passed else "OFF", digits(f.measured), digits(f.target), f"{f.tolerance:.2g}", f.origin, f.name) for f in run.features
    ]
    body = table(rows, ("", "measured", "target", "tolerance", "target from", "feature"), right=(1, 2, 3))
    return "\n".join([run.name, body, wrap_paragraph("written: " + ", ".join(map(str, run.files)), "  ")])


def digits(value: Any) -> str:
    """A number with seven digits, as many as published ones have."""
    return f"{float(value):.7g}"


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


@click.command("cache", short_help="Show or clear the cache of compiled code.")
@click.argument("action", required=False, type=OneOf("action", "clear"), metavar="[clear]")
def cache_command(action: str | None) -> None:
    """Show the folder of compiled code and its size; `clear` empties it.

    ODESIM_CACHE_DIR names another folder. Whatever is missing is compiled again when it is needed.
    """
    from odesim.targets.cache import cache_dir, cache_entries, cache_note, clear_cache

    entries = cache_entries()
    folders = dict.fromkeys([cache_dir(), *(entry.path.parent for entry in entries)])
    if action == "clear":
        echo(f"{bytes_text(clear_cache())} freed in {' and '.join(map(str, folders))}")
        return
    for folder in folders:
        here = [entry.size for entry in entries if entry.path.parent == folder]
        echo(f"{folder}: {len(here)} module{'' if len(here) == 1 else 's'}, {bytes_text(sum(here))}")
    if note := cache_note():
        echo(note)


CORE = ("numpy", "scipy", "sympy", "numba", "matplotlib", "click", "zarr", "xarray", "platformdirs")
CUPY = ("cupy-cuda12x", "cupy-cuda13x", "cupy")


@click.command("doctor", short_help="Print versions, processor, cache and GPU.")
def doctor_command() -> None:
    """Print what odesim finds here: versions, the processor, the cache of compiled code, a GPU and what it would need."""

    parts = [f"{part.__name__}\n{table(list(part()))}" for part in (versions, machine, cache, backends, gpu)]
    echo("\n".join(parts))  # nothing where one of them cannot be told


def versions() -> Iterator[tuple[str, str]]:
    """(package, version) of odesim, Python and the packages that odesim needs."""
    yield "odesim", f"{__version__} in {Path(str(sys.modules['odesim'].__file__)).parent}"
    yield "python", f"{platform.python_version()} ({platform.python_implementation()}) in {sys.prefix}"
    for name in CORE:
        yield name, version_of(name) or f"absent: pip install {name}"


def machine() -> Iterator[tuple[str, str]]:
    """Operating system, processor, cores, memory."""
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield "processor", processor()
    yield "cores", f"{usable_cores()} of {os.cpu_count()} usable"
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        yield "memory", bytes_text(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def cache() -> Iterator[tuple[str, str]]:
    """The folder of the cache of compiled code, and its size."""
    from odesim.targets.cache import cache_dir, cache_entries, cache_note

    entries = cache_entries()
    yield "folder", str(cache_dir())
    yield "size", f"{counted(len(entries), 'module')}, {bytes_text(sum(e.size for e in entries))}"
    note = cache_note()
    yield "used", f"no: {note}" if note else "yes"


def backends() -> Iterator[tuple[str, str]]:
    """(backend, what it supports): runs, ensembles and trainings, and the types of states."""
    for name, backend in BACKENDS.items():
        uses = "; ".join(f"{use}: {ability.summary}" for use, ability in backend.uses.items())
        yield name, f"{uses}; {', '.join(backend.dtypes)}"


def gpu() -> Iterator[tuple[str, str]]:
    """The CUDA driver, cupy with its devices, and NVRTC, each with what to install where it is missing."""
    from odesim.base.device import cuda_driver, install_command

    driver = cuda_driver()
    yield (
        "driver",
        f"CUDA {driver // 1000}.{driver % 1000 // 10}"
        if driver
        else "absent: there is no NVIDIA driver here, and the numba backend needs none",
    )
    missing = f"absent{':' if driver else '; with an NVIDIA GPU:'} {install_command()}"
    installed = {name: compiler_version for name in CUPY if (compiler_version := version_of(name))}
    late = (
        f"; {CUPY[1]} is newer than the driver: {install_command()} in its place"
        if driver and driver < 13000 and CUPY[1] in installed
        else ""
    )
    yield "cupy", f"{', '.join(map(' '.join, installed.items()))}{late}" if installed else missing
    yield "nvrtc", compiler(driver) or missing
    yield from devices()


def compiler(driver: int | None) -> str:
    """The version of NVRTC, with a note if the driver may be too old for it; empty if it does not load."""
    from odesim.base.device import install_command
    from odesim.targets.nvrtc import compiler_version, too_new

    try:
        version = compiler_version()
    except CodegenError:
        return ""
    words = ".".join(map(str, version))
    return (
        f"{words}, which is newer than the driver, so that kernels may not load: {install_command()}" if too_new(version, driver) else words
    )


def devices() -> Iterator[tuple[str, str]]:
    """(gpu K, name, architecture, memory) of all GPUs that cupy reaches, or the reason why there are none; empty without cupy."""
    from odesim.base.device import architecture

    try:
        import cupy

        runtime = cupy.cuda.runtime
        count = runtime.getDeviceCount()
    except ModuleNotFoundError:
        return
    except Exception as error:  # as many kinds as there are ways to install it
        yield "gpu", f"none that cupy reaches: {one_line(error)}"
        return
    if not count:
        yield "gpu", "none that cupy reaches: no device; CUDA_VISIBLE_DEVICES selects the devices"
    for k in range(count):
        try:
            about = runtime.getDeviceProperties(k)
            yield f"gpu {k}", f"{about['name'].decode()}, {architecture(k)}, {bytes_text(about['totalGlobalMem'])}"
        except Exception as error:
            yield f"gpu {k}", f"does not answer: {one_line(error)}"


def one_line(error: Exception) -> str:
    """The message of an error on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def processor() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


SHELLS = ("bash", "zsh", "fish")
NO_SPACE = "[[ $value == *= ]] && compopt -o nospace"  # of bash: a value follows


@click.command("completion", short_help="Print a script for shell completion.")
@click.argument("shell", type=OneOf("shell", *SHELLS), metavar="bash|zsh|fish")
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, models and files in your shell.

    \b
    bash:  eval "$(odesim completion bash)"                in ~/.bashrc
    zsh:   eval "$(odesim completion zsh)"                 in ~/.zshrc
    fish:  odesim completion fish > ~/.config/fish/completions/odesim.fish
    """
    from click.shell_completion import get_completion_class

    from odesim.cli.app import COMPLETE

    shell_class = get_completion_class(shell)
    assert shell_class is not None
    script = shell_class(ctx.find_root().command, {}, "odesim", COMPLETE)
    text = script.source_template % script.source_vars()  # source() would start bash to ask its version
    click.echo(text.replace("COMPREPLY+=($value)", f"COMPREPLY+=($value); {NO_SPACE}"))
