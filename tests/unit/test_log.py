"""Events as JSON, for those who ask; silence for those who don't."""

import json
import subprocess
import sys

SCRIPT = """
from memory_tool.log import {start}, logger
{start}()
logger().warning("opened", where="张先生")
"""


def stderr_of(start: str) -> str:
    """What a process that starts logging so writes to standard error."""
    command = [sys.executable, "-c", SCRIPT.format(start=start)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")
    return done.stderr


def test_an_event_is_one_json_object_a_line() -> None:
    """Chinese stays readable."""
    (line,) = stderr_of("log_as_json").splitlines()

    assert json.loads(line) | {"timestamp": ""} == {
        "event": "opened",
        "level": "warning",
        "timestamp": "",
        "where": "张先生",
    }
    assert "张先生" in line


def test_a_library_prints_nothing_unasked() -> None:
    """Warnings too belong to whoever sets up logging."""
    assert stderr_of("stay_quiet_by_default") == ""
