"""Tests that the gate has no time for: each proves more widely what a shorter one proves there."""

import os
from typing import Final

import pytest

LONG: Final = (
    "fault/test_elasticsearch_network.py::test_a_write_alias_that_was_removed_behind_our_back",
    "test_four_processes.py::test_each_of_four_sees_the_others_writes_at_once[by workers]",
    "test_servers.py::test_workers_of_two_hosts_share_the_indexes[elasticsearch]",
    "test_reembed.py::test_indexes_on_a_server_follow[elasticsearch]",
    "test_reembed.py::test_a_store_gets_another_model_and_gets_its_old_one_back[hashing:128]",
    "test_backup_spaces.py::",
    "test_moving_commands.py::",
    "test_backup.py::test_a_log_that_looked_before_looks_anew",
    "test_backup.py::test_a_backup_restores_into_another_store",
    "test_backup_damage.py::test_damage_is_named_and_changes_nothing[lengthen]",
    "test_backup_damage.py::test_damage_is_named_and_changes_nothing[lose]",
    "test_backup_damage.py::test_damage_is_named_and_changes_nothing[link_away]",
    "test_backup_damage.py::test_damage_is_named_and_changes_nothing[edit]",
    "test_backup_damage.py::test_an_index_on_a_server_notices_that_the_store_went_back",
    "test_check_command.py::test_a_repair_leaves_the_work_to_whoever_holds_the_indexes",
    "test_drift.py::test_a_check_beside_writers_raises_no_alarm",
    "test_faiss_codes.py::test_each_kind_is_searched_by_several_threads[hnsw32,flat]",
    "test_faiss_codes.py::test_each_kind_is_searched_by_several_threads[hnsw32,fp16]",
    "test_faiss_codes.py::test_each_kind_keeps_what_an_index_promises[hnsw32,flat]",
    "test_faiss_codes.py::test_each_kind_keeps_what_an_index_promises[hnsw32,fp16]",
    "test_renewals.py::test_killed_builds_go_on_until_they_are_read[server]",
    "test_renewals.py::test_a_roll_back_reads_the_generation_before[files-daily]",
    "test_renewals.py::test_there_is_no_way_back_to_what_lacks_a_purge[server]",
)
"""Parts of their names. Faults have a mark of their own: `scripts/outages` causes those."""


def leave_out_long(items: list[pytest.Item]) -> None:
    """Skip them, unless a variable asks for them, and say so."""
    if os.environ.get("THREEFOLD_TEST_LONG"):
        return
    skipped = pytest.mark.skip(reason="long: `scripts/check --long` runs it")
    for item in items:
        if any(name in item.nodeid for name in LONG):
            item.add_marker(skipped)
