"""One client of an Elasticsearch, and the one seam where its errors change."""

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from elastic_transport import TlsError
from elasticsearch import (
    ApiError,
    Elasticsearch,
    SerializationError,
    TransportError,
    UnsupportedProductError,
)

from memory_tool.errors import (
    Corrupt,
    InputError,
    PartUnavailable,
    SettingsError,
    ThreefoldError,
    Unavailable,
)

STORE: Final = "elasticsearch"

Body: TypeAlias = Mapping[str, Any]
Search: TypeAlias = tuple[Body, Body]
"""Header (index, routing) and body of one search of several."""

PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
"""What passes by itself. An error of the server's own says nothing of the index either."""

REFUSED: Final = frozenset({401, 403})

_TOO_OLD: Final = "media_type_header_exception"
"""What a server says to a client of a later major version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where an Elasticsearch is and as whom to reach it.

    Attributes:
        hosts: Address of each node that may be asked.
        user: With its password, or empty.
        password: The user's.
        api_key: Instead of user and password.
        ca: File of the certificate authority; empty means the system's.
        seconds: Longest wait for an answer.
    """

    hosts: tuple[str, ...]
    user: str = ""
    password: str = ""
    api_key: str = ""
    ca: str = ""
    seconds: float = 5.0

    def __repr__(self) -> str:
        """Without secrets; an address may hold one too."""
        return f"Access({self.shown})"

    @property
    def shown(self) -> str:
        """The nodes without user and password, for people."""
        return ", ".join(host.rpartition("@")[2].rpartition("://")[2] for host in self.hosts)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn errors of the driver into errors of the house."""
    try:
        yield
    except ThreefoldError:
        raise
    except UnsupportedProductError as error:
        # A kind of ApiError. A proxy's page, for instance: it says nothing of any index.
        message = "what answers there is no Elasticsearch"
        raise Unavailable(message, store=STORE) from error
    except ApiError as error:
        raise refusal(error.meta.status, error.body) from error
    except TlsError as error:
        message = f"Elasticsearch's certificate is not trusted: {_first_line(error)}"
        raise Unavailable(message, store=STORE) from error
    except (TransportError, SerializationError) as error:
        message = f"Elasticsearch can't be reached: {_first_line(error)}"
        raise Unavailable(message, store=STORE) from error


def refusal(status: int, answer: object) -> ThreefoldError:
    """The error for a request, or a part of one, that was answered with this status.

    Only what Elasticsearch itself says of an index counts as damage of it.
    """
    if status in REFUSED:
        message = f"Elasticsearch refuses the user or the key ({status}): see its privileges"
        return Unavailable(message, store=STORE)
    if status in PASSING or not isinstance(answer, Mapping):
        return Unavailable(f"Elasticsearch can't answer now ({status})", store=STORE)
    kind = kind_of_error(answer)
    if kind == _TOO_OLD:
        message = "the Elasticsearch client is newer than the server: pip install 'elasticsearch<9'"
        return Unavailable(message, store=STORE)
    if kind == "index_not_found_exception" or answer.get("found") is False:
        return Corrupt("an Elasticsearch index is missing: it is built again by itself")
    if status == HTTPStatus.NOT_FOUND:
        return Unavailable(f"Elasticsearch can't answer now ({status})", store=STORE)
    return Corrupt(f"Elasticsearch refuses a request ({status}, {kind})")


def kind_of_error(answer: object) -> str:
    """The type of an error in an answer; its reason may quote what was indexed."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    return str(error.get("type", "unknown")) if isinstance(error, Mapping) else "unknown"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


class ElasticsearchConnection:
    """A client that waits a bounded time and leaves trying again to those who call it.

    With several nodes a request that reached none goes to the next: that is finding the way, not
    trying again. Safe in several threads.
    """

    def __init__(self, access: Access) -> None:
        """Connect to nothing yet.

        Raises:
            SettingsError: An address or the certificate file can't be used.
        """
        self.shown = access.shown
        options: dict[str, Any] = {"ca_certs": access.ca} if access.ca else {}
        if access.api_key:
            options["api_key"] = access.api_key
        elif access.user:
            options["basic_auth"] = (access.user, access.password)
        try:
            with warnings.catch_warnings():
                # Of a connection without certificates: that is the address's business.
                warnings.simplefilter("ignore")
                self.client = Elasticsearch(
                    list(access.hosts),
                    request_timeout=access.seconds,
                    max_retries=len(access.hosts) - 1,
                    retry_on_timeout=False,
                    retry_on_status=(),
                    **options,
                )
        except (ValueError, OSError) as error:
            message = "elasticsearch_url: no address of an Elasticsearch, or no certificate file"
            raise SettingsError(message) from error

    def patient(self) -> Elasticsearch:
        """The client for what may take longer than a search, and nobody waits for: a minute."""
        return self.client.options(request_timeout=60.0)

    def check(self) -> None:
        """See that an Elasticsearch answers there which this client can talk to.

        Raises:
            SettingsError: It is none, or one that is too old for this client.
            Unavailable: Nobody answers now.
        """
        try:
            with translated():
                self.client.info()
        except Unavailable as error:
            cause = error.__cause__
            too_old = isinstance(cause, ApiError) and kind_of_error(cause.body) == _TOO_OLD
            if too_old or isinstance(cause, UnsupportedProductError):
                message = f"elasticsearch_url: {error}"
                raise SettingsError(message) from error
            raise

    def search_in_turn(self, searches: Sequence[Search]) -> tuple[Body, ...]:
        """The answer to each of several searches in one request, one begun when the last has ended.

        Whether an answer is whole is for :func:`check_whole` to say.

        Raises:
            Unavailable: The server can't answer.
        """
        lines = [line for search in searches for line in search]
        with translated():
            answer = self.client.msearch(searches=lines, max_concurrent_searches=1)
            return tuple(answer["responses"])

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self.client.close()


def check_whole(answer: Body) -> None:
    """Refuse an answer that is an error or lacks a part.

    Raises:
        PartUnavailable: A shard can't answer.
        Corrupt: An index is missing.
        InputError: The server refuses a question, such as one of too many words.
    """
    if "error" in answer:
        status = answer.get("status", 500)
        if status == HTTPStatus.BAD_REQUEST:
            # Of thousands of words, for example. That the index is ours was seen before.
            message = f"Elasticsearch can't answer such a question ({kind_of_error(answer)})"
            raise InputError(message)
        error = refusal(status, answer)
        raise PartUnavailable(str(error), store=STORE) if isinstance(error, Unavailable) else error
    if answer["timed_out"] or answer["_shards"]["failed"]:
        message = "Elasticsearch answers in part only: some of its shards failed"
        raise PartUnavailable(message, store=STORE)
