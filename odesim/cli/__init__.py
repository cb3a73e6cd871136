"""The command line, `odesim`: click and nothing else is imported before a command runs."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odesim.cli.app import cli


def main() -> None:
    """Runs the command in sys.argv and exits with its code: 0 done, 2 wrong request, 3 stopped early, 1 our bug."""
    try:
        from odesim.cli.app import cli

        cli.main(prog_name="odesim")
    except KeyboardInterrupt:  # while click is imported, or the output is closed
        print("odesim: interrupted", file=sys.stderr)
        sys.exit(3)


def __getattr__(name: str) -> Any:
    """The group of commands, imported when first used."""
    if name != "cli":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from odesim.cli.app import cli

    return cli


__all__ = ["cli", "main"]
