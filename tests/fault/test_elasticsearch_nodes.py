"""The Elasticsearch process itself ends or hangs: alone, and as one of three."""

from collections.abc import Callable
from pathlib import Path

from tests.fault.outage import LONG, outage_of
from tests.services.elasticsearch_nodes import ElasticsearchCluster, ElasticsearchNode

Report = Callable[[str, object], None]


@LONG
def test_a_server_that_is_stopped_and_started(
    elasticsearch_node: ElasticsearchNode, folder: Path, database_url: str, record_property: Report
) -> None:
    """As an operator does it for an upgrade."""
    with outage_of(
        "Elasticsearch stopped and started",
        record_property,
        data_dir=folder,
        database_url=database_url,
        elasticsearch_url=elasticsearch_node.server.url,
        elasticsearch_prefix="stopped",
        vector_backend="elasticsearch",
    ) as outage:
        outage.traffic.let_pass(1.0)
        elasticsearch_node.stop()
        outage.traffic.let_pass(1.0)
        elasticsearch_node.start()
        outage.end()
        assert outage.events.counts["index_created"] == 2


@LONG
def test_a_server_that_is_killed_and_started(
    elasticsearch_node: ElasticsearchNode, folder: Path, database_url: str, record_property: Report
) -> None:
    """Again and again, in the middle of bulks. What it acknowledged it still has."""
    with outage_of(
        "Elasticsearch killed and started, three times",
        record_property,
        data_dir=folder,
        database_url=database_url,
        elasticsearch_url=elasticsearch_node.server.url,
        elasticsearch_prefix="killed",
        vector_backend="elasticsearch",
    ) as outage:
        for _ in range(3):
            outage.traffic.let_pass(3.0)
            elasticsearch_node.kill()
            elasticsearch_node.start()
        outage.end()
        assert outage.events.counts["index_created"] == 2


@LONG
def test_a_server_that_is_suspended_and_resumed(
    elasticsearch_node: ElasticsearchNode, folder: Path, database_url: str, record_property: Report
) -> None:
    """Its system goes on accepting connections: only deadlines tell that nobody is there."""
    with outage_of(
        "Elasticsearch suspended for 10 s",
        record_property,
        data_dir=folder,
        database_url=database_url,
        elasticsearch_url=elasticsearch_node.server.url,
        elasticsearch_prefix="suspended",
        vector_backend="elasticsearch",
    ) as outage:
        outage.traffic.let_pass(1.0)
        elasticsearch_node.suspend()
        outage.traffic.let_pass(10.0)
        elasticsearch_node.resume()
        outage.end()
        assert outage.events.counts["index_created"] == 2


def test_one_of_three_nodes_is_killed_in_the_middle_of_a_bulk(
    elasticsearch_cluster: ElasticsearchCluster,
    folder: Path,
    database_url: str,
    record_property: Report,
) -> None:
    """With one replica nothing is lost, searches go on, and two nodes are enough to heal."""
    with outage_of(
        "the master of three nodes killed",
        record_property,
        data_dir=folder,
        database_url=database_url,
        elasticsearch_url=elasticsearch_cluster.server.url,
        elasticsearch_prefix="three",
        elasticsearch_replicas=1,
        elasticsearch_shards=2,
        vector_backend="elasticsearch",
    ) as outage:
        with elasticsearch_cluster.server.client(seconds=120) as client:
            client.cluster.health(wait_for_status="green", timeout="100s")
        outage.traffic.write_many(300)
        elasticsearch_cluster.kill_node(0)
        outage.traffic.let_pass(5.0)
        outage.end()
        assert outage.events.counts["index_created"] == 2
    elasticsearch_cluster.start()
