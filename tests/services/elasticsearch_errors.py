"""Errors as Elasticsearch words them."""

from typing import Any, Final

_TYPES: Final = {
    400: "document_parsing_exception",
    413: "content_too_long_exception",
    429: "es_rejected_execution_exception",
    503: "unavailable_shards_exception",
}


def error_of(status: int) -> dict[str, Any]:
    """The error object of this status, by the proxy's will."""
    return {"type": _TYPES.get(status, "exception"), "reason": "the proxy of the tests says so"}


def error_body(status: int) -> dict[str, Any]:
    """The whole answer to a request that failed so."""
    error = error_of(status)
    return {"error": {"root_cause": [error], **error}, "status": status}
