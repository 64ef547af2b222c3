"""`python -m ncuroof`."""

from ncuroof.cli import main

if __name__ == "__main__":
    main()
