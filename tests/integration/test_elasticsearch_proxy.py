"""The proxy that outages are made with does to a real Elasticsearch's clients what it says."""

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import elasticsearch as driver
import pytest
from elasticsearch import Elasticsearch
from elasticsearch.helpers import bulk

from tests.services.elasticsearch import ElasticsearchServer
from tests.services.proxy import ElasticsearchProxy
from tests.services.proxy_modes import (
    Answer,
    BlackHole,
    Cut,
    Delay,
    PartialBulk,
    Pass,
    Refuse,
    Reset,
)


@pytest.fixture
def client(elasticsearch_proxy: ElasticsearchProxy) -> Iterator[Elasticsearch]:
    """A client behind the proxy that tries nothing twice."""
    with elasticsearch_proxy.server.client(seconds=10) as client:
        yield client.options(max_retries=0)


def _documents(index: str, count: int) -> list[dict[str, Any]]:
    return [
        {"_op_type": "index", "_index": index, "_id": str(number), "text": f"文 {number}"}
        for number in range(count)
    ]


def _there(server: ElasticsearchServer, index: str) -> set[str]:
    with server.client() as client:
        client.indices.refresh(index=index)
        found = client.search(index=index, size=1000, source=False)
        return {hit["_id"] for hit in found["hits"]["hits"]}


def test_everything_passes_at_first(
    client: Elasticsearch, elasticsearch_proxy: ElasticsearchProxy, index_prefix: str
) -> None:
    """Whatever a test blames on an outage must not be the proxy's own doing."""
    count, errors = bulk(client, _documents(index_prefix, 2500), refresh=True)
    found = client.search(index=index_prefix, size=2000)

    assert (count, errors, len(found["hits"]["hits"])) == (2500, [], 2000)
    assert client.indices.exists(index=index_prefix)
    assert not client.indices.exists(index=f"{index_prefix}-other")
    assert elasticsearch_proxy.requests[0].startswith("PUT /_bulk")


def test_compressed_requests_and_answers_pass(
    elasticsearch_proxy: ElasticsearchProxy, index_prefix: str
) -> None:
    """Production compresses; a proxy that can't read it would test something else."""
    with Elasticsearch(elasticsearch_proxy.server.url, http_compress=True) as client:
        with elasticsearch_proxy.doing(PartialBulk(429, every=5)):
            count, errors = bulk(
                client, _documents(index_prefix, 100), refresh=True, raise_on_error=False
            )
        found = client.search(index=index_prefix, size=1000)

    assert (count, len(errors), len(found["hits"]["hits"])) == (80, 20, 80)  # type: ignore[arg-type]


def test_a_connection_is_used_again_and_follows_the_mode(
    elasticsearch_proxy: ElasticsearchProxy,
) -> None:
    """Clients keep connections open: an outage has to reach those as well."""
    address = urlsplit(elasticsearch_proxy.server.url)
    with contextlib.closing(
        http.client.HTTPConnection(str(address.hostname), address.port)
    ) as line:
        line.request("GET", "/_cluster/health")
        assert json.load(line.getresponse())["status"] in {"green", "yellow"}
        port = line.sock.getsockname()[1]
        elasticsearch_proxy.behave(Answer(503))
        line.request("GET", "/_cluster/health")
        with line.getresponse() as refused:
            assert refused.status == 503
            refused.read()
        elasticsearch_proxy.behave(Pass())
        line.request("GET", "/")
        with line.getresponse() as answer:
            assert answer.status == 200
        assert line.sock.getsockname()[1] == port


@pytest.mark.parametrize("status", [413, 429, 503])
def test_a_status_is_told_as_elasticsearch_tells_it(
    client: Elasticsearch, elasticsearch_proxy: ElasticsearchProxy, status: int
) -> None:
    """The driver must take it for the server's own word, not for a stranger's."""
    with (
        elasticsearch_proxy.doing(Answer(status)),
        pytest.raises(driver.ApiError, match="exception") as caught,
    ):
        client.info()

    assert caught.value.status_code == status
    assert caught.value.body["status"] == status
    assert client.info()["version"]["number"]


def test_a_mode_may_be_for_some_requests_only(
    client: Elasticsearch, elasticsearch_proxy: ElasticsearchProxy, index_prefix: str
) -> None:
    """Writes that are pushed back while searches go on are the commonest trouble of all."""
    with elasticsearch_proxy.doing(Answer(429, only="_bulk")):
        with pytest.raises(driver.ApiError) as caught:
            client.bulk(operations=[{"index": {"_index": index_prefix}}, {"text": "a"}])
        assert client.info()["version"]["number"]

    assert caught.value.status_code == 429


@pytest.mark.parametrize("mode", [Cut(), Refuse(), Reset(after=0), Reset(after=60)], ids=repr)
def test_a_broken_connection_is_one(
    client: Elasticsearch, elasticsearch_proxy: ElasticsearchProxy, mode: Pass
) -> None:
    """Before the first byte and in the middle of an answer; and afterwards all is well again."""
    client.info()
    with elasticsearch_proxy.doing(mode), pytest.raises(driver.ConnectionError) as caught:
        client.info()

    assert not isinstance(caught.value, driver.ConnectionTimeout)
    assert client.info()["version"]["number"]


