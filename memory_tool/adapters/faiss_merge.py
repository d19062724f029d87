"""Which rows the next generation has: pure decisions over one block and what changed in it."""

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory_tool.adapters.faiss_manifest import Block
from memory_tool.adapters.faiss_rows import Ids, RowTable
from memory_tool.adapters.faiss_vectors import Rows

DEAD_SHARE_MAX: Final = 0.3
"""A block with more dead rows is built anew. They cost space rather than quality: 70 % of them
took .004 of recall and a fifth more time (100,000 rows)."""

RUNS_MAX: Final = 48
"""Two days of hourly folds. Finding an id means a search in every run."""

GROWTH_MAX: Final = 2
"""What was trained with a block is trained anew when the block has grown so many times."""

GraphWork: TypeAlias = Literal["none", "keep", "extend", "build"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRule:
    """Which blocks have a graph or codes, and of which kinds.

    Attributes:
        above: Blocks with more rows have one.
        kinds: One of another kind is built anew.
        trained: Those of ``kinds`` that age when the block grows.
    """

    above: int
    kinds: frozenset[str]
    trained: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a batch says of one namespace.

    Attributes:
        ids: Every memory that changed, whether it lives or not.
        versions: The version of each, shape (memories,).
        counts: How many vectors each has now, shape (memories,).
        memories: For each new vector the place of its memory in ``ids``, shape (vectors,).
        ordinals: For each new vector its ordinal, shape (vectors,).
    """

    ids: Ids
    versions: NDArray[np.int64]
    counts: Rows
    memories: Rows
    ordinals: NDArray[np.uint16]

    @classmethod
    def none(cls) -> "Changes":
        """Nothing changed."""
        nothing = np.empty(0, np.int64)
        return cls(
            ids=Ids.from_bytes(b""),
            versions=nothing,
            counts=nothing,
            memories=nothing,
            ordinals=np.empty(0, np.uint16),
        )

    def rows(self) -> RowTable:
        """The new vectors as rows."""
        return RowTable(
            ids=self.ids.take(self.memories),
            ordinals=self.ordinals,
            versions=self.versions[self.memories],
            dead=np.zeros(len(self.memories), np.bool_),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlan:
    """The rows of a block of the next generation, and what becomes of its graph.

    Attributes:
        block: Its runs, as if it began where it did; with the graph of the base if that is kept or
            extended.
        origins: Where each row comes from: a row of the base, or ``~n`` for the n-th new vector.
        table: The columns of those rows, with the dead ones flagged.
    """

    block: Block
    origins: Rows
    table: RowTable
    work: GraphWork


def plan_block(base: RowTable, block: Block, *, changes: Changes, rule: GraphRule) -> BlockPlan:
    """Merge ``changes`` into ``block``, whose rows are those of ``base``.

    A memory whose version and vectors are there already is left alone: its change is of the kind
    that no vector shows.

    Args:
        base: All rows of the base.
        block: A block of the base, or an empty one; its clock is the new one.
        changes: May be empty.
        rule: Which blocks get a graph.
    """
    found, places = base.find(block, changes.ids)
    same = _unchanged(base.versions[found], places, changes=changes)
    old = np.arange(block.start, block.stop)
    new = ~np.flatnonzero(~same[changes.memories])
    rows = RowTable.joined([base.take(old), changes.rows().take(~new)])
    origins = np.concatenate((old, new))
    rows.dead[found[~same[places]] - block.start] = True
    living = len(origins) - int(rows.dead.sum())
    if rule.above < living and _worth_keeping(block, rows, added=len(new), rule=rule):
        added = np.arange(len(old), len(origins))
        order = np.concatenate((np.arange(len(old)), added[rows.take(added).order()]))
        merged = replace(block, runs=(*block.runs, len(new)) if len(new) else block.runs)
        work: GraphWork = "extend" if len(new) else "keep"
    else:
        kept = np.flatnonzero(~rows.dead)
        order = kept[rows.take(kept).order()]
        merged = replace(block, runs=(living,) if living else (), graph=None)
        work = "build" if living > max(rule.above, 1) else "none"
    table = rows.take(order)
    merged = replace(merged, dead=int(table.dead.sum()))
    return BlockPlan(block=merged, origins=origins[order], table=table, work=work)


def _unchanged(versions: NDArray[np.int64], places: Rows, *, changes: Changes) -> NDArray[np.bool_]:
    """For each memory of ``changes`` whether the base has all its vectors, in its version."""
    current = places[versions == changes.versions[places]]
    held = np.bincount(current, minlength=len(changes.ids))
    unchanged: NDArray[np.bool_] = (held == changes.counts) & (changes.counts > 0)
    return unchanged


def _worth_keeping(block: Block, rows: RowTable, *, added: int, rule: GraphRule) -> bool:
    if block.graph is None or block.graph.kind not in rule.kinds:
        return False
    # It was built with the first run.
    aged = block.graph.kind in rule.trained and len(rows.dead) > GROWTH_MAX * block.runs[0]
    few_dead = int(rows.dead.sum()) <= DEAD_SHARE_MAX * len(rows.dead)
    return not aged and few_dead and len(block.runs) + (added > 0) <= RUNS_MAX
