"""The Link header of a page (RFC 8288)."""

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit


def at(url, number):
    """The URL of another page: only its `page` parameter differs."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=urlencode([("page", number)])))


def header(url, number, count):
    """Links to the first, previous, next and last page, as far as there are any."""
    links = []
    if number > 1:
        links += [(at(url, 1), "first"), (at(url, number - 1), "prev")]
    if number < count:
        links += [(at(url, number + 1), "next"), (at(url, count), "last")]
    return ", ".join(f'<{link}>; rel="{rel}"' for link, rel in links)
