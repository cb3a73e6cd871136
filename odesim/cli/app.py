"""The group of commands: each in its own module, imported when it is called; one exit for every error."""

import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from odesim.base.errors import CacheWarning, ClusterWarning, FitWarning, ModelWarning, ToleranceWarning, nearest
from odesim.cli.outcome import exit_code, open_streams, release, say

# command -> module that has it as `<command>_command`, in the order of the help page
COMMANDS = {
    "list": "odesim.cli.models",
    "show": "odesim.cli.models",
    "new": "odesim.cli.models",
    "integrate": "odesim.cli.run",
    "ensemble": "odesim.cli.run",
    "rest": "odesim.cli.dynamics",
    "branch": "odesim.cli.dynamics",
    "lyapunov": "odesim.cli.dynamics",
    "spectrum": "odesim.cli.dynamics",
    "fit": "odesim.cli.fit",
    "sensitivity": "odesim.cli.ranges",
    "screening": "odesim.cli.ranges",
    "explore": "odesim.explorer.command",
    "train": "odesim.lab.commands",
    "compare": "odesim.lab.commands",
    "status": "odesim.cli.stored",
    "resume": "odesim.cli.stored",
    "rerun": "odesim.cli.stored",
    "plot": "odesim.cli.stored",
    "export": "odesim.cli.stored",
    "figure": "odesim.cli.about",
    "verify": "odesim.lab.commands",
    "notebook": "odesim.cli.about",
    "cache": "odesim.cli.about",
    "doctor": "odesim.cli.about",
    "completion": "odesim.cli.about",
}
COMPLETE = "_ODESIM_COMPLETE"
EXIT_CODES = (
    "Exit codes: 0 done; 2 wrong request, nothing was written; 3 stopped early, or a result is not as recorded, what was computed is kept; "
    "1 a bug in odesim."
)


WORDS = dict.fromkeys(("run", "solve", "simulate", "evolve"), "integrate") | {"sweep": "ensemble", "scan": "ensemble", "describe": "show"}
"""What other programs call a command, of which none is spelled like it."""


class CommandGroup(click.Group):
    """The command `odesim`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return getattr(import_module(COMMANDS[cmd_name]), f"{cmd_name}_command")

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            meant = f"; did you mean {WORDS[name]!r}?" if name in WORDS else nearest(name, COMMANDS)
            raise click.UsageError(f"no command {name!r}; choose from {', '.join(COMMANDS)}{meant}", ctx)
        return super().resolve_command(ctx, args)

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Runs one command and exits with its code, whatever it raises."""
        prog_name = prog_name or "odesim"
        open_streams()
        if instruction := os.environ.get(COMPLETE):
            from click.shell_completion import shell_complete

            sys.exit(shell_complete(self, {}, prog_name, COMPLETE, instruction))
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # a terminal without Greek letters is no reason to fail
        words = list(sys.argv[1:] if args is None else args)
        warnings.showwarning = show_warning

        def run() -> int:
            with self.make_context(prog_name, [*words], obj=words) as ctx:  # parsing empties the list
                return int(self.invoke(ctx) or 0)

        sys.exit(release(exit_code(run)))


def show_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
    """Prints a warning of odesim as one sentence, others as Python does."""
    if issubclass(category, CacheWarning | ClusterWarning | FitWarning | ToleranceWarning):
        say(f"warning: {message}")
    elif issubclass(category, ModelWarning):
        say(f"warning: {filename}, line {lineno}: {message}")
    else:
        print(warnings.formatwarning(message, category, filename, lineno), end="", file=sys.stderr)


def show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Prints the version and ends the command."""
    if value and not ctx.resilient_parsing:
        from odesim.base.options import __version__

        click.echo(f"odesim {__version__}")
        ctx.exit()


@click.command(
    "odesim",
    cls=CommandGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog=EXIT_CODES,
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=show_version, help="Print the version.")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Training dynamics as differential equations: written as symbols, compiled, integrated, compared with real training.

    \b
    To begin:  odesim list
               odesim integrate joma.nonlinear --plot joma.png
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
