"""Lines from chunks of bytes, wherever those were cut."""

import codecs


def lines(chunks, encoding="utf-8"):
    """Each line without its end; the last one needs none. Raises UnicodeDecodeError."""
    decoder = codecs.getincrementaldecoder(encoding)()
    rest = ""
    for chunk in chunks:
        rest += decoder.decode(chunk)
        *whole, rest = rest.split("\n")
        for line in whole:
            yield line.removesuffix("\r")
    rest += decoder.decode(b"", final=True)
    if rest:
        yield rest.removesuffix("\r")
