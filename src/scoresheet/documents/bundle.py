"""`bundle.json`: what one bundle holds. Its sha256 names the bundle, and is what a signature signs.

Every member of it follows from the bundle's other files, so that no byte of it can be changed unseen.
"""

from typing import Annotated, Literal

from pydantic import Field

from scoresheet import canonical
from scoresheet.documents.model import Many, Sha256, ToolDocument

INDEX = "bundle.json"
SUMS = "SHA256SUMS"
"""Every other file of the bundle, in the order in which they lie there; `sha256sum -c` reads it."""

Size = Annotated[int, Field(ge=0)]


class BundleIndex(ToolDocument):
    """`bundle.json`."""

    rule = "bundle"
    format: Literal["scoresheet-bundle/1"] = "scoresheet-bundle/1"
    manifest_sha256: Sha256
    card_sha256: Sha256 | None
    rows_sha256: Sha256
    figures_sha256: Sha256
    draft: bool
    """True: the figures of this run are no score."""
    pack: Literal["included", "digest only"]
    agent: Literal["included", "digest only"]
    executable: Many[str] = ()
    """Files that are executable; all others are not."""
    files: Size
    """Lines of SHA256SUMS."""
    sums_sha256: Sha256
    sums_size: Size

    def text(self) -> bytes:
        """The file: canonical JSON, one line."""
        return canonical.line(self.model_dump(mode="json"))
