"""Words of the members of an ensemble: what differs between them, and which part of them is computed."""

import re
from collections.abc import Sequence

from odesim.base.errors import ParamError
from odesim.cli.options.run import once
from odesim.inputs.grammar import show_text


def named(option: str, texts: Sequence[str]) -> dict[str, str]:
    """{name: text} from words NAME=TEXT. Raises ParamError."""
    pairs = []
    for text in texts:
        name, equals, value = (piece.strip() for piece in text.partition("="))
        base, bracket, _ = name.partition("[")
        if equals and bracket and base.strip().isidentifier():
            raise ParamError(f"{option} takes whole arrays, not {name}: give each member its row, as in --vary '{base}=[[1, 2], [3, 4]]'")
        if not equals or not name.isidentifier():
            what = "VALUE" if option == "--vary" else "POINTS"
            raise ParamError(f"{option} takes NAME={what}, not {show_text(text)}")
        if not value:
            raise ParamError(f"{option} {name}: the value is empty")
        pairs.append((name, value))
    return once(option, pairs)


def read_shard(text: str) -> tuple[int, int]:
    """(i, n) from the word I/N. Raises ParamError unless 1 <= i <= n."""
    found = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", text, re.ASCII)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise ParamError(f"--shard takes I/N with 1 <= I <= N, as in 1/4, not {show_text(text)}")
    return int(found[1]), int(found[2])
