"""`python -m scoresheet`, and the installed command."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:] in (["--help"], ["-h"]):
        from scoresheet.cli.verbs import help_text

        sys.stdout.write(f"{help_text()}\n")  # here, for importing the command line costs more than the whole answer
        return

    from scoresheet.cli.app import run

    raise SystemExit(run())


if __name__ == "__main__":
    main()
