"""`python -m reactor_memory`: the command line."""

from reactor_memory.cli import main

if __name__ == "__main__":
    main()
