"""Numbered writes of jobs: the way that every write goes, for whoever has no embedder."""

import uuid
from collections.abc import Sequence

from memory_tool.model import Memory, WriteResult
from memory_tool.port_values import ArchiveFile, Commit, Existing, WritePlan
from memory_tool.ports import RecordStore
from memory_tool.scope import Namespace
from memory_tool.text.extra import extra_tokens
from memory_tool.write_changes import Change
from memory_tool.write_plan import decide_duplicates, lookup_for, plan_changes


def commit_changes(
    store: RecordStore,
    namespace: Namespace,
    *,
    changes: Sequence[Change],
    archived: ArchiveFile | None = None,
) -> tuple[WriteResult, ...]:
    """Commit changes of one namespace; what each came to.

    A job that fails is tried again as a whole, so its writes have no key to be repeated under.

    Raises:
        Unavailable: The store can't be reached.
    """

    def plan(existing: Existing) -> WritePlan:
        return plan_changes(
            changes, existing, namespace=namespace, decide=decide_duplicates, extra=_extra
        )

    return store.commit(
        Commit(
            namespace=namespace,
            lookup=lookup_for(changes),
            plan=plan,
            idempotency_key=uuid.uuid4().hex,
            request_hash=b"-",
            archived=archived,
        )
    )


def _extra(memory: Memory) -> str:
    return extra_tokens(memory.tags, memory.source, metadata=memory.metadata)
