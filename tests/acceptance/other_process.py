"""A memory in a process of its own, told what to do line by line; a test may kill it."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_manage.manager import MemoryManage
from memory_tool.errors import ThreefoldError

CHECKOUT = Path(__file__).resolve().parents[2]
WITHOUT_END = "add_without_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherProcess:
    """The other process, as the test sees it."""

    child: subprocess.Popen[str]

    def call(self, method: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401 - as JSON
        """What a method of the memory returns there; an error's name where it raises one."""
        self.tell(method, *arguments, **options)
        return self.hear()

    def tell(self, method: str, *arguments: object, **options: object) -> None:
        """Ask without waiting for the answer."""
        if self.child.stdin is None:
            message = "the process has no input"
            raise RuntimeError(message)
        self.child.stdin.write(json.dumps([method, arguments, options]) + "\n")
        self.child.stdin.flush()

    def hear(self) -> Any:  # noqa: ANN401 - as JSON
        """The next answer; ``None`` when the process is gone."""
        if self.child.stdout is None:
            message = "the process has no output"
            raise RuntimeError(message)
        line = self.child.stdout.readline()
        # A process that is killed may leave half a line.
        return json.loads(line) if line.endswith("\n") else None

    def kill(self) -> None:
        """SIGKILL: it has no time for a last word."""
        self.child.kill()
        self.child.wait()


@contextlib.contextmanager
def other_process(settings: Mapping[str, str]) -> Iterator[OtherProcess]:
    """A process that has opened a memory with these settings."""
    command = [sys.executable, "-m", "tests.acceptance.other_process", json.dumps(settings)]
    with subprocess.Popen(
        command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        process = OtherProcess(child=child)
        try:
            process.hear()
            yield process
        finally:
            if child.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    child.stdin.close()
            child.wait()


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _answer(memory: MemoryManage, line: str) -> object:
    method, arguments, options = json.loads(line)
    try:
        result = getattr(memory, method)(*arguments, **options)
    except ThreefoldError as error:
        return type(error).__name__
    return result.to_dict() if hasattr(result, "to_dict") else result


def _add_without_end(memory: MemoryManage, line: str) -> None:
    _, (text,), options = json.loads(line)
    number = 0
    while True:
        _say(memory.add(f"{text} {number}", **options).id)
        number += 1


def main() -> None:
    """Open the memory, say so, and answer until the input ends."""
    settings = json.loads(sys.argv[1])
    with MemoryManage.open(on_progress=lambda _line: None, **settings) as memory:
        _say("open")
        for line in sys.stdin:
            if json.loads(line)[0] == WITHOUT_END:
                _add_without_end(memory, line)
            _say(_answer(memory, line))


if __name__ == "__main__":
    main()
