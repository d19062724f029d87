"""Memories whose time is over become numbered deletions. Nobody saw them since."""

from typing import Final

from memory_tool.index_jobs.numbered import commit_changes
from memory_tool.job_values import MayGoOn
from memory_tool.log import logger
from memory_tool.model import Status
from memory_tool.ports import RecordStore
from memory_tool.tier_ports import Tombstones
from memory_tool.write_changes import Retire

_BATCH: Final = 500


class Expiry:
    """Deletes what has expired, so that the indexes let go of it."""

    def __init__(self, tombstones: Tombstones, records: RecordStore) -> None:
        """Do nothing yet; both see all namespaces."""
        self._tombstones = tombstones
        self._records = records

    def run(self, may_go_on: MayGoOn) -> None:
        """Batch after batch, until nothing is left."""
        total = 0
        while may_go_on():
            expired = self._tombstones.expired(_BATCH)
            done = 0
            for namespace, ids in expired.items():
                changes = [Retire(memory_id=memory_id) for memory_id in ids]
                results = commit_changes(self._records, namespace, changes=changes)
                done += sum(result.status is Status.DELETED for result in results)
            total += done
            if not done:
                break
        if total:
            logger().info("expired", memories=total)
