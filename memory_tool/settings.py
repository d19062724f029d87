"""All settings as frozen values, and the only reader of the environment.

Settings come from arguments, then ``THREEFOLD_*`` variables, then a TOML file, then the defaults
below. A secret may also lie in a file of its own, which ``THREEFOLD_<SECRET>_FILE`` names.
"""

import dataclasses
import difflib
import os
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memory_tool.errors import SettingsError
from memory_tool.vector_kinds import check_vector_index

PREFIX: Final = "THREEFOLD_"

_FOREIGN: Final = ("TEST_", "EVALUATION_", "TORCH_INDEX")
"""Variables of the gate and the installer, which are no settings of the library."""

_SERVICE_LINKS: Final = ("_SERVICE_HOST", "_SERVICE_PORT", "_PORT")
"""Kubernetes injects ``THREEFOLD_SERVICE_HOST``, ``THREEFOLD_PORT_5432_TCP`` and their like into
every pod that runs beside a service of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting, with its default. Secrets are left out of ``repr``.

    Attributes:
        data_dir: Folder of the embedded stores and of the indexes.
        database_url: A PostgreSQL 15 or newer, as ``threefold_app``; empty means embedded.
        worker_database_url: The same database as ``threefold_worker``; default: the user replaced.
        owner_database_url: The same database as ``threefold_owner``, for migrations; default: the
            user replaced.
        migrate: Bring the schema up to date when the store is opened, as the owner; without it a
            process needs no owner's address, and another schema is an error.
        pooled: The database stands behind a transaction pooler: prepare no statements.
        elasticsearch_url: Addresses of an Elasticsearch's nodes, parted by commas; empty means the
            embedded Tantivy.
        elasticsearch_user: User of the Elasticsearch; empty means that it asks for none.
        elasticsearch_password: The user's password.
        elasticsearch_api_key: An API key instead of user and password.
        elasticsearch_ca: File of the certificate authority that signed the nodes' certificates.
        elasticsearch_prefix: How the names of our indices begin.
        elasticsearch_shards: Primary shards of a new index.
        elasticsearch_replicas: Copies of each shard. A cluster of one node can't hold any, which
            is said by its health and harms nothing else.
        elasticsearch_refresh_seconds: Longest time until what changed is in the index; searches
            see it at once anyway.
        elasticsearch_bm25: The knobs of BM25 for each field, as ``words:1.2:0.75``: field, k1, b.
            Asks for a rebuild of the keyword index.
        vector_backend: ``faiss``, in each process, or ``elasticsearch``, on its cluster.
        vector_index: What a large namespace gets in FAISS: ``auto``, ``hnsw``, ``ivf``,
            ``compressed`` or a kind; see :mod:`memory_tool.vector_kinds`.
        applying: This process brings indexes forward and does jobs. Processes beside a worker of
            the same data folder may leave it to that.
        lease_seconds: How long the work of a process that died waits for another one.
        embedder: Name of the embedding model, ``offline``, ``hashing`` or ``openai:<model>``;
            empty means the recorded one, else ``offline``. Leave it empty where a change of model
            (`threefold reembed`) shall be followed. ``hashing:256@b`` has 256 numbers and other
            directions.
        embedder_url: Base address of an OpenAI-compatible endpoint.
        embedder_key: Its key.
        tz: Zone of bare dates and time words; empty means the machine's.
        scope_requires: Ids that every call must name: ``user``, ``project``, ``agent``.
        chunk_tokens: Window of prose chunks, in tokens of the embedder.
        chunk_overlap: Tokens that neighbouring windows share.
        embed_batch: Texts embedded in one call of the model.
        embed_cache: Embeddings kept in memory.
        group_items: Items of one grouped commit.
        group_seconds: Longest wait of an asynchronous add for its group.
        retry_attempts: Tries of a write or read that meets a temporary failure.
        retry_seconds: Deadline of all tries together.
        arm_seconds: Deadline of one arm of a search.
        pool_size: Most connections to PostgreSQL of one process and role; the worker's role has 8
            at least, which its appliers need.
        overlay_rows: Most changed rows that a search fetches itself.
        daily_rebuild: Processes that apply also offer a full build of each index once a day, in
            which all that was deleted leaves the files. Searches and writes go on meanwhile.
        fold_rows: Changed rows after which the vector index is folded.
        fold_seconds: Longest time until it is folded.
        hnsw_min_rows: Rows of a namespace from which its vectors get a graph of their own, or
            codes.
        hnsw_ef_construction: Effort of building a graph.
        within_ids: Most ids that a filter hands to the arms as a set.
        hot_days: Days since a memory was made, changed or used until the keyword index lets go of
            it; its words are then looked for in PostgreSQL.
        warm_days: Days until its text goes to the archive and a summary stays.
        archive_dir: Folder of the archive, which every process of the store has to reach; empty
            means `archive` in the data folder, and with a database_url that nothing is archived:
            other hosts could not read it.
        purge_hours: Hours until a deleted memory's row is removed for good: longer than an index is
            kept to go back to.
        threshold: Least calibrated similarity of a hit that no keyword found.
        content_bytes: Longest text of a memory, in bytes of UTF-8.
        metadata_bytes: Largest metadata of a memory, as JSON.
        erase_ledger: File of the orders to erase, on storage that no restore of the database takes
            back; a relative name lies in ``data_dir``. Hosts have to share one.
        erase_ledger_lost: ``refuse`` to open a store whose ledger lacks lines, or ``accept`` it.
        http_host: Address that `threefold serve` listens at.
        http_port: Its port; 0 means any free one.
        http_keys: File of the API keys; without one the server serves this machine alone.
        http_body_bytes: Largest request.
    """

    data_dir: Path = Path("~/.threefold")
    database_url: str = dataclasses.field(default="", repr=False)
    worker_database_url: str = dataclasses.field(default="", repr=False)
    owner_database_url: str = dataclasses.field(default="", repr=False)
    migrate: bool = True
    pooled: bool = False
    elasticsearch_url: str = dataclasses.field(default="", repr=False)
    elasticsearch_user: str = ""
    elasticsearch_password: str = dataclasses.field(default="", repr=False)
    elasticsearch_api_key: str = dataclasses.field(default="", repr=False)
    elasticsearch_ca: str = ""
    elasticsearch_prefix: str = "threefold"
    elasticsearch_shards: int = 1
    elasticsearch_replicas: int = 1
    elasticsearch_refresh_seconds: float = 30.0
    elasticsearch_bm25: tuple[str, ...] = ()
    vector_backend: str = "faiss"
    vector_index: str = "auto"
    applying: bool = True
    lease_seconds: float = 30.0
    embedder: str = ""
    embedder_url: str = ""
    embedder_key: str = dataclasses.field(default="", repr=False)
    tz: str = ""
    scope_requires: tuple[str, ...] = ()
    chunk_tokens: int = 512
    chunk_overlap: int = 128
    embed_batch: int = 32
    embed_cache: int = 1000
    group_items: int = 50
    group_seconds: float = 0.2
    retry_attempts: int = 3
    retry_seconds: float = 10.0
    arm_seconds: float = 2.0
    pool_size: int = 8
    overlay_rows: int = 5000
    daily_rebuild: bool = True
    fold_rows: int = 5000
    fold_seconds: float = 3600.0
    hnsw_min_rows: int = 10_000
    hnsw_ef_construction: int = 200
    within_ids: int = 20_000
    hot_days: float = 7.0
    warm_days: float = 30.0
    archive_dir: str = ""
    purge_hours: float = 48.0
    threshold: float = 0.7
    content_bytes: int = 10_000_000
    metadata_bytes: int = 1_000_000
    erase_ledger: Path = Path("erase-ledger.jsonl")
    erase_ledger_lost: str = "refuse"
    http_host: str = "127.0.0.1"
    http_port: int = 8000
    http_keys: str = ""
    http_body_bytes: int = 20_000_000

    def __post_init__(self) -> None:
        """Refuse values that can't be."""
        object.__setattr__(self, "data_dir", self.data_dir.expanduser().absolute())
        ledger = self.data_dir / self.erase_ledger.expanduser()
        object.__setattr__(self, "erase_ledger", ledger)
        _check_positive(self)
        if self.chunk_overlap >= self.chunk_tokens:
            message = "chunk_overlap must be smaller than chunk_tokens"
            raise SettingsError(message)
        if self.warm_days < self.hot_days:
            message = "warm_days must not be smaller than hot_days: both count from the last use"
            raise SettingsError(message)
        _check_elasticsearch(self)
        check_vector_index(self.vector_index, above=self.hnsw_min_rows, backend=self.vector_backend)
        if self.http_port > _PORT_MAX:
            message = f"http_port is at most {_PORT_MAX}, not {self.http_port}"
            raise SettingsError(message)
        if not self.threshold <= 1:
            message = f"threshold lies between 0 and 1, not {self.threshold}"
            raise SettingsError(message)
        if self.erase_ledger_lost not in {"refuse", "accept"}:
            message = f"erase_ledger_lost is refuse or accept, not {self.erase_ledger_lost!r}"
            raise SettingsError(message)
        unknown = set(self.scope_requires) - {"user", "project", "agent"}
        if unknown:
            message = f"scope_requires knows user, project and agent, not {sorted(unknown)}"
            raise SettingsError(message)
        if self.tz:
            try:
                ZoneInfo(self.tz)
            except (ZoneInfoNotFoundError, ValueError) as error:
                message = f"tz: {self.tz!r} is no known time zone"
                raise SettingsError(message) from error

    @property
    def archives(self) -> bool:
        """Whether texts go to an archive at all."""
        return bool(self.archive_dir) or not self.database_url

    @property
    def archive_folder(self) -> Path:
        """Where the archive lies."""
        named = Path(self.archive_dir).expanduser() if self.archive_dir else None
        return named.absolute() if named else self.data_dir / "archive"


