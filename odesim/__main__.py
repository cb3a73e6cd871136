"""The command `python -m odesim`: the command line without installation."""

import os
import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # the current folder, which Python puts first: no file there is a module, except in a checkout that is not installed
        here = sys.path.pop(0)
        if os.path.dirname(sys.modules["odesim"].__path__[0]) == here:
            sys.path.append(here)
    from odesim.cli import main

    main()
