"""How long work is shown: lines for a log, nothing for a script."""

import time

import pytest

from memory_manage.interfaces.cli_progress import duration, progress, progress_line, shown


def test_a_log_gets_a_line_at_both_ends_and_few_between(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebuild of a million rows must not fill it."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress(1000, "vectors") as work:
        for _ in range(100):
            now[0] += 0.2
            work.advance(10)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert lines[0] == "vectors: 0 of 1,000"
    assert lines[1] == "vectors: 250 of 1,000, 50/s, 15 s left"
    assert lines[-1] == "vectors: 1,000 of 1,000 in 20 s, 50/s"
    assert len(lines) == 5


def test_work_that_goes_on_is_not_credited_with_what_was_done_before() -> None:
    """The estimate is made of what this process did."""
    line = progress_line("vectors", 900, total=1000, fresh=50, seconds=10.0)
    assert line == "vectors: 900 of 1,000, 5/s, 20 s left"


def test_several_pieces_of_work_have_lines_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two indexes are built in turn."""
    with shown() as display:
        display.at("words", 0, total=5)
        display.at("vectors", 0, total=5)
        display.at("words", 5, total=5)
    begun = [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert begun == ["words", "vectors", "words"]


def test_quiet_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the answer is all."""
    with progress(10, "vectors", quiet=True) as work:
        work.advance(10)
    assert capsys.readouterr() == ("", "")


def test_more_work_than_was_thought_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Others write meanwhile."""
    with progress(1, "rows") as work:
        work.advance(3)
    assert capsys.readouterr().err.splitlines()[-1].startswith("rows: 3 of 3")


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "0 s"), (59, "59 s"), (90, "2 min"), (5400, "1.5 h")]
)
def test_lengths_of_time_are_for_people(seconds: float, said: str) -> None:
    """Nobody divides by 3,600 in the head."""
    assert duration(seconds) == said
