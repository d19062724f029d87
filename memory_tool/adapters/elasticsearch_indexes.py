"""The indexes of one store on an Elasticsearch, from settings."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from memory_tool.adapters.elasticsearch_connection import Access, ElasticsearchConnection
from memory_tool.adapters.elasticsearch_generations import Copies, Generations
from memory_tool.adapters.elasticsearch_keyword_index import ElasticsearchKeywordIndex
from memory_tool.adapters.elasticsearch_layout import KeywordLayout, VectorLayout
from memory_tool.adapters.elasticsearch_target import PATIENCE, ElasticsearchTarget
from memory_tool.adapters.elasticsearch_vector_index import ElasticsearchVectorIndex
from memory_tool.bm25 import FieldParameters
from memory_tool.errors import Unavailable
from memory_tool.log import logger
from memory_tool.log_ports import ChangeLog
from memory_tool.model import EmbeddingSpace
from memory_tool.settings import Settings


class ElasticsearchIndexes:
    """Makes indexes and their targets, over one connection."""

    def __init__(self, settings: Settings, *, store: str, tokeniser: int) -> None:
        """Connect to nothing yet.

        Raises:
            SettingsError: A setting can't be.
        """
        self._settings = settings
        self._store = store
        self._keywords = KeywordLayout(
            tokeniser=tokeniser,
            parameters=FieldParameters.parsed(settings.elasticsearch_bm25),
        )
        hosts = tuple(host.strip() for host in settings.elasticsearch_url.split(","))
        self._connection = ElasticsearchConnection(
            Access(
                hosts=tuple(host for host in hosts if host),
                user=settings.elasticsearch_user,
                password=settings.elasticsearch_password,
                api_key=settings.elasticsearch_api_key,
                ca=settings.elasticsearch_ca,
                seconds=settings.arm_seconds,
            )
        )
        self.shown = f"Elasticsearch at {self._connection.shown}"
        self.close = self._connection.close

    def check(self) -> None:
        """See that a server answers there which we can talk to; one that is down is no error.

        Raises:
            SettingsError: What answers is no Elasticsearch, or too old for this client.
        """
        try:
            self._connection.check()
        except Unavailable as error:
            logger().warning("index_unreachable", reason=str(error))

    def keyword_index(self) -> ElasticsearchKeywordIndex:
        """The keyword index, as searches see it."""
        return ElasticsearchKeywordIndex(
            self._generations("keyword"),
            target=self.target_name("keyword"),
            store=self._store,
            layout=self._keywords,
        )

    def vector_index(self, space: Callable[[], EmbeddingSpace | None]) -> ElasticsearchVectorIndex:
        """The vector index, as searches see it."""
        return ElasticsearchVectorIndex(
            self._generations("vector"),
            target=self.target_name("vector"),
            store=self._store,
            space=space,
        )

    def target(self, kind: Literal["keyword", "vector"], *, log: ChangeLog) -> ElasticsearchTarget:
        """The target that feeds the index of this kind."""
        return ElasticsearchTarget(
            self._generations(kind),
            name=self.target_name(kind),
            layout=self._keywords if kind == "keyword" else VectorLayout(),
            log=log,
            patience=replace(PATIENCE, seconds=self._settings.elasticsearch_refresh_seconds),
        )

    def target_name(self, kind: Literal["keyword", "vector"]) -> str:
        """The name under which the store keeps marks, pointer and progress: the same everywhere."""
        return f"elasticsearch:{self._settings.elasticsearch_prefix}:{kind}"

    def _generations(self, kind: str) -> Generations:
        settings = self._settings
        return Generations(
            self._connection,
            # Stores that share a server and a prefix must not meet.
            family=f"{settings.elasticsearch_prefix}-{self._store[:8]}-{kind}",
            copies=Copies(
                shards=settings.elasticsearch_shards,
                replicas=settings.elasticsearch_replicas,
                refresh_seconds=settings.elasticsearch_refresh_seconds,
            ),
        )
