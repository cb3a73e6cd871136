"""`odesim completion`: a script with which a shell completes words of odesim."""

import click

from odesim.cli.options import OneOf

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

    found = get_completion_class(shell)
    assert found is not None
    script = found(ctx.find_root().command, {}, "odesim", COMPLETE)
    text = script.source_template % script.source_vars()  # source() would start bash to ask its version
    click.echo(text.replace("COMPREPLY+=($value)", f"COMPREPLY+=($value); {NO_SPACE}"))
