"""The last look at a new generation, as a reader would open it, before anybody is sent there."""

from pathlib import Path
from typing import Final

import numpy as np

from memory_tool.adapters.faiss_files import VECTORS, OpenedGeneration, check_file, open_generation
from memory_tool.adapters.faiss_generation import CACHE_BYTES, FaissGeneration, searchable
from memory_tool.adapters.faiss_vectors import decoded
from memory_tool.errors import Corrupt
from memory_tool.port_values import Pointer

_SELF_QUERIES: Final = 64
_FOUND_MIN: Final = 0.9
"""Of the rows of graphs that are asked for themselves: a graph with a recall of .98 fails seven of
64 once in 3,000 folds, a broken one finds next to nothing. Scanned rows have to be found."""

_ROUNDING: Final = 1e-3


def verify(root: Path, pointer: Pointer) -> None:
    """Open a generation from its files and ask it for some of its own vectors.

    Raises:
        Corrupt: A file is not as it was written, or the generation does not find what it holds.
    """
    opened = open_generation(root, pointer)
    check_file(opened.folder, opened.manifest, name=VECTORS)
    opened.vectors.verify()
    for block in opened.manifest.blocks:
        if block.dead != opened.table.dead[block.start : block.stop].sum():
            message = f"{opened.folder.name} has other dead rows than it says"
            raise Corrupt(message)
    _ask_for_itself(opened, searchable(opened, cache_bytes=CACHE_BYTES))


def _ask_for_itself(opened: OpenedGeneration, generation: FaissGeneration) -> None:
    alive = np.flatnonzero(~opened.table.dead)
    random = np.random.default_rng(opened.manifest.generation)
    asked = random.choice(alive, min(_SELF_QUERIES, len(alive)), replace=False)
    starts = [block.start for block in opened.manifest.blocks]
    lost = {True: 0, False: 0}
    walked = 0
    for row, vector in zip(asked, decoded(opened.vectors.take(asked)), strict=True):
        # Of blocks that begin at the same row, all but the last are empty.
        block = opened.manifest.blocks[int(np.searchsorted(starts, row, side="right")) - 1]
        best = generation.search(vector, [block.ns_id], depth=1)
        if not best or best[0].score < float(vector @ vector) - _ROUNDING:
            lost[block.graph is not None] += 1
        walked += block.graph is not None
    if lost[False] or lost[True] > (1 - _FOUND_MIN) * walked:
        message = f"{opened.folder.name} does not find {sum(lost.values())} of its own rows"
        raise Corrupt(message)
