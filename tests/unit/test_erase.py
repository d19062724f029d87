"""The order in which an erasure is done, and what becomes of it when a step fails."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import pytest

from memory_tool.erase_ports import EraseLedger, EraseTruth, FileScan, Rewriting
from memory_tool.erase_values import CanaryScan, LedgerLine, Place
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.index_jobs.erase import Erase, ErasePlaces, replay
from memory_tool.model import MemoryId
from memory_tool.ports import Embedder
from memory_tool.space_ports import SideShelf, SideStructure, VectorSamples
from memory_tool.space_values import KnownSpace

DONE = Place(name="somewhere", state="done", said="")


class Story(EraseLedger, EraseTruth, Rewriting, FileScan, SideStructure):
    """Everything that erasing touches, which tells what was done to it, in order."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.noted: list[LedgerLine] = []
        self.done: set[str] = set()
        self.open: list[int] = []

    @property
    def name(self) -> str:
        """See ``SideStructure``."""
        return "side"

    def lines(self) -> tuple[LedgerLine, ...]:
        """See ``EraseLedger``."""
        return tuple(self.noted)

    def append(self, lines: Sequence[LedgerLine]) -> None:
        """See ``EraseLedger``."""
        self.told.append("ledger")
        self.noted += lines

    def carried_out(self) -> frozenset[str]:
        """See ``EraseTruth``."""
        return frozenset(self.done)

    def pieces(self, lines: Sequence[LedgerLine], limit: int) -> tuple[str, ...]:
        """See ``EraseTruth``."""
        return ("a piece",)

    def carry_out(self, lines: Sequence[LedgerLine]) -> Mapping[str, int]:
        """See ``EraseTruth``."""
        self.told.append("rows")
        self.done |= {line.name for line in lines}
        self.open += [line.ns_id for line in lines]
        return {"memories": len(lines)}

    def unfinished(self) -> tuple[int, ...]:
        """See ``EraseTruth``."""
        return tuple(self.open)

    def finish(self, until: datetime) -> None:
        """See ``EraseTruth``."""
        self.told.append("finished")
        self.open = []

    def said_elsewhere(self, piece: str) -> bool:
        """See ``EraseTruth``."""
        return False

    def rewrite(self, ns_ids: Sequence[int]) -> Place:
        """See ``Rewriting``."""
        self.told.append(f"tables {list(ns_ids)}")
        return DONE

    def scan(self, pieces: Sequence[str]) -> CanaryScan:
        """See ``FileScan``."""
        self.told.append("scan")
        return CanaryScan(pieces=len(pieces), files=1, bytes=1)

    def rebuild(
        self, space: KnownSpace, vectors: VectorSamples, *, embedder: Embedder, shelf: SideShelf
    ) -> None:
        """See ``SideStructure``."""

    def erase(self, targets: Sequence[tuple[int, MemoryId | None]]) -> None:
        """See ``SideStructure``."""
        self.told.append(f"side {list(targets)}")

    def step(self, name: str) -> Callable[[], Sequence[Place]]:
        """A place that tells when it is done."""

        def run() -> Sequence[Place]:
            self.told.append(name)
            return [DONE]

        return run


def erase_of(story: Story, *, indexes: Callable[[], Sequence[Place]] | None = None) -> Erase:
    """An eraser of the store ``s`` over the story."""
    return Erase(
        story,
        story,
        store="s",
        places=ErasePlaces(
            side=[story],
            archives=story.step("archives"),
            indexes=indexes or story.step("indexes"),
            words=lambda: story.told.append("words"),
            tables=story,
            server_log=lambda: story.step("server")()[0],
        ),
        files=story,
    )


def test_the_ledger_comes_first_and_the_search_of_files_last() -> None:
    """Cut off anywhere, what was ordered is known; and a proof is no proof before the end."""
    story = Story()
    receipt = erase_of(story).run([(7, None)])
    assert story.told == [
        "ledger",
        "rows",
        "side [(7, None)]",
        "archives",
        "indexes",
        "words",
        "tables [7]",
        "server",
        "scan",
        "finished",
    ]
    assert receipt.complete
    assert [place.state for place in receipt.places][-1] == "not ours"


def test_a_step_that_fails_keeps_no_other_from_being_done() -> None:
    """The order stays open, and is gone on with by the next one, whatever that names."""
    story = Story()

    def down() -> Sequence[Place]:
        message = "Elasticsearch is down"
        raise Unavailable(message)

    receipt = erase_of(story, indexes=down).run([(7, "m")])
    assert not receipt.complete
    assert story.told[-2:] == ["server", "scan"]
    eraser = erase_of(story)
    assert eraser.unfinished()
    assert eraser.run([]).complete
    assert "tables [7]" in story.told[-4:]
    assert not eraser.unfinished()


def test_lines_that_a_database_lacks_are_carried_out_once() -> None:
    """Those of this store alone."""
    story = Story()
    erase_of(story).run([(7, None)])
    story.done.clear()
    assert replay(story, story, store="another", mend=False) == 0
    assert replay(story, story, store="s", mend=False) == 1
    assert replay(story, story, store="s", mend=False) == 0


def test_a_ledger_that_lacks_lines_is_refused_unless_that_is_accepted() -> None:
    """Or a restore would bring back what was erased, and nobody would know."""
    story = Story()
    erase_of(story).run([(7, None)])
    story.noted.clear()
    with pytest.raises(Corrupt, match="lacks 1 lines"):
        replay(story, story, store="s", mend=False)
    assert replay(story, story, store="s", mend=True) == 0
