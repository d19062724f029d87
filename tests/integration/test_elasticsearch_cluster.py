"""A cluster for tests loses a node for real, answers on, and is whole again for the next test."""

from tests.services.elasticsearch_nodes import ElasticsearchCluster


def test_a_cluster_answers_without_one_of_its_nodes(
    elasticsearch_cluster: ElasticsearchCluster,
) -> None:
    """One replica is promised to be enough for one dead node, the master included."""
    with elasticsearch_cluster.server.client(seconds=60) as client:
        client.indices.create(
            index="kept", settings={"number_of_shards": 3, "number_of_replicas": 1}
        )
        client.cluster.health(index="kept", wait_for_status="green", timeout="60s")
        for number in range(30):
            client.index(index="kept", id=str(number), document={"number": number})

        elasticsearch_cluster.kill_node(0)
        client.indices.refresh(index="kept")

        assert client.count(index="kept")["count"] == 30
        assert client.index(index="kept", document={"number": 30})["result"] == "created"
        assert client.cluster.health()["number_of_nodes"] == 2


def test_a_killed_node_is_back_for_the_next_test(
    elasticsearch_cluster: ElasticsearchCluster,
) -> None:
    """Tests share the cluster of their module, so what one breaks is mended for the next."""
    with elasticsearch_cluster.server.client() as client:
        assert client.cluster.health()["number_of_nodes"] == 3
