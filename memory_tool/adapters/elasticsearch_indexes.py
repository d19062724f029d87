"""The indexes of one store on an Elasticsearch, from settings."""

import re
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Literal, TypeAlias

from memory_tool.adapters.elasticsearch_connection import (
    Access,
    ElasticsearchConnection,
    translated,
)
from memory_tool.adapters.elasticsearch_generations import Copies, Generations
from memory_tool.adapters.elasticsearch_inventory import elasticsearch_inventory
from memory_tool.adapters.elasticsearch_keyword_index import ElasticsearchKeywordIndex
from memory_tool.adapters.elasticsearch_layout import KeywordLayout, VectorLayout
from memory_tool.adapters.elasticsearch_target import PATIENCE, ElasticsearchTarget
from memory_tool.adapters.elasticsearch_vector_index import ElasticsearchVectorIndex
from memory_tool.bm25 import FieldParameters
from memory_tool.errors import Unavailable
from memory_tool.inventory_ports import IndexInventory
from memory_tool.log import logger
from memory_tool.log_ports import ChangeLog
from memory_tool.model import EmbeddingSpace
from memory_tool.port_values import Pointer
from memory_tool.settings import Settings
from memory_tool.space_values import FIRST_SPACE, target_in_space

Kind: TypeAlias = Literal["keyword", "vector"]


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

    def vector_index(
        self, space: Callable[[], EmbeddingSpace | None], *, number: int = FIRST_SPACE
    ) -> ElasticsearchVectorIndex:
        """The vector index of one space, as searches see it."""
        return ElasticsearchVectorIndex(
            self._generations("vector", number),
            target=self.target_name("vector", number),
            store=self._store,
            space=space,
        )

    def target(
        self, kind: Kind, *, log: ChangeLog, number: int = FIRST_SPACE
    ) -> ElasticsearchTarget:
        """The target that feeds the index of this kind; of vectors, of the space of this number."""
        return ElasticsearchTarget(
            self._generations(kind, number),
            name=self.target_name(kind, number),
            layout=self._keywords if kind == "keyword" else VectorLayout(),
            log=log,
            patience=replace(PATIENCE, seconds=self._settings.elasticsearch_refresh_seconds),
        )

    def target_name(self, kind: Kind, number: int = FIRST_SPACE) -> str:
        """The name under which the store keeps marks, pointer and progress: the same everywhere."""
        name = f"elasticsearch:{self._settings.elasticsearch_prefix}:{kind}"
        return target_in_space(name, number) if kind == "vector" else name

    def inventory(self, pointer: Pointer) -> AbstractContextManager[IndexInventory]:
        """What the index that a pointer names holds."""
        return elasticsearch_inventory(self._connection, pointer.locator)

    def tidy_vectors(self, *, keep: Collection[int]) -> None:
        """Remove indexes of spaces that the store has forgotten, and those of earlier versions."""
        family = self._family("vector")
        name = re.compile(rf"{re.escape(family)}-(?:space(\d+)-)?\d{{6,}}-[0-9a-f]{{8}}")
        client = self._connection.patient().options(ignore_status=404)
        with translated():
            found = client.indices.get_alias(index=f"{family}-*", allow_no_indices=True)
            for index in found:
                ours = name.fullmatch(index)
                if ours and (ours[1] is None or int(ours[1]) not in keep):
                    client.indices.delete(index=index)

    def _family(self, kind: Kind) -> str:
        # Stores that share a server and a prefix must not meet.
        return f"{self._settings.elasticsearch_prefix}-{self._store[:8]}-{kind}"

    def _generations(self, kind: Kind, number: int = FIRST_SPACE) -> Generations:
        settings = self._settings
        family = self._family(kind)
        return Generations(
            self._connection,
            family=f"{family}-space{number}" if kind == "vector" else family,
            copies=Copies(
                shards=settings.elasticsearch_shards,
                replicas=settings.elasticsearch_replicas,
                refresh_seconds=settings.elasticsearch_refresh_seconds,
            ),
        )