_PORT_MAX: Final = 65_535
"""The look-up of an address would take a larger one modulo 65,536."""

_PREFIX: Final = re.compile("[a-z0-9][a-z0-9_-]{0,62}")


def _check_elasticsearch(settings: Settings) -> None:
    if settings.vector_backend not in {"faiss", "elasticsearch"}:
        message = f"vector_backend is faiss or elasticsearch, not {settings.vector_backend!r}"
        raise SettingsError(message)
    if settings.vector_backend == "elasticsearch" and not settings.elasticsearch_url:
        message = "vector_backend elasticsearch needs elasticsearch_url, the address of a node"
        raise SettingsError(message)
    if settings.elasticsearch_bm25 and not settings.elasticsearch_url:
        message = "elasticsearch_bm25 needs elasticsearch_url: Tantivy's BM25 has no knobs"
        raise SettingsError(message)
    if not _PREFIX.fullmatch(settings.elasticsearch_prefix):
        message = (
            "elasticsearch_prefix is of small letters, digits, - and _, not"
            f" {settings.elasticsearch_prefix!r}"
        )
        raise SettingsError(message)


_MAY_BE_ZERO: Final = {
    "elasticsearch_replicas",
    "hnsw_min_rows",
    "embed_cache",
    "overlay_rows",
    "threshold",
    "chunk_overlap",
    "http_port",
}


