"""What `odesim plot` is asked to show, as a Choice."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odesim.plot.choice import Choice


def read_choice(*, var: str | None, x: str | None, y: str | None, at: float | None, index: str | None, log: str | None) -> "Choice":
    """The Choice of these words. Raises ParamError."""
    from odesim.errors import ParamError
    from odesim.inputs.grammar import show_text
    from odesim.plot.choice import Choice

    names = tuple(name.strip() for name in var.split(",")) if var is not None else ()
    if index is not None and not re.fullmatch(r"\s*\d{1,9}\s*(,\s*\d{1,9}\s*)*", index, re.ASCII):
        raise ParamError(f"--index takes whole numbers from 0, as in 3 or 1,0, not {show_text(index)}")
    component = tuple(int(i) for i in index.split(",")) if index is not None else None
    choice = Choice(names, x and x.strip(), y and y.strip(), at, component, log)
    choice.check()
    return choice
