"""``threefold backup``, ``restore``, ``export`` and ``import``, as a shell runs them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memory_manage.interfaces.cli import main
from tests.acceptance.opening import OwnStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a command ended with."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def command(
    own_store: OwnStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Finished]:
    """Runs a command on the store, in this process: a dozen starts would take a minute."""
    monkeypatch.setenv("THREEFOLD_EMBEDDER", "hashing")
    monkeypatch.setenv("THREEFOLD_DATA_DIR", str(own_store.data_dir()))
    monkeypatch.setenv("THREEFOLD_DATABASE_URL", own_store.database_url)

    def run(*arguments: str) -> Finished:
        status = main(arguments)
        printed = capsys.readouterr()
        return Finished(returncode=status, stdout=printed.out, stderr=printed.err)

    return run


def test_a_store_goes_through_a_shell(
    own_store: OwnStore, command: Callable[..., Finished]
) -> None:
    """Answers on standard output, statuses for scripts, problems on standard error."""
    folder, file = own_store.folder / "backup", own_store.folder / "export.jsonl.zst"
    source = own_store.folder / "in.jsonl"
    source.write_text('"tea is green"\n{"content": "tea is black", "tags": ["t"]}\nbad\n')
    taken = command("import", str(source), "--format", "json", "--user", "u", "--json")
    assert taken.returncode == 2, taken.stderr
    assert json.loads(taken.stdout) == {
        "added": 2,
        "updated": 0,
        "duplicate": 0,
        "skipped": 0,
        "failed": 1,
        "failures": [{"number": 3, "error": "no JSON: Expecting value: line 1 column 1 (char 0)"}],
    }
    assert "threefold: line 3: no JSON" in taken.stderr

    saved = command("backup", str(folder), "--with-indexes", "--json")
    assert saved.returncode == 0, saved.stderr
    assert json.loads(saved.stdout)["memories"] == 2
    again = command("backup", str(folder))
    assert again.returncode == 2
    assert "is there already" in again.stderr
    whole = command("restore", str(folder), "--verify-only")
    assert whole.stdout.startswith("whole: 2 memories, ")

    with own_store.open() as memory:
        memory.add("tea is white", user_id="u")
    refused = command("restore", str(folder), "--json")
    assert refused.returncode == 3
    assert json.loads(refused.stderr)["error"] == "WouldLose"
    restored = command("restore", str(folder), "--replace", "--json")
    assert json.loads(restored.stdout) == {"memories": 2, "lost": 1, "erased": 0}

    written = command("export", str(file), "--all")
    assert written.returncode == 0, written.stderr
    assert written.stdout.split() == ["memories", "2", "file", str(file)]
    printed = command("export", "-", "--user", "u")
    assert [json.loads(line).get("content") for line in printed.stdout.splitlines()] == [
        None,
        "tea is green",
        "tea is black",
        None,
    ]
    assert command("export", "-").returncode == 2
    assert command("export", "-", "--all", "--user", "u").returncode == 2
    back = command("import", str(file))
    assert back.returncode == 0, back.stderr
    assert "skipped    2" in back.stdout
    (folder / "tables" / "memory.tsv.zst").write_bytes(b"")
    assert command("restore", str(folder)).returncode == 5
    assert command("restore", str(Path("/nowhere"))).returncode == 1
