"""The erase ledger: lines that are written are read again, and nothing else is taken for one."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_tool.adapters.erase_ledger_file import EraseLedgerFile
from memory_tool.erase_values import LedgerLine
from memory_tool.errors import Corrupt, Unavailable
from tests.services.tmpfs import small_disk

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def line(name: str, *, memory_id: str | None = None) -> LedgerLine:
    """An order of the store ``s``."""
    return LedgerLine(name=name, store="s", ns_id=7, memory_id=memory_id, at=AT)


def test_lines_come_back_in_order_and_whole(tmp_path: Path) -> None:
    """A ledger outlives processes: another one reads what this one wrote."""
    path = tmp_path / "shared" / "ledger.jsonl"
    EraseLedgerFile(path).append([line("a"), line("b", memory_id="0" * 32)])
    EraseLedgerFile(path).append([line("c")])
    assert EraseLedgerFile(path).lines() == (line("a"), line("b", memory_id="0" * 32), line("c"))


def test_a_ledger_that_never_was_is_empty(tmp_path: Path) -> None:
    """A store that never erased has no file."""
    assert EraseLedgerFile(tmp_path / "none.jsonl").lines() == ()


@pytest.mark.parametrize("damage", ["half a li\n", '{"name": "a"}\n', "[]\n", '{"at": "today"}\n'])
def test_a_damaged_line_is_refused_by_number(tmp_path: Path, damage: str) -> None:
    """To skip it could leave somebody's memories in a restored database."""
    path = tmp_path / "ledger.jsonl"
    EraseLedgerFile(path).append([line("a")])
    with path.open("a", encoding="utf-8") as file:
        file.write(damage)
    with pytest.raises(Corrupt, match=r"line 2 of .*ledger.jsonl"):
        EraseLedgerFile(path).lines()


def test_a_line_cut_off_by_a_crash_was_never_acknowledged(tmp_path: Path) -> None:
    """Its end is written with it; the next order begins a line of its own."""
    path = tmp_path / "ledger.jsonl"
    EraseLedgerFile(path).append([line("a")])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"name": "half')
    assert EraseLedgerFile(path).lines() == (line("a"),)
    EraseLedgerFile(path).append([line("b")])
    assert EraseLedgerFile(path).lines() == (line("a"), line("b"))


def test_a_ledger_out_of_reach_is_told(tmp_path: Path) -> None:
    """Nobody may take it for an empty one."""
    with pytest.raises(Unavailable, match="can't be read"):
        EraseLedgerFile(tmp_path).lines()
    with pytest.raises(Unavailable, match="can't be written"):
        EraseLedgerFile(tmp_path).append([line("a")])


def test_a_full_disk_leaves_whole_lines() -> None:
    """Half a line would make the ledger unreadable for good."""
    with small_disk(1) as disk:
        ledger = EraseLedgerFile(disk / "ledger.jsonl")
        ledger.append([line("a")])
        with pytest.raises(Unavailable, match="No space left"):
            ledger.append([line(str(number)) for number in range(20_000)])
        assert ledger.lines() == (line("a"),)
