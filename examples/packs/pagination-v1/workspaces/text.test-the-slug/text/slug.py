"""Names for URLs."""

import re
import unicodedata


def slug(title, longest=40):
    """Lower-case ASCII letters, digits and single hyphens; never one at an end, never longer than `longest`."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:longest].rstrip("-")