def test_a_reset_is_no_orderly_end(elasticsearch_proxy: ElasticsearchProxy) -> None:
    """A connection that is reset fails otherwise than one that is closed, in every driver."""
    address = urlsplit(elasticsearch_proxy.server.url)
    elasticsearch_proxy.behave(Reset(after=10))
    with socket.create_connection((str(address.hostname), address.port), timeout=10) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            list(iter(lambda: line.recv(10), b""))
    elasticsearch_proxy.behave(Cut())
    with socket.create_connection((str(address.hostname), address.port), timeout=10) as line:
        assert line.recv(10) == b""


def test_a_reset_loses_the_answer_and_not_the_write(
    client: Elasticsearch,
    elasticsearch_proxy: ElasticsearchProxy,
    elasticsearch: ElasticsearchServer,
    index_prefix: str,
) -> None:
    """The case that versions exist for: done, and nobody knows."""
    with elasticsearch_proxy.doing(Reset(after=20)), pytest.raises(driver.ConnectionError):
        client.index(index=index_prefix, id="1", document={"text": "a"})

    assert _there(elasticsearch, index_prefix) == {"1"}


@pytest.mark.parametrize("mode", [Delay(30), BlackHole()], ids=repr)
def test_silence_is_a_timeout(elasticsearch_proxy: ElasticsearchProxy, mode: Pass) -> None:
    """A hang is the one outage that only the caller's own clock can end."""
    with elasticsearch_proxy.server.client(seconds=0.3) as hasty:
        with elasticsearch_proxy.doing(mode), pytest.raises(driver.ConnectionTimeout):
            hasty.options(max_retries=0).info()
        if isinstance(mode, BlackHole):
            assert hasty.options(request_timeout=10).info()["version"]["number"]


def test_what_fell_into_a_black_hole_does_not_come_back(
    elasticsearch_proxy: ElasticsearchProxy,
) -> None:
    """A test that ends the silence must not find old requests answered after all."""
    address = urlsplit(elasticsearch_proxy.server.url)
    elasticsearch_proxy.behave(BlackHole())
    with socket.create_connection((str(address.hostname), address.port), timeout=10) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        while not elasticsearch_proxy.requests:
            time.sleep(0.01)
        elasticsearch_proxy.behave(Pass())
        assert line.recv(10) == b""


def test_a_delayed_write_comes_late_though_its_sender_gave_up(
    elasticsearch_proxy: ElasticsearchProxy, elasticsearch: ElasticsearchServer, index_prefix: str
) -> None:
    """The late bulk of a holder that is gone: protocols that forget it revive the dead."""
    with elasticsearch.client() as client:
        client.indices.create(index=index_prefix)
    with (
        elasticsearch_proxy.doing(Delay(1)),
        elasticsearch_proxy.server.client(seconds=0.2) as hasty,
        pytest.raises(driver.ConnectionTimeout),
    ):
        hasty.options(max_retries=0).index(index=index_prefix, id="late", document={"a": 1})

    deadline = time.monotonic() + 60
    while not _there(elasticsearch, index_prefix) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _there(elasticsearch, index_prefix) == {"late"}


@pytest.mark.parametrize("status", [400, 429])
def test_items_taken_out_of_a_bulk_are_reported_and_not_there(
    client: Elasticsearch,
    elasticsearch_proxy: ElasticsearchProxy,
    elasticsearch: ElasticsearchServer,
    index_prefix: str,
    status: int,
) -> None:
    """A failed item inside an answer that says 200 is what careless bulk code loses."""
    operations: list[dict[str, Any]] = []
    for number in range(5):
        operations += [{"index": {"_id": str(number)}}, {"text": "一"}]
    operations.append({"delete": {"_id": "0"}})

    with elasticsearch_proxy.doing(PartialBulk(status, every=3)):
        answer = client.bulk(
            index=index_prefix, operations=operations, filter_path="items.*.error,errors"
        )

    items = [next(iter(item.values())) for item in answer["items"]]
    assert [item["status"] for item in items] == [201, 201, status, 201, 201, status]
    assert answer["errors"] is True
    assert [item["_id"] for item in items if "error" in item] == ["2", "0"]
    assert items[2]["_index"] == index_prefix
    assert _there(elasticsearch, index_prefix) == {"0", "1", "3", "4"}


def test_a_bulk_may_lose_every_item(
    client: Elasticsearch, elasticsearch_proxy: ElasticsearchProxy, index_prefix: str
) -> None:
    """A server that takes nothing at all still answers 200."""
    with elasticsearch_proxy.doing(PartialBulk(429, every=1)):
        count, errors = bulk(client, _documents(index_prefix, 3), raise_on_error=False)

    assert (count, len(errors)) == (0, 3)  # type: ignore[arg-type]
    assert not client.indices.exists(index=index_prefix)
