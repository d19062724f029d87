"""What a generation says of itself: the one file that is read before all others."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final, TypeAlias

from memory_tool.errors import Corrupt
from memory_tool.model import EmbeddingSpace

FORMAT: Final = 2
"""Number of the layout of a generation's folder; another one is refused."""

_GraphText: TypeAlias = tuple[str, str, int, float]
_BlockText: TypeAlias = tuple[int, int, int, Sequence[int], _GraphText | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePrint:
    """What a file has to be: its length in bytes and its SHA-256 in hexadecimal digits."""

    length: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNote:
    """The graph or the codes of a block: its file, and what was chosen when it was written.

    Attributes:
        kind: What it is, by its name in ``faiss_codes``.
        width: How widely it is searched: candidates kept while walking a graph (ef), lists that
            are read (nprobe), or rows proposed for each wanted one.
        recall: Share of the ten nearest rows that were found so.
    """

    file: str
    kind: str
    width: int
    recall: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The rows of one namespace: a range of every file, made of runs sorted by id.

    Attributes:
        clock: The number up to which it holds the namespace.
        start: Its first row.
        dead: Rows of it that were replaced or deleted and still take their place.
        runs: Rows of each run. One, but for a block with a graph, to which folds append.
    """

    ns_id: int
    clock: int
    start: int
    dead: int = 0
    runs: tuple[int, ...] = ()
    graph: GraphNote | None = None

    @property
    def rows(self) -> int:
        """Rows of all runs, dead ones too."""
        return sum(self.runs)

    @property
    def stop(self) -> int:
        """The row behind its last one."""
        return self.start + self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A generation: whose vectors it holds, up to where, and what its files have to be.

    Attributes:
        generation: Its number; 0 is the empty one that has no folder.
        store: Identity of the store that it copies.
        space: The embedding space of the vectors; ``None`` only where there are none.
        mark: Tells its history from every other; ``None`` only for the empty one.
        blocks: In the order of ``ns_id``; also namespaces without rows, for their clocks.
        files: By name within the folder.
    """

    generation: int
    store: str
    space: EmbeddingSpace | None
    mark: str | None
    blocks: tuple[Block, ...]
    files: Mapping[str, FilePrint]

    @property
    def rows(self) -> int:
        """Rows of all blocks."""
        return self.blocks[-1].stop if self.blocks else 0

    @property
    def dimension(self) -> int:
        """Numbers of one vector; 0 while the space is unknown."""
        return self.space.dimension if self.space else 0

    @property
    def clocks(self) -> Mapping[int, int]:
        """The clock of every namespace."""
        return {block.ns_id: block.clock for block in self.blocks}

    def encoded(self) -> bytes:
        """JSON, with blocks as lists: there may be a hundred thousand."""
        content = {
            "format": FORMAT,
            "generation": self.generation,
            "store": self.store,
            "space": asdict(self.space) if self.space else None,
            "mark": self.mark,
            "rows": self.rows,
            "dimension": self.dimension,
            "blocks": [_block_text(block) for block in self.blocks],
            "files": {name: asdict(file) for name, file in self.files.items()},
        }
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def decoded(cls, raw: bytes) -> "Manifest":
        """What :meth:`encoded` wrote.

        Raises:
            Corrupt: It is no manifest, of another format, or contradicts itself.
        """
        try:
            content = json.loads(raw)
            if content["format"] != FORMAT:
                message = f"the generation has format {content['format']}, not {FORMAT}"
                raise Corrupt(message)
            manifest = cls(
                generation=content["generation"],
                store=content["store"],
                space=EmbeddingSpace(**content["space"]) if content["space"] else None,
                mark=content["mark"],
                blocks=_blocks(content["blocks"]),
                files={name: FilePrint(**file) for name, file in content["files"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"the manifest can't be understood: {error}"
            raise Corrupt(message) from error
        if (manifest.rows, manifest.dimension) != (content["rows"], content["dimension"]):
            message = "the manifest contradicts itself about its rows or its dimension"
            raise Corrupt(message)
        return manifest


NOTHING: Final = Manifest(generation=0, store="", space=None, mark=None, blocks=(), files={})
"""The generation before the first one."""


def _block_text(block: Block) -> _BlockText:
    graph = block.graph
    note = (graph.file, graph.kind, graph.width, graph.recall) if graph else None
    return block.ns_id, block.clock, block.dead, block.runs, note


def _blocks(texts: Sequence[_BlockText]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    start = 0
    for ns_id, clock, dead, runs, graph in texts:
        block = Block(ns_id=ns_id, clock=clock, start=start, dead=dead, runs=tuple(runs))
        if graph:
            file, kind, width, recall = graph
            note = GraphNote(file=file, kind=kind, width=width, recall=recall)
            block = replace(block, graph=note)
        blocks.append(block)
        start = block.stop
    return tuple(blocks)
