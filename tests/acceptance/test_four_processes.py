"""P4: every process sees every earlier write of every other, on whichever host it runs."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

import pytest

from tests.acceptance.opening import OwnStore
from tests.acceptance.other_process import OtherProcess

FOLDERS: Final = ("one", "one", "two", "two")
ROUNDS: Final = 5
FACTS: Final = [f"an old fact, number {number}" for number in range(400)]


@pytest.fixture(params=["by themselves", "by workers"])
def processes(
    request: pytest.FixtureRequest, own_store: OwnStore
) -> Iterator[Sequence[OtherProcess]]:
    """Two processes on each of two data folders, whose indexes they or workers bring forward."""
    by_workers = request.param == "by workers"
    settings = {"applying": "no"} if by_workers else {}
    with contextlib.ExitStack() as opened:
        four = [opened.enter_context(own_store.other_process(name, **settings)) for name in FOLDERS]
        if by_workers:
            for name in sorted(set(FOLDERS)):
                opened.enter_context(own_store.worker(name))
        yield four


def check_seen(processes: Sequence[OtherProcess], expected: set[str]) -> None:
    """Each process finds exactly these letters, by their words and by their meaning."""
    for mode in ("keyword", "vector"):
        for process in processes:
            process.tell("search", "letter", user_id="u", mode=mode, threshold=0.0, limit=1000)
        for process in processes:
            answer = process.hear()
            assert answer["degraded"] == []
            found = {item["memory"] for item in answer["results"]}
            assert {text for text in found if "letter" in text} == expected


def test_each_of_four_sees_the_others_writes_at_once(processes: Sequence[OtherProcess]) -> None:
    """Adds, updates and deletions, while the indexes are brought forward under them."""
    processes[0].call("add_many", FACTS, user_id="u")
    letters: dict[str, str] = {}
    for number in range(ROUNDS):
        for place, process in enumerate(processes):
            text = f"a letter, the {number}th of process {place}"
            (added,) = process.call("add", text, user_id="u")["results"]
            letters[added["id"]] = text
            check_seen(processes, set(letters.values()))

            # Whose the oldest is: another process than the one that changes it, as a rule.
            changed = next(iter(letters))
            letters[changed] = f"a letter that process {place} rewrote, {number}"
            process.call("update", changed, content=letters[changed], user_id="u")
            check_seen(processes, set(letters.values()))

            if number % 2:
                gone = next(iter(letters))
                del letters[gone]
                process.call("delete", gone, user_id="u")
                check_seen(processes, set(letters.values()))
        processes[number % 4].call("apply_now")
    assert len(letters) > ROUNDS