def _check_positive(settings: Settings) -> None:
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if value < 0 or (value == 0 and field.name not in _MAY_BE_ZERO):
            message = f"{field.name} must be positive, not {value}"
            raise SettingsError(message)


def load_settings(
    overrides: Mapping[str, object] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Settings from arguments, the environment and a TOML file, in that order of precedence.

    Args:
        overrides: Values by name; ``None`` means not given.
        environment: The variables to read, those of the process by default.
        file: A TOML file; by default the one that ``THREEFOLD_CONFIG`` names, if any.

    Raises:
        SettingsError: A name is unknown (the message names the nearest one) or a value is wrong.
    """
    variables = os.environ if environment is None else environment
    named_file = variables.get(f"{PREFIX}CONFIG")
    path = file or (Path(named_file) if named_file else None)
    values = _from_file(path) if path else {}
    values |= _from_environment(variables)
    values |= {name: value for name, value in (overrides or {}).items() if value is not None}
    kinds = typing.get_type_hints(Settings)
    for name in values:
        if name not in kinds:
            raise SettingsError(_unknown(name, kinds))
    return Settings(
        **{name: _converted(name, value, kind=kinds[name]) for name, value in values.items()}
    )


def _from_file(path: Path) -> dict[str, object]:
    try:
        return dict(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        message = f"can't read the settings file {path}: {error.strerror}"
        raise SettingsError(message) from error
    except tomllib.TOMLDecodeError as error:
        message = f"{path} is no TOML: {error}"
        raise SettingsError(message) from error


def _from_environment(variables: Mapping[str, str]) -> dict[str, object]:
    names = {PREFIX + field.name.upper(): field.name for field in dataclasses.fields(Settings)}
    secrets = {f"{PREFIX}{name.upper()}_FILE": name for name in secret_names()}
    values: dict[str, object] = {}
    for variable, value in variables.items():
        if variable in names:
            values[names[variable]] = value
        elif variable in secrets:
            if variable.removesuffix("_FILE") in variables:
                message = f"{variable.removesuffix('_FILE')} is set, and so is {variable}: keep one"
                raise SettingsError(message)
            values[secrets[variable]] = _secret_in(Path(value), variable=variable)
        elif not _is_foreign(variable):
            raise SettingsError(_unknown(variable, [*names, *secrets]))
    return values


def _is_foreign(variable: str) -> bool:
    name = variable.removeprefix(PREFIX)
    return name in {variable, "CONFIG"} or name.startswith(_FOREIGN) or _is_service_link(variable)


def secret_names() -> tuple[str, ...]:
    """Settings that hold secrets: those that ``repr`` leaves out."""
    return tuple(field.name for field in dataclasses.fields(Settings) if not field.repr)


def _secret_in(path: Path, *, variable: str) -> str:
    try:
        # Editors and shells end a file with a line break, which belongs to no secret.
        secret = path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        message = f"{variable}: can't read {path}: {error.strerror}"
        raise SettingsError(message) from error
    except UnicodeDecodeError as error:
        message = f"{variable}: {path} is not UTF-8"
        raise SettingsError(message) from error
    if not secret:
        # As a setting it would mean "none": another store, or a server without a password.
        message = f"{variable}: {path} is empty"
        raise SettingsError(message)
    return secret


def _is_service_link(variable: str) -> bool:
    rest = variable.removeprefix(PREFIX.rstrip("_"))
    return any(link in rest for link in _SERVICE_LINKS)


def _unknown(name: str, known: typing.Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)
    return f"unknown setting {name}; did you mean {nearest[0]}?"


_TRUE: Final = {"1", "true", "yes", "on"}
_FALSE: Final = {"0", "false", "no", "off"}


def _converted(name: str, value: object, *, kind: object) -> typing.Any:  # noqa: ANN401 - the type is that of the field
    try:
        return _convert(kind, value)
    except (TypeError, ValueError) as error:
        wanted = getattr(kind, "__name__", str(kind))
        shown = "a secret" if name in secret_names() else repr(value)
        message = f"{name}: {shown} is no {wanted}"
        raise SettingsError(message) from error


def _convert(kind: object, value: object) -> object:
    if isinstance(kind, types.GenericAlias):
        items = value.split(",") if isinstance(value, str) else list(_iterable(value))
        return tuple(str(item).strip() for item in items if str(item).strip())
    if kind is bool:
        if isinstance(value, bool):
            return value
        lowered = str(value).lower()
        if lowered not in _TRUE | _FALSE:
            raise ValueError(lowered)
        return lowered in _TRUE
    if kind in (int, float) and isinstance(value, bool):
        raise TypeError(value)
    if kind is int:
        return int(str(value))
    if kind is float:
        return float(str(value))
    return Path(str(value)) if kind is Path else str(value)


def _iterable(value: object) -> typing.Iterable[object]:
    if not isinstance(value, typing.Iterable):
        raise TypeError(value)
    return value
