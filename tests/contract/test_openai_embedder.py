"""The embedder over HTTP keeps the contract, and trusts no answer."""

import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.adapters.openai_embedder import OpenAIEmbedder
from memory_tool.errors import InputError, InvalidEmbedding, MissingExtra, Unavailable
from memory_tool.ports import Embedder
from tests.contract.embedder import EmbedderContract
from tests.contract.embedding_server import (
    Behaviour,
    EmbeddingServer,
    Reply,
    Request,
    embeddings,
    refusal,
)

KEY = "secret-key"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    """A server of 8 dimensions."""
    with EmbeddingServer(dimension=8) as server:
        yield server


@pytest.fixture
def client(server: EmbeddingServer) -> Iterator[OpenAIEmbedder]:
    """A client that knows the dimension."""
    embedder = OpenAIEmbedder(base_url=server.base_url, model="m", api_key=KEY, dimension=8)
    yield embedder
    embedder.close()


class TestOpenAIEmbedder(EmbedderContract):
    """A known model behind a server of one's own."""

    @pytest.fixture
    def embedder(self) -> Iterator[Embedder]:
        """multilingual-e5-small, whose prefixes the client has to add."""
        with EmbeddingServer(dimension=384) as server:
            embedder = OpenAIEmbedder(base_url=server.base_url, model="multilingual-e5-small")
            yield embedder
            embedder.close()


def test_a_request_says_model_key_and_texts(
    server: EmbeddingServer, client: OpenAIEmbedder
) -> None:
    """The protocol, as every compatible server reads it."""
    client.embed_passages(["a", "b"])
    expected = Request(
        path="/v1/embeddings", authorization=f"Bearer {KEY}", model="m", texts=("a", "b")
    )
    assert server.requests == [expected]


def test_a_server_without_keys_gets_none(server: EmbeddingServer) -> None:
    """An empty bearer token is refused by some servers."""
    embedder = OpenAIEmbedder(base_url=server.base_url + "/", model="m", dimension=8)
    embedder.embed_queries(["a"])
    embedder.close()
    assert [(seen.path, seen.authorization) for seen in server.requests] == [
        ("/v1/embeddings", None)
    ]


def test_texts_travel_in_batches(server: EmbeddingServer) -> None:
    """Servers limit the tokens of one request; none is sent for no texts."""
    embedder = OpenAIEmbedder(base_url=server.base_url, model="m", dimension=8, batch=3)
    embedder.embed_passages([str(number) for number in range(7)])
    embedder.embed_passages([])
    embedder.close()
    assert [len(request.texts) for request in server.requests] == [3, 3, 1]


def test_an_answer_out_of_order_is_put_in_order(
    server: EmbeddingServer, client: OpenAIEmbedder
) -> None:
    """The protocol orders by index, not by place."""
    rows = HashingEmbedder(dimension=8).embed_passages(["a", "b", "c"])
    server.behaviour = lambda _: embeddings(rows[[2, 0, 1]], (2, 0, 1))
    assert client.embed_passages(["a", "b", "c"]) == pytest.approx(rows, abs=1e-6)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 529])
def test_a_busy_or_broken_server_is_unavailable(
    server: EmbeddingServer, client: OpenAIEmbedder, status: int
) -> None:
    """Trying later helps: the one retry layer and the queue go by this class."""
    server.behaviour = lambda _: refusal(status, "slow_down")
    with pytest.raises(Unavailable, match=rf"{status} \(slow_down\)") as caught:
        client.embed_passages(["the text"])
    assert caught.value.store == "embedder"
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
def test_a_refused_request_is_an_input_error(
    server: EmbeddingServer, client: OpenAIEmbedder, status: int
) -> None:
    """Trying later doesn't help. Neither key nor text leaks into messages that end up in logs."""
    server.behaviour = lambda _: refusal(status, "invalid_api_key")
    with pytest.raises(InputError) as caught:
        client.embed_passages(["the text"])
    assert str(caught.value) == f"the embedding server answers {status} (invalid_api_key)"


@pytest.mark.parametrize(
    "body", ["", "<html>", "[]", '{"error": "the text"}', '{"error": {"code": "the text"}}']
)
def test_an_error_in_any_wording_is_understood(
    server: EmbeddingServer, client: OpenAIEmbedder, body: str
) -> None:
    """Proxies answer in HTML, others in JSON of their own; words are shown, sentences are not."""
    server.behaviour = lambda _: Reply(status=404, body=body)
    with pytest.raises(InputError) as caught:
        client.embed_passages(["the text"])
    assert str(caught.value) == "the embedding server answers 404"


