"""The table of `scripts/outages`: a run of the outages, with a line for each."""

from collections.abc import Sequence
from typing import Final

import pytest
from rich.console import Console
from rich.table import Table

from tests.fault.outage import COLUMNS

_WHAT: Final = ("tests/fault", "tests/contract/test_elasticsearch_with_password.py")


class Lines:
    """Gathers what each outage reports, and which went wrong or could not be caused."""

    def __init__(self) -> None:
        """Know of nothing yet."""
        self.lines: list[Sequence[object]] = []
        self.failed: list[str] = []
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the line of a test that ended."""
        if report.when == "call":
            told = [line for name, line in report.user_properties if name == "outage"]
            self.lines += [line for line in told if isinstance(line, tuple)]
        if report.failed:
            self.failed.append(report.nodeid)
        if report.skipped:
            self.skipped.append(f"{report.nodeid}: {_reason(report)}")


def run(arguments: Sequence[str]) -> int:
    """Cause the outages and print the table; the exit status."""
    lines = Lines()
    # Of driver and server there is much to be heard in an outage: what matters is in the table.
    quiet = ["-q", "--no-header", "--show-capture=no", "--tb=short", "-p", "no:cacheprovider"]
    status = pytest.main([*_WHAT, *quiet, *arguments], plugins=[lines])
    table = Table(*COLUMNS, show_lines=True)
    for line in lines.lines:
        table.add_row(*map(str, line))
    console = Console(width=None if Console().is_terminal else 150)
    console.print(table)
    for what, names in (("went wrong", lines.failed), ("not caused", lines.skipped)):
        for name in names:
            console.print(f"{what}: {name}", markup=False)
    return int(status)


def _reason(report: pytest.TestReport) -> str:
    told = report.longrepr
    return str(told[2] if isinstance(told, tuple) else told)
