"""`python -m scoresheet`, and the installed command."""


def main() -> None:
    """Run the command line and exit with its code."""
    from scoresheet.cli.app import run

    raise SystemExit(run())


if __name__ == "__main__":
    main()
