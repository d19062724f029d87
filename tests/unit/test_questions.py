"""Zones of bare dates, and the filters of search options."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from memory_manage.questions import MachineZone, option_filter, zone_of
from memory_tool.errors import InputError


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(("month", "hours"), [(1, 1), (7, 2)])
def test_the_machines_zone_knows_summer_time(month: int, hours: int) -> None:
    """A bare date of January must not begin at eleven in the evening because it is June now."""
    midnight = datetime(2025, month, 15, tzinfo=MachineZone())

    assert midnight.utcoffset() == timedelta(hours=hours)
    assert midnight.astimezone(UTC).hour == 24 - hours
    assert datetime(2025, month, 15, tzinfo=UTC).astimezone(MachineZone()).hour == hours


def test_a_named_zone_wins() -> None:
    """Over the setting, and that over the machine."""
    assert str(zone_of("Asia/Shanghai", "Europe/Berlin")) == "Asia/Shanghai"
    assert str(zone_of(None, "Europe/Berlin")) == "Europe/Berlin"


def test_an_unknown_zone_is_refused() -> None:
    """Not read as UTC."""
    with pytest.raises(InputError, match="Mars"):
        zone_of("Mars/Olympus", "")


def test_no_options_are_no_condition() -> None:
    """An empty filter would cost a round trip."""
    assert option_filter({}, UTC) == option_filter({"since": None, "types": [], "tags": ()}, UTC)
