"""`python -m inscape` is the `inscape` command."""

from inscape.cli import main

if __name__ == "__main__":
    main()
