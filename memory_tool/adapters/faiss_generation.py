"""One immutable generation, as it is searched."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from memory_tool.adapters.faiss_codes import kind_named
from memory_tool.adapters.faiss_files import OpenedGeneration, check_file
from memory_tool.adapters.faiss_graph import Graph, read_graph
from memory_tool.adapters.faiss_manifest import Block, Manifest
from memory_tool.adapters.faiss_rows import Ids
from memory_tool.adapters.faiss_vectors import Rows, decoded, inner_products, steps
from memory_tool.model import MemoryId, Vector
from memory_tool.ports import VectorView
from memory_tool.query import Candidate
from memory_tool.unit_vectors import check_unit

SCAN_SHARE: Final = 50
"""A graph is walked for at most one row in 50. Beyond that scanning the block takes about twice as
long (20,000 rows of 384 numbers, depth 400: 2.8 against 1.3 ms), and misses nothing."""

_GATHER_SHARE: Final = 4
"""Above one row in four, scanning a cached block is cheaper than collecting single rows."""

CACHE_BYTES: Final = 64 << 20
"""Four namespaces of 10,000 rows of 384 numbers, the largest that are scanned."""

_Part: TypeAlias = tuple[Rows, Vector]
"""Rows of the generation with their scores."""


class BlockCache:
    """The most recently scanned blocks as floats, within a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: OrderedDict[int, Vector] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: int, make: Callable[[], Vector]) -> Vector:
        """The block ``key``, made if it isn't there. Two threads may make it at once."""
        with self._lock:
            held = self._held.get(key)
            if held is not None:
                self._held.move_to_end(key)
                return held
        made = make()
        with self._lock:
            if self._held.setdefault(key, made) is made:
                self._bytes += made.nbytes
            while self._bytes > self.limit:
                _, oldest = self._held.popitem(last=False)
                self._bytes -= oldest.nbytes
        return made


