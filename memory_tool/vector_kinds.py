"""The names of what a large block of vectors may get, as the setting ``vector_index`` gives them.

Small blocks are scanned exactly whatever is chosen. Every kind only proposes rows: the stored
vectors, mapped from disk, put them in order. Bytes are those in memory of each process, for a
vector of d numbers; a plain float vector has 4 d. Product quantisation takes 1,024 d more, once.

============  ===========  ======================================================================
name          bytes        what it is, and when to choose it
============  ===========  ======================================================================
auto          d + 272      hnsw; where that doesn't find enough, ivf. The default
hnsw          d + 272      as hnsw32,sq8
ivf           d + 8        as ivf,sq8
compressed    d / 8 + 8    rabitq; where that doesn't find enough, pq. Memory before speed
hnsw32,flat   4 d + 272    a graph over floats; never better than hnsw32,sq8, as those are rescored
hnsw32,fp16   2 d + 272    a graph over half floats; for numbers that eight bits can't tell apart
hnsw32,sq8    d + 272      a graph over bytes: fastest
ivf,sq8       d + 8        bytes in lists: built in a tenth of the time, found slower
pq            d / 4        product quantisation: 16 times less, slow to train and to scan
rabitq        d / 8 + 8    a bit for each number: 27 times less, hardly any training
============  ===========  ======================================================================
"""

from typing import Final

from memory_tool.errors import SettingsError

VECTOR_INDEXES: Final = {
    "auto": ("hnsw32,sq8", "ivf,sq8"),
    "hnsw": ("hnsw32,sq8",),
    "ivf": ("ivf,sq8",),
    "compressed": ("rabitq", "pq"),
    "hnsw32,flat": ("hnsw32,flat",),
    "hnsw32,fp16": ("hnsw32,fp16",),
    "hnsw32,sq8": ("hnsw32,sq8",),
    "ivf,sq8": ("ivf,sq8",),
    "pq": ("pq",),
    "rabitq": ("rabitq",),
}
"""For each name the kinds that are tried, until one finds enough."""

CENTROIDS: Final = 256
"""Of each part of a vector, for product quantisation: a byte tells which is nearest."""

VECTORS_A_CENTROID: Final = 39
"""Fewest vectors to train each centroid with: FAISS warns below."""

PQ_LEAST: Final = CENTROIDS * VECTORS_A_CENTROID


def check_vector_index(name: str, *, above: int, backend: str) -> None:
    """Refuse a name that is none, and what can't be built.

    Args:
        name: The setting.
        above: Blocks with more rows get one.
        backend: Where vectors are searched.

    Raises:
        SettingsError: Says what would do.
    """
    if name not in VECTOR_INDEXES:
        message = f"vector_index is one of {'; '.join(VECTOR_INDEXES)}; not {name!r}"
        raise SettingsError(message)
    if backend != "faiss" and name != "auto":
        message = f"vector_index is for vectors in FAISS; vector_backend is {backend}"
        raise SettingsError(message)
    if name == "pq" and above < PQ_LEAST - 1:
        message = (
            f"vector_index pq is trained with {PQ_LEAST:,} vectors at least:"
            f" hnsw_min_rows is {PQ_LEAST - 1:,} or more, not {above:,}"
        )
        raise SettingsError(message)
