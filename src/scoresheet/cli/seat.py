"""The option `--seat`: who or what runs a pack, as receipts and reports print it."""

import click


def label(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """The label as given, one line that people can read. Raises `click.BadParameter`."""
    if value is not None and (not value.strip() or not value.isprintable() or len(value) > 128):
        what = f"{value[:128]!r} is no label: write one line of at most 128 characters, such as laptop-a"
        raise click.BadParameter(what)
    return value
