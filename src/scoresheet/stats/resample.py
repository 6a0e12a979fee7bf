"""The task bootstrap `xof-cluster-boot/1`: whole numbers end to end, from a stream that any language can redo.

Replicate b draws index j as `(u_j · T) >> 32`, where u_j is the j-th little-endian 32-bit word of
`SHAKE128(prefix + LE64(b))`. Replicates are random access, and more of them keep the earlier ones. numpy makes it
faster where there is enough to do, and never different. Pure.
"""

import hashlib
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

ALGORITHM = "xof-cluster-boot/1"
RESAMPLES = 9999
_WORTH_NUMPY = 400_000
"""Draws from which importing numpy pays."""
_BLOCK = 1 << 17
"""Draws that numpy handles at once: its arrays stay in the processor's cache."""
_KEPT = 1 << 22
"""Draws that are kept for the next figure of the same pack: all figures of all its runs rest on the same ones."""


def prefix(seed: int, pack_sha256: str) -> bytes:
    """What every replicate's stream starts with. No agent, metric or host is in it: all share the same resamples."""
    return b"%s\0%d\0%s\0" % (ALGORITHM.encode(), seed, bytes.fromhex(pack_sha256))


def indices(start: bytes, replicate: int, clusters: int) -> tuple[int, ...]:
    """The clusters that one replicate draws, in order of drawing."""
    words = hashlib.shake_128(start + struct.pack("<Q", replicate)).digest(4 * clusters)
    return tuple([(word * clusters) >> 32 for word in struct.unpack(f"<{clusters}I", words)])


def sums(
    start: bytes, columns: Sequence[Sequence[int]], resamples: int = RESAMPLES, *, use_numpy: bool | None = None
) -> tuple[tuple[int, ...], ...]:
    """Per column, the sum over each replicate's drawn clusters; replicate b draws the same clusters in every column.

    `use_numpy` is for tests: by default numpy is used where it is installed and there is enough to do.
    """
    clusters = len(columns[0])
    if any(len(column) != clusters for column in columns):
        raise ValueError("columns of different length")
    small = all(max(map(abs, column), default=0) * clusters < 2**62 for column in columns)
    if use_numpy is None:
        use_numpy = small and _numpy_pays(clusters * resamples)
    if not use_numpy:
        found: list[list[int]] = [[] for _ in columns]
        for drawn in _drawn(start, clusters, resamples):
            for column, out in zip(columns, found, strict=True):
                out.append(sum(map(column.__getitem__, drawn)))
        return tuple(map(tuple, found))
    import numpy as np

    out_arrays = [np.empty(resamples, dtype=np.int64) for _ in columns]
    tables = [np.array(column, dtype=np.int64) for column in columns]
    for first, drawn_block in _known_blocks(start, clusters, resamples):
        for table, out_array in zip(tables, out_arrays, strict=True):
            out_array[first : first + len(drawn_block)] = table.take(drawn_block).sum(axis=1)
    return tuple(tuple(array.tolist()) for array in out_arrays)


def _drawn(start: bytes, clusters: int, resamples: int) -> Iterable[Sequence[int]]:
    """The clusters that each replicate draws."""
    if not _may_keep(clusters, resamples):
        return (indices(start, replicate, clusters) for replicate in range(resamples))
    kept = _kept(start, clusters, resamples)
    return (kept[first : first + clusters] for first in range(0, len(kept), clusters))


def _may_keep(clusters: int, resamples: int) -> bool:
    return clusters <= 1 << 8 and clusters * resamples <= _KEPT


@lru_cache(maxsize=4)
def _kept(start: bytes, clusters: int, resamples: int) -> bytes:
    """The same one after another, an index a byte."""
    if _numpy_pays(clusters * resamples):
        return b"".join(block.astype("u1").tobytes() for _, block in _blocks(start, clusters, resamples))
    return b"".join(bytes(indices(start, replicate, clusters)) for replicate in range(resamples))


@lru_cache(maxsize=64)
def stream_sha256(start: bytes, clusters: int, resamples: int = RESAMPLES) -> str:
    """The digest of all drawn indexes, each as one byte, or two or four (little-endian) when clusters need them."""
    code = "B" if clusters <= 1 << 8 else "H" if clusters <= 1 << 16 else "I"
    hashed = hashlib.sha256()
    if _numpy_pays(clusters * resamples):
        for _, drawn_block in _blocks(start, clusters, resamples):
            hashed.update(drawn_block.astype({"B": "u1", "H": "<u2", "I": "<u4"}[code]).tobytes())
    else:
        pack: Callable[..., bytes] = struct.Struct(f"<{clusters}{code}").pack
        for replicate in range(resamples):
            hashed.update(pack(*indices(start, replicate, clusters)))
    return hashed.hexdigest()


def _numpy_pays(draws: int) -> bool:
    """Whether numpy is there, and either imported already or worth the time that this takes."""
    return ("numpy" in sys.modules or draws >= _WORTH_NUMPY) and import_numpy()


def import_numpy() -> bool:
    """True where numpy is installed. From then on all figures are made by it: the same ones, sooner."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True


def _known_blocks(start: bytes, clusters: int, resamples: int) -> Iterator[tuple[int, "NDArray[Any]"]]:
    """(first replicate, drawn clusters: replicate × draw), from what is kept where it may be."""
    import numpy as np

    if not _may_keep(clusters, resamples):
        yield from _blocks(start, clusters, resamples)
        return
    drawn = np.frombuffer(_kept(start, clusters, resamples), dtype=np.uint8).reshape(resamples, clusters)
    size = max(1, _BLOCK // clusters)
    for first in range(0, resamples, size):
        yield first, drawn[first : first + size]


def _blocks(start: bytes, clusters: int, resamples: int) -> Iterator[tuple[int, "NDArray[numpy.int64]"]]:
    """(first replicate, drawn clusters: replicate × draw) for block after block."""
    import numpy as np

    size = max(1, _BLOCK // clusters)
    stream = hashlib.shake_128(start)
    length = 4 * clusters
    for first in range(0, resamples, size):
        words = []
        for replicate in range(first, min(first + size, resamples)):
            own = stream.copy()
            own.update(struct.pack("<Q", replicate))
            words.append(own.digest(length))
        drawn = np.frombuffer(b"".join(words), dtype="<u4").astype(np.uint64)
        drawn *= np.uint64(clusters)
        drawn >>= np.uint64(32)
        yield first, drawn.view(np.int64).reshape(len(words), clusters)
