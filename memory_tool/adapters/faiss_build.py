"""Writes the files of the next generation, from the last one and what changed since."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

import faiss
import numpy as np

from memory_tool.adapters.faiss_codes import IndexKind, kind_named
from memory_tool.adapters.faiss_codes_recall import Sample, measured_recall
from memory_tool.adapters.faiss_files import (
    CHECKS,
    DEAD,
    IDS,
    ORDINALS,
    VECTORS,
    VERSIONS,
    OpenedGeneration,
    check_file,
    create,
    file_print,
    link_file,
    write_file,
)
from memory_tool.adapters.faiss_graph import (
    GraphPolicy,
    build_graph,
    building_threads,
    extend_graph,
    read_graph,
    write_graph,
)
from memory_tool.adapters.faiss_manifest import Block, FilePrint, GraphNote, Manifest
from memory_tool.adapters.faiss_merge import Changes, GraphRule, GraphWork, plan_block
from memory_tool.adapters.faiss_rows import RowTable
from memory_tool.adapters.faiss_spool import Spool
from memory_tool.adapters.faiss_vectors import Halves, Rows, VectorFile, VectorWriter, steps
from memory_tool.port_values import ChangeBatch

_SPOOL: Final = "spool.f16"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """The rows of the new generation, on disk; graphs are still missing."""

    blocks: Sequence[Block]
    works: Sequence[GraphWork]
    table: RowTable
    vectors: VectorFile
    files: dict[str, FilePrint]


def write_generation(
    folder: Path,
    base: OpenedGeneration,
    *,
    batch: ChangeBatch,
    generation: int,
    policy: GraphPolicy,
) -> Manifest:
    """Fill an empty folder with all files of a generation but its manifest, which is returned.

    Raises:
        Corrupt: A file of the base is damaged.
        InvalidEmbedding: A vector of the batch can't be stored.
    """
    written = _write_rows(folder, base, batch=batch, rule=policy.rule)
    with building_threads(policy.threads):
        blocks, graphs = _write_graphs(folder, base, written=written, policy=policy)
    return Manifest(
        generation=generation,
        store=batch.store,
        space=batch.space,
        mark=batch.mark,
        blocks=blocks,
        files={**written.files, **graphs},
    )


def _write_rows(
    folder: Path, base: OpenedGeneration, *, batch: ChangeBatch, rule: GraphRule
) -> _Written:
    dimension = batch.space.dimension if batch.space else 0
    plans: list[tuple[Block, GraphWork]] = []
    tables: list[RowTable] = [RowTable.empty()]
    start = 0
    spool = Spool(folder / _SPOOL, dimension)
    with closing(spool), create(folder / VECTORS) as file:
        writer = VectorWriter(file, dimension)
        for block, changes in _changed_blocks(base.manifest, batch, spool=spool):
            plan = plan_block(base.table, block, changes=changes, rule=rule)
            for first, last in steps(0, len(plan.origins), dimension=dimension):
                writer.append(_collected(plan.origins[first:last], base=base, spool=spool))
            plans.append((replace(plan.block, start=start), plan.work))
            tables.append(plan.table)
            start += plan.block.rows
    table = RowTable.joined(tables)
    return _Written(
        blocks=[block for block, _ in plans],
        works=[work for _, work in plans],
        table=table,
        vectors=VectorFile(folder / VECTORS, rows=start, dimension=dimension, checks=writer.checks),
        files=_write_columns(folder, table, writer=writer),
    )


def _changed_blocks(
    manifest: Manifest, batch: ChangeBatch, *, spool: Spool
) -> Iterator[tuple[Block, Changes]]:
    """Every namespace of the base and the batch, in order, with its new clock."""
    held = {block.ns_id: block for block in manifest.blocks}
    groups = groupby(batch.rows, key=attrgetter("ns_id"))
    changed, rows = next(groups, (None, None))
    for ns_id in sorted(held.keys() | batch.clocks.keys()):
        block = held.get(ns_id) or Block(ns_id=ns_id, clock=0, start=0)
        block = replace(block, clock=batch.clocks.get(ns_id, block.clock))
        if ns_id == changed and rows is not None:
            yield block, spool.read(rows)
            changed, rows = next(groups, (None, None))
        else:
            yield block, Changes.none()
    if changed is not None:
        message = f"rows of namespace {changed} come out of order or without a clock"
        raise ValueError(message)


def _collected(origins: Rows, *, base: OpenedGeneration, spool: Spool) -> Halves:
    old = origins >= 0
    if old.all():
        return base.vectors.take(origins)
    new = spool.take(~origins[~old])
    collected: Halves = np.empty((len(origins), new.shape[1]), np.float16)
    collected[~old] = new
    if old.any():
        collected[old] = base.vectors.take(origins[old])
    return collected


def _write_columns(folder: Path, table: RowTable, *, writer: VectorWriter) -> dict[str, FilePrint]:
    contents = {
        IDS: table.ids.to_bytes(),
        ORDINALS: table.ordinals.astype("<u2").tobytes(),
        VERSIONS: table.versions.astype("<i8").tobytes(),
        DEAD: np.packbits(table.dead, bitorder="little").tobytes(),
        CHECKS: writer.checks.astype("<u4").tobytes(),
    }
    files = {name: write_file(folder / name, content) for name, content in contents.items()}
    return {VECTORS: writer.print, **files}


def _write_graphs(
    folder: Path, base: OpenedGeneration, *, written: _Written, policy: GraphPolicy
) -> tuple[tuple[Block, ...], dict[str, FilePrint]]:
    blocks: list[Block] = []
    files: dict[str, FilePrint] = {}
    for block, work in zip(written.blocks, written.works, strict=True):
        if work == "none":
            blocks.append(block)
            continue
        path = folder / f"graph-{len(files)}.faiss"
        if block.graph is not None:
            check_file(base.folder, base.manifest, name=block.graph.file)
        if work == "keep" and block.graph is not None:
            link_file(base.folder / block.graph.file, path)
            note = replace(block.graph, file=path.name)
        else:
            note = _write_graph(path, base, block=block, written=written, policy=policy)
        files[path.name] = file_print(path)
        blocks.append(replace(block, graph=note))
    return tuple(blocks), files


def _write_graph(
    path: Path, base: OpenedGeneration, *, block: Block, written: _Written, policy: GraphPolicy
) -> GraphNote:
    """Write the first of the kinds that finds enough, or the one that finds most."""
    halves = written.vectors.between(block.start, block.stop)
    sample = Sample.of(halves, dead=written.table.dead[block.start : block.stop])
    draft = path.with_suffix(".draft")
    best: GraphNote | None = None
    for kind, make in _attempts(base, block=block, halves=halves, policy=policy):
        create(draft).close()
        write_graph(make(), draft)
        # What is measured is what will be read.
        index = read_graph(draft, kind, rows=block.rows, dimension=halves.shape[1])
        width, recall = measured_recall(index, kind, sample=sample)
        if best is None or recall > best.recall:
            best = GraphNote(file=path.name, kind=kind.name, width=width, recall=recall)
            draft.replace(path)
        if recall >= kind.recall_wanted:
            break
    draft.unlink(missing_ok=True)
    if best is None:
        message = f"no kind of index can be built of {block.rows} rows"
        raise ValueError(message)
    return best


def _attempts(
    base: OpenedGeneration, *, block: Block, halves: Halves, policy: GraphPolicy
) -> Iterator[tuple[IndexKind, Callable[[], faiss.Index]]]:
    """What to try: the graph of the base, extended; then each kind, first the one that it was."""
    if block.graph is not None:
        kind = kind_named(block.graph.kind)
        yield kind, partial(_extended, base, block=block, halves=halves, policy=policy)
        if block.graph.recall < kind.recall_wanted:
            # The others were no better when this one was built.
            return
    else:
        kind = None
    former = {held.ns_id: held.graph.kind for held in base.manifest.blocks if held.graph}
    first = former.get(block.ns_id)
    for other in sorted(policy.kinds, key=lambda other: other.name != first):
        if other is not kind and other.least <= len(halves):
            yield other, partial(build_graph, halves, other, policy=policy)


def _extended(
    base: OpenedGeneration, *, block: Block, halves: Halves, policy: GraphPolicy
) -> faiss.Index:
    if block.graph is None:
        message = "there is no graph to extend"
        raise ValueError(message)
    added = block.runs[-1]
    path, kind = base.folder / block.graph.file, kind_named(block.graph.kind)
    index = read_graph(path, kind, rows=block.rows - added, dimension=halves.shape[1])
    extend_graph(index, halves[-added:], policy=policy)
    return index
