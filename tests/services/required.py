"""Which services a run of the tests may not go without."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

REQUIRES: Final = "THREEFOLD_TEST_REQUIRES"
ELASTICSEARCH: Final = "THREEFOLD_TEST_ELASTICSEARCH"
ELASTICSEARCH_URL: Final = "THREEFOLD_TEST_ELASTICSEARCH_URL"
DATABASE_URL: Final = "THREEFOLD_TEST_DATABASE_URL"

_VARIABLES: Final = {
    "elasticsearch": (ELASTICSEARCH, ELASTICSEARCH_URL),
    "postgres": (DATABASE_URL,),
    "pgbouncer": (),
}


def lacking(environment: Mapping[str, str]) -> list[str]:
    """What the services that ``THREEFOLD_TEST_REQUIRES`` names still need, a sentence for each."""
    required = environment.get(REQUIRES, "").split()
    unknown = [
        f"{name} is none of: {', '.join(_VARIABLES)}" for name in required if name not in _VARIABLES
    ]
    unset = [
        f"{name} needs {variable}, which is not set"
        for name in required
        for variable in _VARIABLES.get(name, ())
        if not environment.get(variable)
    ]
    no_pooler = "pgbouncer" in required and pgbouncer(environment) is None
    return unknown + unset + (["pgbouncer is not installed"] if no_pooler else [])


def pgbouncer(environment: Mapping[str, str]) -> Path | None:
    """The pooler's program. Debian keeps it where only root's path leads."""
    path = shutil.which("pgbouncer", path=f"{environment.get('PATH', '')}:/usr/sbin")
    return Path(path) if path else None
