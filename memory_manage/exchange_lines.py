"""Our own export format: a line of JSON for each memory, and back. Pure.

{"threefold": "export", "format": 1, …}                    the header
{"namespace": {"user": "u1"}, "id": "…", "content": …}     a memory with all that is known of it
{"namespace": {"user": "u1"}, "tree": […]}                 the tree of a namespace, if it has one
{"end": true, "memories": 1}                               the last line: the file is whole
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from memory_manage.exchange_formats import id_in
from memory_manage.intake import time_of
from memory_tool.errors import InputError, InvalidEmbedding
from memory_tool.exchange_ports import ExportedChunk, ExportedMemory, TreeNode
from memory_tool.model import Memory, NewMemory, OnDuplicate, State, Turn
from memory_tool.port_values import Attached
from memory_tool.scope import Namespace
from memory_tool.validation import checked_id, memory_type_of
from memory_tool.write_changes import Arrival, Kept, Part

FORMAT: Final = 1

_HALF: Final = np.dtype("<f2")
_PLAIN: Final = ("importance", "pinned", "confidence", "source", "metadata", "key", "run_id")
_TIMES: Final = ("created_at", "updated_at", "occurred_at", "expires_at", "verified_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the first line says: of which store and moment."""

    store: str
    exported_at: datetime


def header_line(header: Header) -> bytes:
    """The first line."""
    said = {**asdict(header), "exported_at": header.exported_at.isoformat()}
    return line_of({"threefold": "export", "format": FORMAT, **said})


def read_header(said: Mapping[str, Any]) -> Header:
    """What the first line says.

    Raises:
        InputError: It is no header, or of another format.
    """
    if said.get("threefold") != "export":
        message = "this is no export of Threefold: name its --format"
        raise InputError(message)
    if said.get("format") != FORMAT:
        message = f"the export has format {said.get('format')!r}, this version reads {FORMAT}"
        raise InputError(message)
    at = time_of(said.get("exported_at"), "exported_at") or datetime.now(UTC)
    return Header(store=str(said.get("store")), exported_at=at)


def end_line(memories: int) -> bytes:
    """The last line, without which a file was cut off."""
    return line_of({"end": True, "memories": memories})


def line_of(document: Mapping[str, object]) -> bytes:
    """A line of JSON, Chinese readable."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode() + b"\n"


# ── Out ──


def memory_line(exported: ExportedMemory) -> bytes:
    """A memory with all that is known of it; what it doesn't have is left out."""
    row, attached = exported.row, exported.attached
    return line_of(
        {
            "namespace": namespace_json(row.memory.namespace),
            **_memory_json(row.memory),
            "unique": row.dedup_hash is not None,
            **_if_any(
                space=exported.space,
                state=None if row.state is State.LIVE else row.state.value,
                chunks=[_if_any(**asdict(chunk)) for chunk in exported.chunks],
                versions=[_memory_json(version) for version in attached.versions],
                relations=list(attached.relations),
                reviews=list(attached.reviews),
            ),
        }
    )


def tree_line(namespace: Namespace, nodes: tuple[TreeNode, ...]) -> bytes:
    """The tree of a namespace."""
    return line_of(
        {"namespace": namespace_json(namespace), "tree": [asdict(node) for node in nodes]}
    )


def namespace_json(namespace: Namespace) -> object:
    """A namespace as its address says it: an object of ids, or a list of segments."""
    return json.loads(namespace.address)


def _memory_json(memory: Memory) -> Mapping[str, object]:
    plain = {name: getattr(memory, name) for name in _PLAIN}
    times = {name: _iso(getattr(memory, name)) for name in _TIMES}
    return {
        "id": memory.id,
        "content": memory.content,
        "type": memory.type.value,
        "version": memory.version,
        **_if_any(
            **{name: value for name, value in plain.items() if value is not False},
            tags=list(memory.tags),
            turn=None if memory.turn is None else asdict(memory.turn),
            **times,
        ),
    }


def _if_any(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value not in (None, [], {})}


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


