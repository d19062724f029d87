"""Memories stored while the embedder is down are searched by words at once, by meaning later."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from memory_manage.bootstrap import Parts
from memory_manage.manager import MemoryManage
from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.bootstrap import Given, open_tool
from memory_tool.errors import Unavailable
from memory_tool.index_jobs.backfill import Backfill
from memory_tool.model import Vector
from memory_tool.settings import load_settings

PATIENCE_SECONDS: Final = 60.0


class MoodyEmbedder(HashingEmbedder):
    """An embedder that can be down."""

    is_down = False

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """As its base, unless it is down."""
        if self.is_down:
            raise Unavailable(store="embedder")
        return super().embed_passages(texts)


def test_missing_vectors_are_made_up_for(tmp_path: Path) -> None:
    """The write is acknowledged without a vector, says so, and gets one when the model is back."""
    embedder = MoodyEmbedder()
    settings = load_settings({"data_dir": tmp_path / "data", "applying": False}, environment={})
    with open_tool(settings, Given(embedder=embedder)) as tool:
        mine = MemoryManage(Parts(tool=tool)).scoped(user_id="u")
        embedder.is_down = True
        written = mine.add("the blue kettle whistles")
        assert written.results[0].stores["vector"] == "none"
        assert [item.id for item in mine.search("kettle")] == [written.id]
        assert len(mine.search("kettle", mode="vector")) == 0

        gaps = tool.stores.gaps
        assert gaps is not None
        backfill = Backfill(gaps, tool.complete)
        assert backfill.run() == 0
        embedder.is_down = False
        # One that is down is asked again after a second or two, not with each call.
        done = 0
        end = time.monotonic() + 30
        while not done and time.monotonic() < end:
            time.sleep(0.2)
            done = backfill.run()
        assert done == 1
        assert gaps.without_vectors(10) == ()

        found = mine.search("kettle", mode="vector")
        assert [(item.id, item.version) for item in found] == [(written.id, 1)]
