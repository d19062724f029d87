"""What an answer of Elasticsearch means: only what it says of an index counts as its damage."""

import pytest

from memory_tool.adapters.elasticsearch_connection import kind_of_error, refusal
from memory_tool.errors import Corrupt, ThreefoldError, Unavailable

MISSING = {"error": {"type": "index_not_found_exception", "reason": "no such index [x]"}}
MAPPING = {"error": {"type": "mapper_parsing_exception", "reason": "secret text"}}


@pytest.mark.parametrize(
    ("status", "answer", "kind"),
    [
        (404, MISSING, Corrupt),
        (404, {"found": False, "_id": "stamp"}, Corrupt),
        (400, MAPPING, Corrupt),
        (404, "<html>no backend</html>", Unavailable),
        (404, {"error": {"type": "something_else"}}, Unavailable),
        (200, "<html>maintenance</html>", Unavailable),
        (401, MAPPING, Unavailable),
        (403, {"error": {"type": "security_exception"}}, Unavailable),
        (429, {"error": {"type": "es_rejected_execution_exception"}}, Unavailable),
        (503, None, Unavailable),
        (400, {"error": {"type": "media_type_header_exception"}}, Unavailable),
    ],
)
def test_a_proxy_or_a_lost_privilege_has_no_index_rebuilt(
    status: int, answer: object, kind: type[ThreefoldError]
) -> None:
    """A rebuild of a million memories for a load balancer's page would be an outage of its own."""
    assert type(refusal(status, answer)) is kind


def test_nothing_of_a_page_or_a_text_is_told() -> None:
    """Errors go to logs, and reasons quote what was indexed."""
    assert "secret" not in str(refusal(400, MAPPING))
    assert kind_of_error("<html>maintenance</html>") == "unknown"
