"""`python -m afresh` is the command `afresh`."""

from afresh.cli import main

if __name__ == "__main__":
    main()