@pytest.mark.parametrize(
    "body", ["", "<html>", "[]", "{}", '{"data": 3}', '{"data": [3]}', '{"data": [{"index": []}]}']
)
def test_an_answer_without_embeddings_is_unavailable(
    server: EmbeddingServer, client: OpenAIEmbedder, body: str
) -> None:
    """A captive portal answers 200 to everything."""
    server.behaviour = lambda _: Reply(status=200, body=body)
    with pytest.raises(Unavailable, match="something else"):
        client.embed_passages(["a"])


ONES = [1.0] * 8


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(lambda _: embeddings([ONES], [0]), id="too few"),
        pytest.param(lambda _: embeddings([ONES] * 3, [0, 1, 2]), id="too many"),
        pytest.param(lambda _: embeddings([ONES] * 2, [0, 0]), id="one twice"),
        pytest.param(lambda _: embeddings([ONES] * 3, [0, 1, 1]), id="one too often"),
        pytest.param(lambda _: embeddings([ONES] * 2, [1, 2]), id="counted from one"),
        pytest.param(lambda _: embeddings([[1.0] * 9] * 2, [0, 1]), id="dimension"),
        pytest.param(lambda _: embeddings([ONES, [1.0]], [0, 1]), id="ragged"),
        pytest.param(lambda _: embeddings([ONES, [np.nan] * 8], [0, 1]), id="not a number"),
        pytest.param(lambda _: embeddings([ONES, [np.inf] * 8], [0, 1]), id="infinite"),
        pytest.param(lambda _: embeddings([ONES, [0.0] * 8], [0, 1]), id="zero"),
    ],
)
def test_wrong_embeddings_are_refused(
    server: EmbeddingServer, client: OpenAIEmbedder, behaviour: Behaviour
) -> None:
    """A wrong vector would be stored beside right ones and spoil searches for good."""
    server.behaviour = behaviour
    with pytest.raises(InvalidEmbedding):
        client.embed_passages(["a", "b"])


def test_a_silent_server_is_unavailable(server: EmbeddingServer) -> None:
    """A write must not hang because a server accepts and never answers."""
    over = threading.Event()

    def silent(request: Request) -> Reply:
        over.wait()
        return server.embed(request)

    server.behaviour = silent
    embedder = OpenAIEmbedder(base_url=server.base_url, model="m", dimension=8, seconds=0.1)
    with pytest.raises(Unavailable, match="ReadTimeout"):
        embedder.embed_passages(["a"])
    over.set()
    embedder.close()


def test_an_absent_server_is_unavailable() -> None:
    """A model server that restarts is no reason to lose a write."""
    with EmbeddingServer(dimension=8) as server:
        address = server.base_url
    embedder = OpenAIEmbedder(base_url=address, model="m", dimension=8)
    with pytest.raises(Unavailable, match="ConnectError"):
        embedder.embed_passages(["a"])
    embedder.close()


def test_an_unknown_dimension_is_asked_for_once(server: EmbeddingServer) -> None:
    """Any model can be used without looking up its dimension."""
    embedder = OpenAIEmbedder(base_url=server.base_url, model="of my own")
    assert embedder.space.name == "of my own/8"
    assert embedder.embed_passages(["a"]).shape == (1, 8)
    embedder.close()
    assert len(server.requests) == 2


def test_the_dimension_of_a_known_model_is_not_asked_for() -> None:
    """Opening a store with ada-002 works while the server is away."""
    embedder = OpenAIEmbedder(base_url="http://127.0.0.1:9/v1", model="ada-002")
    assert embedder.space.name == "text-embedding-ada-002/1536"
    embedder.close()


@pytest.mark.parametrize(
    ("model", "limit"), [("ada-002", 8189), ("of my own", 510), ("e5-small", 507)]
)
def test_chunks_leave_room_for_what_the_server_adds(model: str, limit: int) -> None:
    """Many servers refuse a text that is one token too long, and a whole batch with it."""
    embedder = OpenAIEmbedder(base_url="http://127.0.0.1:9/v1", model=model)
    assert embedder.max_tokens == limit
    embedder.close()


@pytest.mark.parametrize(
    "address", ["", "example.com/v1", "ftp://example.com", "http://[::x", "http:"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    """A typing error should not look like a server that is down."""
    with pytest.raises(InputError, match="address"):
        OpenAIEmbedder(base_url=address, model="m")


def test_the_key_is_never_shown(client: OpenAIEmbedder) -> None:
    """Objects end up in logs and tracebacks."""
    assert KEY not in repr(client)
    assert KEY not in repr(vars(client))


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """People who installed the core alone have to learn what is missing."""
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"threefold\[llm\]"):
        OpenAIEmbedder(base_url="http://127.0.0.1:9/v1", model="m")
