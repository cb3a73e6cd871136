"""`odesim explore`: a model with sliders in the browser."""

from typing import Any

import click

from odesim.base.backends import RUN
from odesim.base.errors import ParamError, StoreError
from odesim.cli.options import Count, ModelKind, options
from odesim.cli.outcome import DONE
from odesim.cli.tables import echo


@click.command("explore", short_help="Change the numbers of a model by sliders, in the browser.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@options("params sizes initial span method step seed max_seconds", RUN, max_seconds={"help": "End after S seconds; default: at Ctrl-C."})
@click.option("--port", metavar="N", type=Count(0, 65535), default=0, help="Port of the page; default: a free one.")
@click.option("--no-browser", "no_browser", is_flag=True, help="Print the address and open no browser.")
def explore_command(model: str, port: int, no_browser: bool, max_seconds: float | None, **words: Any) -> int:
    """Show MODEL as a page with sliders for its parameters, sizes and start.

    The page stands on 127.0.0.1, for this machine alone, until Ctrl-C. --set,
    --init, --size and the others say where its sliders begin. It gives what it
    shows as a command, as Python and as a notebook.
    """
    from odesim.cli.arguments import named
    from odesim.explorer.controls import Controls, Explored
    from odesim.run.integrate import METHOD_NAMES, no_such_method

    texts: dict[str, Any] = {
        name: named(f"--{flag}", words[name]) for name, flag in (("params", "set"), ("initial", "init"), ("sizes", "size"))
    }
    more: dict[str, Any] = {name: "" if words[name] is None else str(words[name]) for name in ("span", "step", "seed")}
    files = frozenset(text for values in texts.values() for text in values.values() if text.startswith("@"))
    if words["method"] and words["method"] not in METHOD_NAMES:
        raise ParamError(no_such_method(words["method"]))
    begin = Controls(**texts, **more, method=words["method"] or "auto", files=files)
    explored = Explored(model)
    explored.numbers(begin)  # what is wrong is said here, before there is a page
    try:
        from odesim.explorer.server import serve
    except ModuleNotFoundError as error:
        raise StoreError(f"the explorer needs {error.name}: pip install 'odesim[explore]'") from None
    serve(
        explored,
        begin,
        port=port,
        browser=not no_browser,
        seconds=max_seconds,
        ready=lambda address: echo(f"{model}: {address} until Ctrl-C"),
    )
    return DONE
