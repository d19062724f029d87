"""What an index says of itself: control documents beside the chunks, in the same index.

The *stamp* names the history that the index follows; *bundles* hold the clocks of 64 namespaces
each. Order makes them true for whoever searches:

1. The stamp takes the mark of a batch **before** the batch's documents are written, by
   compare-and-set, and is made visible at once. So no document of a foreign history can be seen
   without its mark, and of two writers only one goes on.
2. The clocks move **after** the documents were made visible on every copy of every shard. So what a
   clock says is there, a search of the same moment finds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any, Final, cast

from memory_tool.adapters.elasticsearch_connection import (
    STORE,
    Body,
    ElasticsearchConnection,
    Search,
    refusal,
    translated,
)
from memory_tool.errors import Corrupt, Unavailable

BUNDLE: Final = 64
"""Clocks in one document: 10,000 namespaces make 157."""

_STAMP: Final = "stamp"

_ROUTING: Final = "control"
"""All control documents are in one shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What an index follows and was made with.

    Attributes:
        mark: The mark of the latest batch that was begun.
        store: Identity of the store.
        fingerprint: Of the definition that the index was made by.
        lineage: What the server calls this copy of the index; see :func:`check_lineage`.
        bundles: How many bundles there may be: their numbers lie below.
    """

    mark: str | None
    store: str
    fingerprint: str
    lineage: Mapping[str, str]
    bundles: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a document stood when it was read: writing it again is refused if it moved."""

    seq_no: int
    primary_term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The control documents, or those of them that were asked for.

    Attributes:
        stamp: The stamp.
        clocks: The clock of each namespace of the bundles read.
        places: Where each document was, by its id.
    """

    stamp: Stamp
    clocks: Mapping[int, int]
    places: Mapping[str, Place]


def stamp_place(control: Control) -> Place:
    """Where the stamp stood."""
    return control.places[_STAMP]


def control_search(index: str, ns_ids: Iterable[int]) -> Search:
    """The search that reads the stamp and the clocks of these namespaces."""
    wanted = [_STAMP, *sorted({_bundle_id(ns_id // BUNDLE) for ns_id in ns_ids})]
    header = {"index": index, "routing": _ROUTING, "allow_partial_search_results": False}
    return header, {"query": {"ids": {"values": wanted}}, "size": len(wanted)}


def control_of_hits(answer: Body) -> Control:
    """What :func:`control_search` found.

    Raises:
        Corrupt: There is no stamp: this is no index of ours, or not yet.
    """
    return _control(answer["hits"]["hits"])


def read_stamp(connection: ElasticsearchConnection, index: str) -> Control:
    """The stamp alone, as it was written last, visible to searches or not.

    Raises:
        Corrupt: There is no index or no stamp in it.
    """
    with translated():
        found = connection.client.get(index=index, id=_STAMP, routing=_ROUTING)
    return _control([found.body])


def read_control(connection: ElasticsearchConnection, index: str) -> Control:
    """The stamp and all clocks, as they were written last.

    Raises:
        Corrupt: There is no index or no stamp in it.
    """
    bundles = read_stamp(connection, index).stamp.bundles
    wanted = [_STAMP, *map(_bundle_id, range(bundles))]
    with translated():
        answer = connection.client.mget(
            index=index, docs=[{"_id": name, "routing": _ROUTING} for name in wanted]
        )
    return _control([document for document in answer["docs"] if document.get("found")])


def write_stamp(
    connection: ElasticsearchConnection, alias: str, *, stamp: Stamp, place: Place | None
) -> None:
    """Write the stamp where it stood (``None``: where none is yet), and make it visible.

    Raises:
        Unavailable: Another writer was first: read again.
        Corrupt: The alias is gone, or the fields are not ours.
    """
    places = {_STAMP: place} if place else {}
    _write(connection, alias, documents={_STAMP: asdict(stamp)}, places=places)


def write_clocks(
    connection: ElasticsearchConnection,
    alias: str,
    *,
    control: Control,
    clocks: Mapping[int, int],
) -> None:
    """Move these clocks, and make them visible.

    Raises:
        Unavailable: Another writer was first: read again.
        Corrupt: The alias is gone, or the fields are not ours.
    """
    bundles: dict[int, dict[int, int]] = {}
    for ns_id in clocks:
        bundles.setdefault(ns_id // BUNDLE, {})
    for ns_id, clock in {**control.clocks, **clocks}.items():
        if ns_id // BUNDLE in bundles:
            bundles[ns_id // BUNDLE][ns_id] = clock
    documents = {
        _bundle_id(number): {"clocks": {str(ns_id): clock for ns_id, clock in held.items()}}
        for number, held in bundles.items()
    }
    _write(connection, alias, documents=documents, places=control.places)


def lineage_of(connection: ElasticsearchConnection, index: str) -> Mapping[str, str]:
    """The id of the index, and the id of each shard's history by the shard's number.

    Raises:
        Corrupt: There is no such index.
    """
    with translated():
        answer = connection.client.indices.stats(index=index, level="shards")
    of_index = answer["indices"].get(index)
    if of_index is None:
        message = f"the index {index} is missing: it is built again by itself"
        raise Corrupt(message)
    histories = {
        number: copy["commit"]["user_data"]["history_uuid"]
        for number, copies in of_index["shards"].items()
        for copy in copies
        if copy["routing"]["primary"]
    }
    return {"index": of_index["uuid"], **histories}


def check_lineage(stamp: Stamp, found: Mapping[str, str]) -> None:
    """Refuse an index that was restored from a snapshot, or a shard made of a stale copy.

    The server gives a restored index a new id, or its shards a new history. Clocks alone would
    not show a snapshot that was taken in the middle of a batch.

    Raises:
        Corrupt: It is not the copy that was stamped.
        Unavailable: Some of its shards can't be seen.
    """
    if not stamp.lineage.keys() <= found.keys():
        message = "Elasticsearch has lost sight of some shards of an index"
        raise Unavailable(message, store=STORE)
    if stamp.lineage != found:
        message = "the Elasticsearch index was restored from elsewhere: it is built again by itself"
        raise Corrupt(message)


def _write(
    connection: ElasticsearchConnection,
    alias: str,
    *,
    documents: Mapping[str, Body],
    places: Mapping[str, Place],
) -> None:
    operations: list[Body] = []
    for name, payload in documents.items():
        action: dict[str, Any] = {"_id": name, "routing": _ROUTING, "require_alias": True}
        if name in places:
            place = places[name]
            action |= {"if_seq_no": place.seq_no, "if_primary_term": place.primary_term}
            operations += [{"index": action}, {"control": payload}]
        else:
            operations += [{"create": action}, {"control": payload}]
    with translated():
        client = connection.patient()
        answer = client.bulk(operations=operations, index=alias, refresh=True)
    for item in answer["items"]:
        (outcome,) = item.values()
        if outcome["status"] == HTTPStatus.CONFLICT:
            message = "another process writes this index"
            raise Unavailable(message, store=STORE)
        if outcome["status"] >= HTTPStatus.MULTIPLE_CHOICES:
            raise refusal(outcome["status"], outcome)


def _bundle_id(number: int) -> str:
    return f"clocks/{number}"


def _control(documents: Iterable[Body]) -> Control:
    stamp: Stamp | None = None
    clocks: dict[int, int] = {}
    places: dict[str, Place] = {}
    for document in documents:
        payload = document["_source"]["control"]
        if "_seq_no" in document:
            places[document["_id"]] = Place(
                seq_no=document["_seq_no"], primary_term=document["_primary_term"]
            )
        if document["_id"] == _STAMP:
            stamp = Stamp(**payload)
        else:
            held = cast("Mapping[str, int]", payload["clocks"])
            clocks.update({int(ns_id): clock for ns_id, clock in held.items()})
    if stamp is None:
        message = "the Elasticsearch index has no stamp: it is built again by itself"
        raise Corrupt(message)
    return Control(stamp=stamp, clocks=clocks, places=places)