class FaissGeneration(VectorView):
    """See :class:`memory_tool.ports.VectorView`. Searching raises ``Corrupt`` on damaged rows."""

    def __init__(
        self, opened: OpenedGeneration, graphs: Mapping[int, Graph], *, cache: BlockCache
    ) -> None:
        """Search ``opened``; ``graphs`` has one for each block that notes one, by ``ns_id``."""
        self._opened = opened
        self._graphs = graphs
        self._cache = cache
        self._clocks = opened.manifest.clocks
        self._blocks = {block.ns_id: block for block in opened.manifest.blocks if block.rows}
        self._starts = np.array([block.start for block in self._blocks.values()], np.int64)
        self._ns_ids = np.array(list(self._blocks), np.int64)

    @property
    def manifest(self) -> Manifest:
        """What the generation says of itself."""
        return self._opened.manifest

    @property
    def remote(self) -> bool:
        """No."""
        return False

    @property
    def mark(self) -> str | None:
        """See :attr:`memory_tool.ports.VectorView.mark`."""
        return self.manifest.mark

    def clock(self, ns_id: int) -> int:
        """See :meth:`memory_tool.ports.VectorView.clock`."""
        return self._clocks.get(ns_id, 0)

    def search(
        self,
        vector: Vector,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None = None,
    ) -> tuple[Candidate, ...]:
        """See :meth:`memory_tool.ports.VectorView.search`."""
        query = self._query(vector)
        blocks = [self._blocks[ns_id] for ns_id in dict.fromkeys(ns_ids) if ns_id in self._blocks]
        if depth < 1:
            return ()
        if within is None:
            parts = [self._nearest(block, query, depth=depth) for block in blocks]
        else:
            ids, table = Ids.of(within), self._opened.table
            parts = [
                self._scored(block, query, rows=table.members(block, within, ids=ids))
                for block in blocks
            ]
        return self._best(parts, depth)

    def scores(self, vector: Vector, ids: Sequence[tuple[int, MemoryId]]) -> tuple[Candidate, ...]:
        """See :meth:`memory_tool.ports.VectorView.scores`; best first."""
        query = self._query(vector)
        wanted: dict[int, set[MemoryId]] = {}
        for ns_id, memory_id in ids:
            if ns_id in self._blocks:
                wanted.setdefault(ns_id, set()).add(memory_id)
        parts = []
        for ns_id, members in wanted.items():
            block = self._blocks[ns_id]
            rows, _ = self._opened.table.find(block, Ids.of(members))
            parts.append(self._scored(block, query, rows=rows))
        return self._best(parts, sum(len(rows) for rows, _ in parts))

    def graph_of(self, ns_id: int, file_sha256: str) -> Graph | None:
        """The graph of a namespace if its file has this hash: later generations may share it."""
        block = self._blocks.get(ns_id)
        if block is None or block.graph is None:
            return None
        same = self.manifest.files[block.graph.file].sha256 == file_sha256
        return self._graphs[ns_id] if same else None

    def verify_vectors(self) -> None:
        """Read every stored vector.

        Raises:
            Corrupt: One was changed since it was written.
        """
        self._opened.vectors.verify()

    def _query(self, vector: Vector) -> Vector:
        check_unit(vector, self.manifest.dimension or vector.size)
        return vector

    def _nearest(self, block: Block, query: Vector, *, depth: int) -> _Part:
        graph = self._graphs.get(block.ns_id)
        if graph is not None and depth * SCAN_SHARE <= block.rows:
            rows = block.start + graph.nearest(query, depth)
            return rows, self._rescored(rows, query)
        scores = self._scan(block, query)
        rows = _best_places(scores, depth + block.dead)
        if block.dead:
            rows = rows[~self._opened.table.dead[block.start + rows]]
        return block.start + rows, scores[rows]

    def _scored(self, block: Block, query: Vector, *, rows: Rows) -> _Part:
        if block.graph is None and len(rows) * _GATHER_SHARE > block.rows:
            return rows, self._scan(block, query)[rows - block.start]
        return rows, self._rescored(rows, query)

    def _scan(self, block: Block, query: Vector) -> Vector:
        """The inner product of every row of the block, dead ones too."""
        vectors = self._opened.vectors
        dimension = self.manifest.dimension
        if 4 * block.rows * dimension <= self._cache.limit and block.graph is None:
            floats = self._cache.get(
                block.ns_id, lambda: decoded(vectors.between(block.start, block.stop))
            )
            return inner_products(floats, query)
        pieces = steps(block.start, block.stop, dimension=dimension)
        return np.concatenate(
            [inner_products(decoded(vectors.between(*piece)), query) for piece in pieces]
        )

    def _rescored(self, rows: Rows, query: Vector) -> Vector:
        scores = np.empty(len(rows), np.float32)
        for first, last in steps(0, len(rows), dimension=self.manifest.dimension):
            floats = decoded(self._opened.vectors.take(rows[first:last]))
            scores[first:last] = inner_products(floats, query)
        return scores

    def _best(self, parts: Sequence[_Part], depth: int) -> tuple[Candidate, ...]:
        """The best of all parts, by score, then id, then ordinal."""
        if not parts:
            return ()
        rows = np.concatenate([rows for rows, _ in parts])
        scores = np.concatenate([scores for _, scores in parts])
        places = _best_places(scores, depth)
        rows, scores = rows[places], scores[places]
        table = self._opened.table
        ids, ordinals = table.ids.take(rows), table.ordinals[rows]
        order = np.lexsort((ordinals, ids.low, ids.high, -scores))[:depth]
        rows = rows[order]
        ns_ids = self._ns_ids[np.searchsorted(self._starts, rows, side="right") - 1]
        return tuple(
            map(
                Candidate,
                ns_ids.tolist(),
                ids.take(order).texts(),
                ordinals[order].tolist(),
                table.versions[rows].tolist(),
                scores[order].tolist(),
            )
        )


def _best_places(scores: Vector, count: int) -> Rows:
    """Where the ``count`` best scores are, and all that equal the last of them."""
    if count >= len(scores):
        return np.arange(len(scores))
    place = len(scores) - count
    return np.flatnonzero(scores >= np.partition(scores, place)[place])


def searchable(
    opened: OpenedGeneration, *, cache_bytes: int, previous: FaissGeneration | None = None
) -> FaissGeneration:
    """Read the graphs of an opened generation, but for those that ``previous`` has too.

    Raises:
        Corrupt: A graph is damaged.
    """
    manifest = opened.manifest
    graphs: dict[int, Graph] = {}
    for block in manifest.blocks:
        if block.graph is None:
            continue
        file, kind = block.graph.file, kind_named(block.graph.kind)
        shared = previous and previous.graph_of(block.ns_id, manifest.files[file].sha256)
        if shared:
            index = shared.index
        else:
            check_file(opened.folder, manifest, name=file)
            path = opened.folder / file
            index = read_graph(path, kind, rows=block.rows, dimension=manifest.dimension)
        dead = opened.table.dead[block.start : block.stop]
        alive = ~dead if block.dead else None
        graphs[block.ns_id] = Graph(index, kind, width=block.graph.width, alive=alive)
    return FaissGeneration(opened, graphs, cache=BlockCache(cache_bytes))
