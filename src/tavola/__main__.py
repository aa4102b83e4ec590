"""`python -m tavola`: the command line."""

from tavola.cli import run

if __name__ == "__main__":
    run()
