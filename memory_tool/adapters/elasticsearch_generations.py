"""Generations of an Elasticsearch index: each an index of its own with an own write alias.

A bulk goes through the alias with ``require_alias``. Once the alias is gone, a late bulk of an old
writer fails, instead of making a new index with guessed fields or reviving a deleted memory.
"""

import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memory_tool.adapters.elasticsearch_connection import (
    STORE,
    Body,
    ElasticsearchConnection,
    translated,
)
from memory_tool.adapters.elasticsearch_layout import differences, fingerprint, mappings_of
from memory_tool.errors import Corrupt, SettingsError, Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """How an index is spread, and how often it shows what is new by itself."""

    shards: int = 1
    replicas: int = 1
    refresh_seconds: float = 30.0

    def settings(self) -> Body:
        """The settings that say so."""
        return {
            "number_of_shards": self.shards,
            "number_of_replicas": self.replicas,
            # The server refuses fractions, such as half a second.
            "refresh_interval": f"{round(1000 * self.refresh_seconds)}ms",
        }


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Generation:
    """One index: its number, and its name, which no other attempt ever had."""

    number: int
    index: str

    @property
    def alias(self) -> str:
        """What it is written through."""
        return f"{self.index}-write"


class Generations:
    """The indices of one target of one store on one server."""

    def __init__(self, connection: ElasticsearchConnection, *, family: str, copies: Copies) -> None:
        """Name the family: every index is called ``<family>-<number>-<random>``."""
        self.connection = connection
        self._family = family
        self._copies = copies
        self._well = ""
        self._name = re.compile(rf"{re.escape(family)}-(\d{{6,}})-[0-9a-f]{{8}}")

    def named(self, index: str) -> Generation | None:
        """The generation whose index has this name; ``None`` if it is not of this family."""
        found = self._name.fullmatch(index)
        return Generation(number=int(found[1]), index=index) if found else None

    def all(self) -> list[Generation]:
        """Every generation that is there, oldest first."""
        with translated():
            answer = self.connection.client.indices.get_alias(
                index=f"{self._family}-*", allow_no_indices=True
            )
        generations = [self.named(name) for name in answer]
        return sorted(generation for generation in generations if generation is not None)

    def create(self, definition: Body, *, above: int) -> Generation:
        """Make the next index, and see that it became what was asked for.

        Raises:
            SettingsError: A template of the server changes our fields.
        """
        number = max([above, *(there.number for there in self.all())]) + 1
        generation = Generation(
            number=number, index=f"{self._family}-{number:06d}-{secrets.token_hex(4)}"
        )
        settings = {**definition["settings"], **self._copies.settings()}
        client = self.connection.patient()
        with translated():
            answer = client.indices.create(
                index=generation.index,
                settings={"index": settings},
                mappings=mappings_of(definition),
                aliases={generation.alias: {"is_write_index": True}},
                wait_for_active_shards=1,
            )
        if not answer["shards_acknowledged"]:
            self.remove([generation])
            message = "Elasticsearch has no place for a new index: see its cluster health"
            raise Unavailable(message, store=STORE)
        wrong = self.faults(generation.index, definition)
        if wrong:
            self.remove([generation])
            message = (
                f"an index template of Elasticsearch changes our indices ({wrong[0]}):"
                f" let no template match {self._family}-*"
            )
            raise SettingsError(message)
        return generation

    def faults(self, index: str, definition: Body) -> list[str]:
        """Where an index is not what it shall be.

        Raises:
            Corrupt: There is no such index.
        """
        with translated():
            found = self.connection.client.indices.get(index=index)[index]
        wanted = {
            "settings": {"index": definition["settings"]},
            # Source filtering is written back in another form by some versions.
            "mappings": {k: v for k, v in definition["mappings"].items() if k != "_source"},
        }
        return differences(wanted, found)

    def check(self, index: str, definition: Body) -> None:
        """Refuse an index whose fields are not those that it was made with.

        Raises:
            Corrupt: Somebody changed them. Says what differs and the command that mends it.
            Unavailable: It was made by another version of ours, or with other settings.
        """
        with translated():
            found = self.connection.client.indices.get_mapping(index=index)[index]
        made_by = found["mappings"].get("_meta", {}).get("fingerprint")
        if made_by is not None and made_by != fingerprint(definition):
            raise other_definition(index)
        wrong = self.faults(index, definition)
        if wrong:
            message = (
                f"somebody changed the index {index} ({'; '.join(wrong[:3])}):"
                " threefold rebuild --full makes it anew"
            )
            raise Corrupt(message, command="threefold rebuild --full")

    def check_once(self, index: str, definition: Body) -> None:
        """The same, but an index that was well once is not asked again."""
        if index != self._well:
            self.check(index, definition)
            self._well = index

    def adjust(self, generation: Generation) -> None:
        """Bring copies and refresh of an index to the present settings, if they differ."""
        # The number of shards is for good.
        wanted = {
            name: value
            for name, value in self._copies.settings().items()
            if name != "number_of_shards"
        }
        with translated():
            found = self.connection.client.indices.get_settings(index=generation.index)
            there = found[generation.index]["settings"]["index"]
            if differences(wanted, there):
                self.connection.client.indices.put_settings(
                    index=generation.index, settings={"index": wanted}
                )

    def end_writing(self, generation: Generation) -> None:
        """Take the write alias away: whoever still writes there fails from now on."""
        with translated():
            self.connection.client.options(ignore_status=404).indices.delete_alias(
                index=generation.index, name=generation.alias
            )

    def begin_writing(self, generation: Generation) -> None:
        """Give back the write alias of an index that nobody wrote to for a while."""
        with translated():
            self.connection.client.indices.put_alias(
                index=generation.index, name=generation.alias, is_write_index=True
            )

    def retire(self, *, kept: Collection[str | None], written: Collection[str | None]) -> None:
        """Nobody writes but to those named as ``written``; what is not ``kept`` is removed."""
        for there in self.all():
            if there.index not in written:
                self.end_writing(there)
            if there.index not in kept:
                self.remove([there])

    def count(self, index: str) -> int:
        """How many chunks an index holds: documents that name their namespace."""
        with translated():
            answer = self.connection.patient().count(index=index, query={"exists": {"field": "ns"}})
        return int(answer["count"])

    def expunge(self, index: str) -> None:
        """Rewrite the files that are full of deleted documents; searches go on."""
        with translated():
            self.connection.patient().indices.forcemerge(
                index=index, only_expunge_deletes=True, wait_for_completion=True
            )

    def remove(self, generations: Sequence[Generation]) -> None:
        """Delete indices; those that are gone already are no error."""
        client = self.connection.patient().options(ignore_status=404)
        for generation in generations:
            with translated():
                client.indices.delete(index=generation.index)


def other_definition(index: str) -> Unavailable:
    """The error of who reads an index that another version, or other settings, made."""
    message = (
        f"the index {index} was made by another version of Threefold, or with other settings than"
        " these: give all processes the same, or run threefold rebuild --full with these"
    )
    return Unavailable(message, store=STORE)
