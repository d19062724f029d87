"""Units, timers, the crontab and the scripts: what runs on a host without containers."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.integration.deploy_files import DEPLOY, TEXTS, checked

UNITS: Final = sorted((DEPLOY / "systemd").glob("*.service")) + sorted(
    (DEPLOY / "systemd").glob("*.timer")
)
SCRIPTS: Final = sorted(name for name, text in TEXTS.items() if text.startswith("#!"))
PROGRAM: Final = TEXTS["systemd/threefold-worker.service"].partition("ExecStart=")[2].split()[0]
"""Where the units expect the command."""

FIELDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""The least and the largest value of minute, hour, day, month and weekday."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="no systemd-analyze here"
)


@needs_systemd
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    """It ignores what it doesn't know, so a misspelt protection protects nothing."""
    program = tmp_path / "threefold"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    names = []
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        text = text.replace(PROGRAM, str(program))
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
        names.append(tmp_path / unit.name.replace("@.service", "@full.service"))

    said = checked("systemd-analyze", "verify", "--man=no", *names)

    assert len(names) == 5
    assert [line for line in said.splitlines() if str(tmp_path) in line] == []


@needs_systemd
def test_the_timers_come_when_they_should() -> None:
    """Each hour and each day; a calendar that can't be read never comes."""
    for name, times in (("incremental", 24), ("full", 1)):
        text = TEXTS[f"systemd/threefold-rebuild@{name}.timer"]
        calendar = re.search(r"^OnCalendar=(.+)$", text, re.MULTILINE)
        assert calendar is not None
        said = checked(
            "systemd-analyze",
            "calendar",
            "--base-time=2026-03-01 00:00:00 UTC",
            "--iterations=25",
            calendar[1],
        )
        assert len(re.findall(r"2026-03-01 \d\d:\d\d:\d\d UTC", said)) >= times
        assert len(re.findall(r"2026-03-01 \d\d:\d\d:\d\d UTC$", said, re.MULTILINE)) >= times


def test_the_units_share_one_cage() -> None:
    """Who hardens one of the three and forgets the others is to hear of it."""
    texts = [TEXTS[f"systemd/{unit.name}"] for unit in UNITS if unit.suffix == ".service"]
    cages = [text.partition("User=")[2].partition("\n\n")[0].split() for text in texts]

    assert len(cages) == 3
    assert all(cage == cages[0] for cage in cages)
    assert {"NoNewPrivileges=yes", "ProtectSystem=strict"} <= set(cages[0])


def test_every_line_of_the_crontab_can_be_read() -> None:
    """A file with a wrong line is dropped by cron, and nobody is told."""
    text = TEXTS["crontab"]
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    jobs = [line for line in lines if not re.fullmatch(r"[A-Z_]+=\S+", line)]

    assert text.endswith("\n")
    assert len(jobs) == 2
    for job in jobs:
        *times, user, command = job.split(maxsplit=6)
        assert user == "threefold"
        assert command.startswith(f"{PROGRAM} ")
        for value, (least, largest) in zip(times, FIELDS, strict=True):
            assert value == "*" or least <= int(value) <= largest


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_can_be_parsed_and_run(name: str) -> None:
    """By the shell that its first line names."""
    shell = TEXTS[name].partition("\n")[0].split("/")[-1].split()[-1]

    checked(shell, "-n", DEPLOY / name)

    assert shell in {"bash", "sh"}
    assert os.access(DEPLOY / name, os.X_OK)


def test_all_scripts_are_known() -> None:
    """And the test above sees them."""
    assert SCRIPTS == [
        "elasticsearch/init.sh",
        "offer_periods",
        "postgres/init.sh",
        "tls/make_certificates",
    ]


@pytest.mark.parametrize("name", ["postgres/init.sh", "elasticsearch/init.sh"])
def test_a_script_without_its_secrets_says_which(name: str) -> None:
    """And does nothing: an empty password would be one that everybody knows."""
    done = subprocess.run(
        [DEPLOY / name],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert re.search(r"(OWNER_PASSWORD|ELASTICSEARCH_URL): \w+", done.stderr)


def test_good_certificates_stay_and_others_are_made_anew(tmp_path: Path) -> None:
    """Compose runs the script at each start; a new authority each time would cut clients off."""
    script, folder = DEPLOY / "tls" / "make_certificates", tmp_path / "tls"
    checked(script, folder, "db")
    first = (folder / "ca.crt").read_bytes()

    checked(script, folder, "db")
    assert (folder / "ca.crt").read_bytes() == first

    checked(script, folder, "db", "search")
    assert (folder / "ca.crt").read_bytes() != first
    for host in ("db", "search"):
        checked("openssl", "verify", "-CAfile", folder / "ca.crt", folder / f"{host}.crt")
        assert (folder / f"{host}.key").stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "ca.crt",
        "db.crt",
        "db.key",
        "search.crt",
        "search.key",
    ]
