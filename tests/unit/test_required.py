"""Where services are required, a run without them must not look like a success."""

from pathlib import Path

import pytest

from tests.services.required import lacking


def test_nothing_is_required_by_default() -> None:
    """On a laptop the gate runs without servers, and says what it left out."""
    assert lacking({}) == []


@pytest.mark.parametrize(
    ("required", "variable"),
    [
        ("postgres", "THREEFOLD_TEST_DATABASE_URL"),
        ("elasticsearch", "THREEFOLD_TEST_ELASTICSEARCH_URL"),
        ("elasticsearch", "THREEFOLD_TEST_ELASTICSEARCH"),
    ],
)
def test_a_required_service_is_missed_by_its_variable(required: str, variable: str) -> None:
    """The reader learns which variable to set; an empty one is not set."""
    found = lacking({"THREEFOLD_TEST_REQUIRES": required, variable: ""})

    assert f"{required} needs {variable}, which is not set" in found


def test_what_is_there_is_not_missed(tmp_path: Path) -> None:
    """A run with everything in place goes on."""
    pooler = tmp_path / "pgbouncer"
    pooler.touch(mode=0o755)
    environment = {
        "THREEFOLD_TEST_REQUIRES": "elasticsearch postgres pgbouncer",
        "THREEFOLD_TEST_DATABASE_URL": "postgresql://x",
        "THREEFOLD_TEST_ELASTICSEARCH": "folder",
        "THREEFOLD_TEST_ELASTICSEARCH_URL": "http://x",
        "PATH": str(tmp_path),
    }

    assert lacking(environment) == []


def test_a_misspelt_service_is_told() -> None:
    """Else nothing would be required, in silence."""
    (message,) = lacking({"THREEFOLD_TEST_REQUIRES": "postgresql"})

    assert message.startswith("postgresql is none of: elasticsearch, postgres, pgbouncer")
