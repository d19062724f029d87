"""Both indexes keep their contracts on an Elasticsearch that lets nobody in without a password."""

import pytest

# Modules, not classes: those would be collected here once more.
from tests.contract import test_elasticsearch_keyword_index as keyword
from tests.contract import test_elasticsearch_vector_index as vector
from tests.services.elasticsearch import ElasticsearchServer


@pytest.fixture(scope="module")
def elasticsearch(elasticsearch_with_password: ElasticsearchServer) -> ElasticsearchServer:
    """That server, for everything in this module."""
    return elasticsearch_with_password


class TestKeywordIndexWithPassword(keyword.TestElasticsearchKeywordIndex):
    """Words."""


class TestVectorIndexWithPassword(vector.TestElasticsearchVectorIndex):
    """Vectors."""
