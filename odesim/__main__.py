"""The command `python -m odesim`: the command line without installation."""

from odesim.cli import main

if __name__ == "__main__":
    main()
