"""Lines from chunks of bytes, wherever those were cut."""


def lines(chunks, encoding="utf-8"):
    """Each line without its end; the last one needs none. Raises UnicodeDecodeError."""
    rest = ""
    for chunk in chunks:
        rest += chunk.decode(encoding)
        *whole, rest = rest.split("\n")
        for line in whole:
            yield line.removesuffix("\r")
    if rest:
        yield rest.removesuffix("\r")
