"""Servers that a test may break do break, keep their data, and come back."""

import elasticsearch as driver
import pytest

from tests.services.elasticsearch import ElasticsearchServer
from tests.services.elasticsearch_nodes import ElasticsearchNode


def test_a_node_stops_dies_hangs_and_comes_back_with_its_data(
    elasticsearch_node: ElasticsearchNode,
) -> None:
    """Each outage is a real one, or the tests that stand on it prove nothing."""
    node = elasticsearch_node
    with node.server.client(seconds=10) as patient:
        client = patient.options(max_retries=0)
        client.index(index="kept", id="1", document={"text": "a"}, refresh=True)
        node.kill()
        with pytest.raises(driver.ConnectionError):
            client.info()
        node.start()
        assert client.get(index="kept", id="1")["found"]

        node.suspend()
        with pytest.raises(driver.ConnectionTimeout):
            client.options(request_timeout=0.5).info()
        node.resume()
        assert client.get(index="kept", id="1")["found"]

        node.stop()
        with pytest.raises(driver.ConnectionError):
            client.info()
        node.wipe()
        node.start()
        assert not client.indices.exists(index="kept")


def test_a_server_with_a_password_asks_for_it(
    elasticsearch_with_password: ElasticsearchServer,
) -> None:
    """Production has one."""
    with elasticsearch_with_password.client() as client:
        assert client.info()["version"]["number"]
    stranger = ElasticsearchServer(url=elasticsearch_with_password.url)
    with stranger.client() as client, pytest.raises(driver.AuthenticationException):
        client.info()
