"""`python -m odesim`: the command line of a checkout that is not installed."""

from odesim.cli import main

if __name__ == "__main__":
    main()
