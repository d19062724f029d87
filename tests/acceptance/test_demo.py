"""What a new user does first: the demo, and then each command on what it stored."""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from memory_manage.interfaces.cli import main
from memory_tool.adapters.postgres_server import EmbeddedPostgres

FINDS: Final = (
    "安可宠物医院",
    "spare key",
    "warranty",
    "靠窗",
    "MV-20250322-8841",
    "86,400 yuan",
    "pure white",
    "moss green",
    "教训",
    "频闪测试",
)
"""A part of the first result of each of the demo's searches, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a command said, and its exit status."""

    status: int
    out: str
    err: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """Runs ``threefold`` on one data folder."""

    folder: Path

    def process(self, *arguments: str) -> Said:
        """A command in a process of its own, as a user starts it."""
        finished = subprocess.run(
            [sys.executable, "-m", "memory_manage.interfaces.cli", *self._placed(arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Said(status=finished.returncode, out=finished.stdout, err=finished.stderr)

    def run(self, *arguments: str) -> Said:
        """The same without a process, which is two seconds faster."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(self._placed(arguments))
        return Said(status=status, out=out.getvalue(), err=err.getvalue())

    def json(self, *arguments: str) -> Any:  # noqa: ANN401 - any JSON
        """The document that a command answers with ``--json``."""
        said = self.run(*arguments, "--json")
        assert said.status == 0, said.err
        return json.loads(said.out)

    def _placed(self, arguments: tuple[str, ...]) -> list[str]:
        return [*arguments, "--data-dir", str(self.folder)]


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    """An empty folder, its server kept running between the commands."""
    with tempfile.TemporaryDirectory(prefix="threefold-test-") as folder:
        # Under root the server's user has to pass through.
        Path(folder).chmod(0o711)
        store = Path(folder) / "store"
        with EmbeddedPostgres(store):
            yield Shell(folder=store)


@pytest.fixture(scope="module")
def first_run(shell: Shell) -> Any:  # noqa: ANN401 - any JSON
    """What the demo says in an empty folder."""
    said = shell.process("demo", "--json")
    assert said.status == 0, said.err
    return json.loads(said.out)


def test_the_demo_stores_its_story_once(shell: Shell, first_run: Any) -> None:  # noqa: ANN401
    """Whoever runs it twice must not find everything doubled; and is told where to go on."""
    assert first_run["stored"] == {"added": 101, "already_there": 0}
    said = shell.run("demo").out
    assert said.startswith("0 memories added, 101 were there already.\n")
    assert shell.json("stats")["memories"] == 101
    assert "   score 0." in said
    commands = [line for line in said.splitlines() if f"--data-dir {shell.folder}" in line]
    assert {line.split("threefold ")[1].split()[0] for line in commands} == {
        "search", "add", "list", "get", "delete", "stats", "doctor",
    }  # fmt: skip


def test_the_demo_finds_what_its_titles_promise(first_run: Any) -> None:  # noqa: ANN401
    """By meaning, across languages, by exact words, by time, by type and by filter."""
    firsts = [search["results"][0]["memory"] for search in first_run["searches"]]
    missed = [(part, first) for part, first in zip(FINDS, firsts, strict=True) if part not in first]
    assert missed == []


@pytest.mark.usefixtures("first_run")
def test_the_commands_work_on_what_the_demo_stored(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory is added from standard input, found, shown and deleted; then it is not found."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("自行车停在地下二层。"))
    added = shell.json("add", "-", "--user", "demo", "--tag", "杂事")
    memory_id = added["results"][0]["id"]
    found = shell.json("search", "自行车", "--user", "demo", "-n", "1", "--explain")
    assert found["results"][0]["id"] == memory_id
    assert found["results"][0]["explanation"]["arms"]["keyword"]["rank"] == 1
    assert shell.json("get", memory_id, "--scope", "user:demo")["tags"] == ["杂事"]
    assert shell.json("delete", memory_id, "--user", "demo")["status"] == "deleted"
    gone = shell.process("get", memory_id, "--user", "demo", "--json")
    assert gone.status == 1
    assert json.loads(gone.err)["error"] == "NotFound"


@pytest.mark.usefixtures("first_run")
def test_an_empty_id_is_no_wider_scope(shell: Shell) -> None:
    """In a script ``--user "$USER_ID"`` with nothing in the variable must not read everybody's."""
    assert shell.run("list", "--user", "", "--scope", "user:demo").status == 2
    assert shell.run("list", "--user", "", "--project", "lamp").status == 2


@pytest.mark.usefixtures("first_run")
def test_a_listing_goes_on_where_its_page_ended(shell: Shell) -> None:
    """Two pages over the three procedures miss none and repeat none."""
    options = ["list", "--user", "demo", "--type", "procedure", "-n", "2"]
    first = shell.json(*options)
    second = shell.json(*options, "--cursor", first["cursor"])
    ids = [item["id"] for item in first["results"] + second["results"]]
    assert len(ids) == len(set(ids)) == 3
    assert second["cursor"] is None


@pytest.mark.usefixtures("first_run")
def test_plain_output_is_one_line_for_each_memory(shell: Shell) -> None:
    """What goes into a pipe is cut by lines, and notes stay out of it."""
    said = shell.run("list", "--user", "demo", "--tag", "Halo 2", "-n", "3")
    lines = said.out.splitlines()
    assert len(lines) == 3
    assert all(len(line.split()[0]) == 32 for line in lines)
    assert "--cursor" in said.err


@pytest.mark.usefixtures("first_run")
def test_the_doctor_finds_nothing_wrong(shell: Shell) -> None:
    """After the demo everything works, so a complaint of the doctor would be a false one."""
    said = shell.json("doctor")
    assert said["ok"]
    assert {check["name"] for check in said["checks"]} >= {"records", "keyword index", "free disk"}
