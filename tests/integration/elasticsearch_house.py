"""A truth in PostgreSQL whose rows travel to an Elasticsearch, for tests that break something."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from memory_tool.adapters.elasticsearch_indexes import ElasticsearchIndexes
from memory_tool.adapters.elasticsearch_renewal import ElasticsearchRenewal
from memory_tool.adapters.elasticsearch_target import ElasticsearchTarget
from memory_tool.adapters.postgres_change_figures import PostgresChangeFigures
from memory_tool.adapters.postgres_change_log import PostgresChangeLog
from memory_tool.adapters.postgres_generations import PostgresGenerations
from memory_tool.adapters.postgres_inventory import PostgresInventory
from memory_tool.adapters.postgres_server import Role
from memory_tool.index_jobs.applier import Applier
from memory_tool.index_jobs.renewals import Renewals
from memory_tool.model import EmbeddingSpace
from memory_tool.port_values import KeywordQuery, Pointer
from memory_tool.ports import KeywordView, VectorView
from memory_tool.settings import Settings
from memory_tool.text.tokenise import TOKENISER_VERSION, tokenise
from tests.contract.truth import Truth, postgres_truth, present
from tests.factories import DIMENSION
from tests.services.elasticsearch import ElasticsearchServer
from tests.services.postgres import Database

SPACE = EmbeddingSpace(model="made", dimension=DIMENSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """One store, and everything that follows it to one server."""

    truth: Truth
    indexes: ElasticsearchIndexes
    figures: PostgresChangeFigures
    catalogue: PostgresGenerations
    inventory: PostgresInventory
    log: PostgresChangeLog
    database: Database

    def applier(self) -> Applier:
        """An applier such as another process would have: it remembers nothing."""
        targets = [self.target(kind) for kind in ("keyword", "vector")]
        renewals = [self.renewal(target) for target in targets]
        return Applier(
            self.log,
            targets,
            renewals=Renewals(renewals, catalogue=self.catalogue, truth=self.inventory),
        )

    def target(self, kind: Literal["keyword", "vector"] = "keyword") -> ElasticsearchTarget:
        """One target alone."""
        return self.indexes.target(kind, log=self.log)

    def renewal(self, target: ElasticsearchTarget) -> ElasticsearchRenewal:
        """How it is built anew."""
        return ElasticsearchRenewal(target, log=self.log, catalogue=self.catalogue)

    def apply(self) -> None:
        """Bring both indexes up to date."""
        self.applier().run(force=True)

    def pointer(self, kind: Literal["keyword", "vector"] = "keyword") -> Pointer:
        """What is read, which has to be there."""
        return present(self.log.pointer(self.indexes.target_name(kind)))

    def keywords(self) -> KeywordView:
        """The keyword index as a search sees it."""
        return self.indexes.keyword_index().view(self.pointer())

    def vectors(self) -> VectorView:
        """The vector index as a search sees it."""
        return self.indexes.vector_index(lambda: SPACE).view(self.pointer("vector"))

    def found(self, text: str) -> list[str]:
        """Ids of the memories of ANNA that hold a word of the text, best first."""
        tokens = tokenise(text)
        query = KeywordQuery(words=tokens.words, bigrams=tokens.bigrams)
        hits = self.keywords().search(query, [self.truth.number()], depth=1000)
        return [hit.memory_id for hit in hits]


@contextmanager
def house_at(
    server: ElasticsearchServer,
    database: Database,
    *,
    prefix: str,
    changes: Mapping[str, Any] | None = None,
) -> Iterator[House]:
    """A house on that server; its indices begin with the prefix.

    Args:
        server: The Elasticsearch.
        database: An empty store.
        prefix: Of the names of indices; whoever made it up removes them.
        changes: Settings that differ.
    """
    settings = replace(
        Settings(
            elasticsearch_url=server.url,
            elasticsearch_user=server.user,
            elasticsearch_password=server.password,
            elasticsearch_prefix=prefix,
            elasticsearch_replicas=0,
            arm_seconds=5.0,
        ),
        **(changes or {}),
    )
    with postgres_truth(database) as truth, database.pool(Role.WORKER) as pool:
        truth.spaces.record_space(SPACE)
        log = PostgresChangeLog(pool)
        indexes = ElasticsearchIndexes(settings, store=log.identity(), tokeniser=TOKENISER_VERSION)
        yield House(
            truth=truth,
            indexes=indexes,
            figures=PostgresChangeFigures(pool),
            catalogue=PostgresGenerations(pool),
            inventory=PostgresInventory(pool),
            log=log,
            database=database,
        )
        indexes.close()
