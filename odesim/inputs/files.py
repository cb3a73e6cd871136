"""Files that people name: none is read that has no end."""

import os
import stat

from odesim.errors import value_text


def device_sentence(path: str | os.PathLike[str]) -> str:
    """`'/dev/zero' is a device, not a file` where it is one, else nothing."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # what opens it says why it cannot
        return ""
    return f"{value_text(os.fspath(path))} is a device, not a file" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else ""
