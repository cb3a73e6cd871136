"""The command `python -m odesim`: the command line without installation."""

import sys

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        # the current folder, which Python puts first: a file there, such as random.py, replaces no module
        sys.path.append(sys.path.pop(0))
    from odesim.cli import main

    main()
