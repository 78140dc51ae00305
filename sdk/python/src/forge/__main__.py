"""`python -m forge` is the command `forge`."""

from .cli import main

if __name__ == "__main__":
    main()
