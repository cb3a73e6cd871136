"""Files that people name: none is read that has no end, or waits for a writer."""

import os
import stat

from odesim.base.errors import value_text


def device_sentence(path: str | os.PathLike[str]) -> str:
    """`'/dev/zero' is a device, not a file` where it is one, and so for a named pipe; else nothing.

    A pipe without a name, as `<(command)` of a shell, has a writer.
    """
    try:
        mode, named = os.stat(path).st_mode, os.path.exists(os.path.realpath(path))
    except (OSError, ValueError):  # what opens it says why it cannot
        return ""
    kind = "device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "pipe" if stat.S_ISFIFO(mode) and named else ""
    return f"{value_text(os.fspath(path))} is a {kind}, not a file" if kind else ""
