"""An Elasticsearch for tests, and names on it that a test may use alone."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from elasticsearch import Elasticsearch


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticsearchServer:
    """Where an Elasticsearch is and who may enter.

    Attributes:
        url: Addresses of its nodes, parted by commas: what the setting ``elasticsearch_url`` takes.
        user: Who enters; empty means that nobody is asked.
        password: The user's.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)

    @contextmanager
    def client(self, *, seconds: float = 30.0) -> Iterator[Elasticsearch]:
        """A client of the driver, which gives a request so many seconds."""
        login = (self.user, self.password) if self.user else None
        client = Elasticsearch(self.url.split(","), basic_auth=login, request_timeout=seconds)
        with client:
            yield client

    @contextmanager
    def unused_prefix(self) -> Iterator[str]:
        """The beginning of index names of one test, whose indices are deleted at the end."""
        prefix = f"threefold-test-{uuid.uuid4().hex}"
        yield prefix
        with self.client() as client:
            # By their names: a careful server refuses to delete by a pattern.
            for name in client.indices.get(index=f"{prefix}*", expand_wildcards="all"):
                client.indices.delete(index=name)
