"""What a commit does, as pure functions: new memories, patches and deletions become row images.

The record store calls the plan under the namespace's lock; nothing here knows a database.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from memory_tool.errors import (
    DuplicateMemory,
    NotFound,
    ThreefoldError,
    VersionConflict,
    WriteConflict,
)
from memory_tool.model import (
    Chunk,
    MemoryId,
    NewMemory,
    OnDuplicate,
    Patch,
    State,
    Status,
    StoredRow,
    Tier,
    Verdict,
    WriteDecision,
    WriteResult,
)
from memory_tool.port_values import Existing, Loaded, Lookup, RowChange, WritePlan
from memory_tool.row_images import (
    is_expired,
    moved_row,
    new_row,
    patch_of,
    revised_row,
    tombstone,
)
from memory_tool.scope import Namespace
from memory_tool.write_changes import (
    Adopt,
    Change,
    Complete,
    Decide,
    Extra,
    Move,
    Put,
    Remove,
    Retire,
    Revise,
)

PENDING: Final[Mapping[str, str]] = {
    "postgres": "written",
    "vector": "pending",
    "keyword": "pending",
}
NO_VECTOR: Final[Mapping[str, str]] = {**PENDING, "vector": "none"}


def decide_duplicates(new: NewMemory, candidates: Sequence[StoredRow]) -> WriteDecision:
    """A key is an upsert; the same text is handled as ``new.on_duplicate`` says."""
    if new.key is not None:
        keyed = [row for row in candidates if row.memory.key == new.key]
        if keyed:
            return WriteDecision(verdict=Verdict.UPDATE, target=keyed[0].memory.id)
        return WriteDecision(verdict=Verdict.ADD)
    same = [row for row in candidates if row.dedup_hash is not None]
    if not same or new.on_duplicate is OnDuplicate.KEEP:
        return WriteDecision(verdict=Verdict.ADD)
    verdicts = {
        OnDuplicate.SKIP: Verdict.SKIP,
        OnDuplicate.UPDATE: Verdict.UPDATE,
        OnDuplicate.FAIL: Verdict.FAIL,
    }
    return WriteDecision(verdict=verdicts[new.on_duplicate], target=same[0].memory.id)


def lookup_for(changes: Sequence[Change]) -> Lookup:
    """The rows that a plan for these changes has to see."""
    puts = [change for change in changes if isinstance(change, Put)]
    revised = [change for change in changes if isinstance(change, Revise)]
    return Lookup(
        dedup_hashes=(
            *(put.dedup_hash for put in puts if put.dedup_hash is not None),
            *(change.content_hash for change in revised if change.content_hash is not None),
        ),
        keys=tuple(put.new.key for put in puts if put.new.key is not None),
        ids=tuple(
            change.memory_id
            for change in changes
            if isinstance(change, Adopt) or not isinstance(change, Put)
        ),
    )


def plan_changes(
    changes: Sequence[Change],
    existing: Existing,
    *,
    namespace: Namespace,
    decide: Decide,
    extra: Extra,
) -> WritePlan:
    """Turn changes into numbered row images. No two changes may touch the same row twice.

    A change that can't be done (another version, a duplicate to be refused, an unknown id) gives
    a failed result and leaves its neighbours alone.
    """
    draft = _Draft(existing=existing, namespace=namespace, decide=decide, extra=extra)
    results = [draft.apply(change) for change in changes]
    return WritePlan(changes=tuple(draft.planned), results=tuple(results))


class _Draft:
    """A plan in the making: the rows as they will be, and the numbers given out so far."""

    def __init__(
        self, *, existing: Existing, namespace: Namespace, decide: Decide, extra: Extra
    ) -> None:
        self.namespace = namespace
        self.planned: list[RowChange] = []
        self._existing = existing
        self._decide = decide
        self._extra = extra
        self._rows = {row.memory.id: row for row in existing.rows}

    def apply(self, change: Change) -> WriteResult:
        """Plan one change and say what becomes of it."""
        try:
            return self._planned(change)
        except ThreefoldError as error:
            return WriteResult(
                status=Status.FAILED,
                id=change.memory_id if not isinstance(change, Put) else None,
                error=f"{type(error).__name__}: {error}",
            )

    def _planned(self, change: Change) -> WriteResult:
        match change:
            case Put():
                return self._put(change)
            case Revise():
                return self._revise(change)
            case Complete():
                return self._complete(change)
            case Move():
                return self._move(change)
            case Retire():
                return self._expire(change)
            case Remove():
                return self._remove(change)

    @property
    def _next(self) -> int:
        return self._existing.nseq + len(self.planned) + 1

    def _record(self, change: RowChange) -> None:
        self.planned.append(change)
        self._rows[change.row.memory.id] = change.row

    def _candidates(self, put: Put) -> list[StoredRow]:
        found = [
            row
            for row in self._rows.values()
            if row.state is not State.DELETED
            and (
                (put.new.key is not None and row.memory.key == put.new.key)
                or (put.dedup_hash is not None and row.dedup_hash == put.dedup_hash)
            )
        ]
        now = self._existing.now
        for row in found:
            if is_expired(row.memory, now):
                # Its hash or key would stand in the way of the new row.
                self._retire(row, "expire")
        return [row for row in found if not is_expired(row.memory, now)]

    def _retire(self, row: StoredRow, action: str) -> None:
        image = tombstone(row, nseq=self._next, now=self._existing.now)
        self._record(RowChange(action=action, row=image, chunks=()))

    def _put(self, put: Put) -> WriteResult:
        row = self._rows.get(put.memory_id)
        if row is not None:
            return self._met(put, row)
        decision = self._decide(put.new, self._candidates(put))
        if decision.verdict is Verdict.ADD or decision.target is None:
            return self._add(put)
        row = self._rows[decision.target]
        if decision.verdict is Verdict.SKIP:
            return _unchanged(row)
        if decision.verdict is Verdict.FAIL:
            message = f"the same text is already stored as {row.memory.id}"
            raise DuplicateMemory(message)
        patch = patch_of(put, self._existing.now)
        return self._rewrite(row, patch, content_hash=put.content_hash, chunks=put.chunks)

    def _met(self, put: Put, row: StoredRow) -> WriteResult:
        """An adopted memory meets the one that has its id."""
        said = f"memory {row.memory.id}"
        if row.state is State.DELETED:
            message = f"{said} was deleted here"
            raise WriteConflict(message)
        new = new_row(put, self._existing, namespace=self.namespace, nseq=row.nseq)
        same = (new.content_hash, new.memory.version) == (row.content_hash, row.memory.version)
        if same:
            return WriteResult(
                status=Status.SKIPPED, id=row.memory.id, version=row.memory.version, stores=PENDING
            )
        if put.new.on_duplicate is not OnDuplicate.UPDATE:
            message = f"{said} is here in version {row.memory.version} and says something else"
            raise VersionConflict(message)
        patch = patch_of(put, self._existing.now)
        return self._rewrite(row, patch, content_hash=put.content_hash, chunks=put.chunks)

    def _add(self, put: Put) -> WriteResult:
        row = new_row(put, self._existing, namespace=self.namespace, nseq=self._next)
        attached = put.kept.attached if isinstance(put, Adopt) else None
        self._record(RowChange(action="add", row=row, chunks=put.chunks, attached=attached))
        return WriteResult(
            status=Status.ADDED,
            id=row.memory.id,
            version=row.memory.version,
            stores=_stores(put.chunks),
        )

    def _live(self, memory_id: MemoryId) -> StoredRow:
        row = self._rows.get(memory_id)
        gone = row is None or row.state is State.DELETED
        if row is None or gone or is_expired(row.memory, self._existing.now):
            raise NotFound.of(memory_id)
        return row

    def _revise(self, change: Revise) -> WriteResult:
        row = self._live(change.memory_id)
        expected = change.expected_version
        if expected is not None and expected != row.memory.version:
            message = f"memory {row.memory.id} has version {row.memory.version}, not {expected}"
            raise VersionConflict(message)
        return self._rewrite(
            row, change.patch, content_hash=change.content_hash, chunks=change.chunks
        )

    def _rewrite(
        self,
        row: StoredRow,
        patch: Patch,
        *,
        content_hash: bytes | None,
        chunks: tuple[Chunk, ...] | None,
    ) -> WriteResult:
        loaded = self._loaded(row)
        row = loaded.row if loaded else row
        image = revised_row(
            row,
            patch,
            nseq=self._next,
            now=self._existing.now,
            extra=self._extra,
        )
        if image is None:
            return _unchanged(row)
        if image.memory.content == row.memory.content:
            chunks = None
        elif content_hash is not None:
            image = self._with_new_text(image, content_hash, chunks=chunks or ())
        self._record(
            RowChange(action="update", row=image, chunks=chunks, previous=row, loaded=loaded)
        )
        return WriteResult(
            status=Status.UPDATED,
            id=image.memory.id,
            version=image.memory.version,
            stores=PENDING if chunks is None else _stores(chunks),
        )

    def _loaded(self, row: StoredRow) -> Loaded | None:
        """What the archive keeps of the row; ``None`` when it keeps nothing."""
        return None if row.archive is None else self._existing.whole(row)

    def _with_new_text(
        self, image: StoredRow, content_hash: bytes, *, chunks: tuple[Chunk, ...]
    ) -> StoredRow:
        unique = image.dedup_hash is not None
        twins = [
            row
            for row in self._rows.values()
            if unique
            and row.dedup_hash == content_hash
            and row.state is not State.DELETED
            and row.memory.id != image.memory.id
        ]
        for twin in twins:
            if is_expired(twin.memory, self._existing.now):
                self._retire(twin, "expire")
                image = dataclasses.replace(
                    image, nseq=self._next, vector_nseq=self._next, keyword_nseq=self._next
                )
            else:
                message = f"the same text is already stored as {twin.memory.id}"
                raise DuplicateMemory(message)
        return dataclasses.replace(
            image,
            content_hash=content_hash,
            dedup_hash=content_hash if unique else None,
            chunk_high=max(image.chunk_high, len(chunks)),
        )

    def _complete(self, change: Complete) -> WriteResult:
        row = self._live(change.memory_id)
        result = WriteResult(
            status=Status.UPDATED, id=row.memory.id, version=row.memory.version, stores=PENDING
        )
        if row.content_hash != change.content_hash or row.archive is not None:
            # It was changed since, and its new text was embedded then; or a summary stands for it.
            return dataclasses.replace(result, status=Status.DUPLICATE)
        image = dataclasses.replace(row, nseq=self._next, vector_nseq=self._next)
        self._record(RowChange(action="embed", row=image, chunks=change.chunks))
        return result

    def _move(self, change: Move) -> WriteResult:
        row = self._rows.get(change.memory_id)
        if row is None:
            raise NotFound.of(change.memory_id)
        if row.nseq != change.nseq or row.memory.tier is change.tier:
            # It was changed since, or moved by another process: the next look decides anew.
            return _unchanged(row)
        loaded = None if change.tier is Tier.COLD else self._loaded(row)
        image = moved_row(loaded.row if loaded else row, change, nseq=self._next)
        self._record(
            RowChange(action="tier", row=image, chunks=None, tokens=change.tokens, loaded=loaded)
        )
        return WriteResult(
            status=Status.UPDATED, id=row.memory.id, version=row.memory.version, stores=PENDING
        )

    def _expire(self, change: Retire) -> WriteResult:
        row = self._rows.get(change.memory_id)
        if row is None:
            raise NotFound.of(change.memory_id)
        if row.state is State.DELETED or not is_expired(row.memory, self._existing.now):
            return _unchanged(row)
        self._retire(row, "expire")
        return WriteResult(status=Status.DELETED, id=row.memory.id, version=row.memory.version)

    def _remove(self, change: Remove) -> WriteResult:
        row = self._rows.get(change.memory_id)
        if row is None:
            raise NotFound.of(change.memory_id)
        if row.state is State.DELETED:
            return WriteResult(
                status=Status.ALREADY_DELETED, id=row.memory.id, version=row.memory.version
            )
        self._retire(row, "delete")
        return WriteResult(status=Status.DELETED, id=row.memory.id, version=row.memory.version)


def _unchanged(row: StoredRow) -> WriteResult:
    return WriteResult(
        status=Status.DUPLICATE, id=row.memory.id, version=row.memory.version, stores=PENDING
    )


def _stores(chunks: Sequence[Chunk]) -> Mapping[str, str]:
    return NO_VECTOR if any(chunk.embedding is None for chunk in chunks) else PENDING
