"""The command line, `odesim`: click and nothing else is imported before a command runs."""

from odesim.cli.app import cli


def main() -> None:
    """Runs the command in sys.argv and exits with its code: 0 done, 2 wrong request, 3 stopped early, 1 our bug."""
    cli.main(prog_name="odesim")


__all__ = ["cli", "main"]
