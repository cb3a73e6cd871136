"""`odesim cache`: the size of the cache of compiled code, and its removal."""

import click

from odesim.cli.options import OneOf
from odesim.cli.tables import echo


@click.command("cache", short_help="Show or clear the cache of compiled code.")
@click.argument("action", required=False, type=OneOf("action", "clear"), metavar="[clear]")
def cache_command(action: str | None) -> None:
    """Show the folder of compiled code and its size; `clear` empties it.

    ODESIM_CACHE_DIR names another folder. Whatever is missing is compiled again when it is needed.
    """
    from odesim.cli.tables import bytes_text
    from odesim.targets.cache import cache_dir, cache_entries, cache_note, clear_cache

    found = cache_entries()
    folders = dict.fromkeys([cache_dir(), *(entry.path.parent for entry in found)])
    if action == "clear":
        echo(f"{bytes_text(clear_cache())} freed in {' and '.join(map(str, folders))}")
        return
    for folder in folders:
        here = [entry.size for entry in found if entry.path.parent == folder]
        echo(f"{folder}: {len(here)} module{'' if len(here) == 1 else 's'}, {bytes_text(sum(here))}")
    if note := cache_note():
        echo(note)