# ── In ──


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A tree on its way in."""

    namespace: Namespace
    nodes: tuple[TreeNode, ...]


def read_tree(said: Mapping[str, Any], namespace: Namespace | None) -> Tree:
    """What :func:`tree_line` wrote; ``namespace`` is where it shall go instead.

    Raises:
        InputError: It can't be understood.
    """
    try:
        nodes = tuple(
            TreeNode(name=node["name"], parent=node["parent"], properties=node["properties"])
            for node in said["tree"]
        )
    except (KeyError, TypeError) as error:
        message = "the tree can't be understood"
        raise InputError(message) from error
    for place, node in enumerate(nodes):
        if node.parent is not None and not 0 <= node.parent < place:
            message = f"node {node.name!r} of the tree stands before its parent"
            raise InputError(message)
    return Tree(namespace=namespace or read_namespace(said.get("namespace")), nodes=nodes)


def read_namespace(said: object) -> Namespace:
    """What :func:`namespace_json` wrote.

    Raises:
        InputError: It can't be a namespace.
    """
    if isinstance(said, list):
        return Namespace(path=tuple(said))
    if not isinstance(said, Mapping) or not set(said) <= {"project", "user", "agent"}:
        message = f"{said!r} is no namespace"
        raise InputError(message)
    return Namespace(**said)


def read_memory(said: Mapping[str, Any], namespace: Namespace | None) -> tuple[Namespace, Arrival]:
    """What :func:`memory_line` wrote, and where it goes; ``namespace`` is another place.

    Raises:
        InputError: A value can't be.
    """
    before = read_namespace(said.get("namespace"))
    place = namespace or before
    memory = _memory(said, before=before, place=place)
    chunks = [ExportedChunk(**{"vector": None, **chunk}) for chunk in said.get("chunks", ())]
    arrival = Arrival(
        new=NewMemory(
            content=memory.content,
            type=memory.type,
            tags=memory.tags,
            occurred_at=memory.occurred_at,
            expires_at=memory.expires_at,
            turn=memory.turn,
            # What could stand beside its like there, can here.
            on_duplicate=OnDuplicate.SKIP if said.get("unique", True) else OnDuplicate.KEEP,
            **{name: getattr(memory, name) for name in _PLAIN},
        ),
        kept=Kept(
            memory_id=memory.id,
            created_at=memory.created_at,
            updated_at=memory.updated_at,
            version=memory.version,
            verified_at=memory.verified_at,
            state=State(said.get("state", State.LIVE)),
            attached=Attached(
                versions=tuple(
                    _memory(one, before=before, place=place) for one in said.get("versions", ())
                ),
                relations=tuple(
                    {**one, "to": id_in(place, one["to"], before=before)}
                    for one in said.get("relations", ())
                ),
                reviews=tuple(said.get("reviews", ())),
            ),
        ),
        parts=tuple(part for chunk in chunks if (part := _part(chunk)) is not None),
        space=said.get("space"),
    )
    return place, arrival


def _memory(said: Mapping[str, Any], *, before: Namespace, place: Namespace) -> Memory:
    values: dict[str, Any] = {name: time_of(said.get(name), name) for name in _TIMES}
    if values["created_at"] is None or values["updated_at"] is None:
        message = "a memory needs created_at and updated_at"
        raise InputError(message)
    turn, version = said.get("turn"), said.get("version")
    if type(version) is not int or version < 1:
        message = f"version is a whole number from 1, not {version!r}"
        raise InputError(message)
    return Memory(
        id=id_in(place, checked_id(said.get("id")), before=before),
        namespace=place,
        content=said.get("content", ""),
        type=memory_type_of(said.get("type", "")),
        version=version,
        tags=tuple(said.get("tags", ())),
        turn=None if turn is None else Turn(**turn),
        **values,
        **{name: said[name] for name in _PLAIN if name in said},
    )


def _part(chunk: ExportedChunk) -> Part | None:
    if chunk.vector is None:
        return None
    try:
        halves = np.frombuffer(base64.b64decode(chunk.vector, validate=True), _HALF)
    except ValueError as error:
        message = "a vector is no base 64 of half floats"
        raise InvalidEmbedding(message) from error
    return Part(start=chunk.start, stop=chunk.stop, vector=halves.astype(np.float32))
