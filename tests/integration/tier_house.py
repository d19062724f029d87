"""A store whose memories age at a test's word, with its archive and its jobs, without indexes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from memory_tool.adapters.archive_folder import ArchiveFolder
from memory_tool.adapters.postgres_change_figures import PostgresChangeFigures
from memory_tool.adapters.postgres_forgetting import PostgresUseLog
from memory_tool.adapters.postgres_reader import PostgresRecordReader
from memory_tool.adapters.postgres_record_store import PostgresRecordStore
from memory_tool.adapters.postgres_server import Role
from memory_tool.adapters.postgres_tiers import PostgresArchiveRegister, PostgresTiers
from memory_tool.archive_ports import Archive
from memory_tool.index_jobs.archive_upkeep import ArchiveUpkeep
from memory_tool.index_jobs.pace import Pace
from memory_tool.index_jobs.tiers import TierParts, Tiers
from memory_tool.model import Memory, MemoryId, NewMemory, Patch
from memory_tool.ports import RecordStore
from memory_tool.scope import Namespace, Scope
from memory_tool.text.summary import summarise
from memory_tool.tier_ports import ArchiveRegister, TierRules, UseLog
from memory_tool.write_changes import Change, Revise
from tests.factories import ANNA, commit_of, put
from tests.services.postgres import Database

ENGLISH = " ".join(
    f"Ledger number {number} of the harbour is blue and was bought by Anna in {1900 + number}."
    for number in range(12)
)
CHINESE = "".join(
    f"港口的第{number}本账本是蓝色的，由安娜在{1900 + number}年购买。" for number in range(30)
)


@dataclass(kw_only=True)
class TierHouse:
    """The parts, which a test may replace by spoiled ones before it moves."""

    database: Database
    folder: Path
    records: PostgresRecordStore
    reader: PostgresRecordReader
    tiers: PostgresTiers
    register: ArchiveRegister
    jobs: RecordStore
    figures: PostgresChangeFigures
    uses: UseLog
    archive: Archive = field(init=False)

    def __post_init__(self) -> None:
        """With an archive in the folder."""
        self.archive = ArchiveFolder(self.folder)

    def write(self, *changes: Change, namespace: Namespace = ANNA) -> None:
        """Commit changes as the app does."""
        for result in self.records.commit(commit_of(changes, namespace)):
            assert result.error is None, result.error

    def add(self, *news: NewMemory | str, namespace: Namespace = ANNA) -> list[MemoryId]:
        """Commit new memories; their ids."""
        results = self.records.commit(commit_of(list(map(put, news)), namespace))
        return [result.id for result in results if result.id is not None]

    def fill(self) -> dict[MemoryId, str]:
        """Three that are due to become cold, one with an old version; and one due to be warm."""
        ids = self.add(ENGLISH, CHINESE, "likes green tea")
        self.write(Revise(memory_id=ids[0], patch=Patch(tags=("harbour",))))
        (warm,) = self.add("likes black coffee")
        self.age(40, *ids)
        self.age(10, warm)
        said = [ENGLISH, CHINESE, "likes green tea", "likes black coffee"]
        return dict(zip([*ids, warm], said, strict=True))

    def age(self, days: float, *ids: MemoryId) -> None:
        """Let memories have been made and changed that many days earlier."""
        self.run(
            "UPDATE threefold.memory SET created_at = created_at - make_interval(secs => %(secs)s),"
            " updated_at = updated_at - make_interval(secs => %(secs)s)"
            " WHERE id = ANY (%(ids)s::uuid[])",
            secs=days * 86_400,
            ids=list(ids),
        )

    def move(self) -> int:
        """Move what is due, once."""
        parts = TierParts(
            store=self.tiers, records=self.jobs, archive=self.archive, summarise=summarise
        )
        pace = Pace(self.figures, list, most=0, hurry=lambda: None)
        return Tiers(parts, rules=TierRules(), pace=pace).move(lambda: True)

    def upkeep(self) -> None:
        """Write files of the archive again, and remove those that nobody needs."""
        ArchiveUpkeep(self.archive, self.register).run(lambda: True)

    def memory(self, memory_id: MemoryId, namespace: Namespace = ANNA) -> Memory:
        """A memory that has to be there."""
        return self.reader.fetch(Scope.of(namespace), [memory_id])[memory_id].memory

    def rows(self) -> Mapping[MemoryId, Mapping[str, Any]]:
        """The rows as they are stored."""
        records = self.read(
            "SELECT encode(uuid_send(id), 'hex'), to_jsonb(m) FROM threefold.memory m"
        )
        return dict(records)

    def run(self, query: str, **values: object) -> None:
        """A statement of the superuser."""
        with self.database.admin() as connection:
            connection.execute(query.encode(), values or None)

    def read(self, query: str, **values: object) -> Sequence[tuple[Any, ...]]:
        """What a query of the superuser finds."""
        with self.database.admin() as connection:
            return connection.execute(query.encode(), values or None).fetchall()

    def use(self, *ids: MemoryId) -> None:
        """Note that memories were returned just now."""
        rows = self.reader.fetch(Scope.of(ANNA), ids)
        self.uses.add({(row.ns_id, memory_id): (1, 0.0) for memory_id, row in rows.items()})

    def tiers_of(self, *ids: MemoryId) -> list[str]:
        """The tier of each memory."""
        return [self.memory(memory_id).tier.value for memory_id in ids]

    def words(self, memory_id: MemoryId) -> Sequence[tuple[Any, ...]]:
        """The tokens of a memory's chunks, as they are stored."""
        return self.read(
            "SELECT ordinal, words, bigrams FROM threefold.chunk"
            " WHERE memory_id = %(id)s::uuid ORDER BY ordinal",
            id=memory_id,
        )

    def swap(self, first: MemoryId, second: MemoryId) -> None:
        """Let each of two memories be read from the other's place."""
        self.run(
            "UPDATE threefold.memory m SET archive = o.archive FROM threefold.memory o"
            " WHERE m.id = ANY (%(ids)s::uuid[]) AND o.id = ANY (%(ids)s::uuid[]) AND o.id <> m.id",
            ids=[first, second],
        )

    def let_time_pass(self) -> None:
        """Every reader of a file that was switched from has finished."""
        self.run("UPDATE threefold.archive_file SET gone_since = gone_since - interval '1 hour'")

    def archived_text(self) -> str:
        """All that the files of the archive say."""
        unpacked = zstandard.ZstdDecompressor()
        texts = [
            unpacked.stream_reader(path.read_bytes(), read_across_frames=True).read().decode()
            for path in sorted(self.folder.glob("*"))
        ]
        return "".join(texts)

    def assert_whole(self, texts: Mapping[MemoryId, str]) -> None:
        """Each memory reads as it was written, is in one tier, and nothing of it is missing.

        A cold one is named by the archive and has a summary, any other has its text in its row; the
        count of the clock is right, and no number was given out twice or left out.
        """
        rows = self.rows()
        for memory_id, text in texts.items():
            assert self.memory(memory_id).content == text
            assert self.memory(memory_id).flags == ()
            row = rows[memory_id]
            assert (row["tier"] == "cold") == (row["archive"] is not None)
            if row["tier"] != "cold":
                assert row["content"] == text
        ((lowered, nseq, highest),) = self.read(
            "SELECT lowered, nseq, (SELECT max(nseq) FROM threefold.memory) FROM threefold.ns_clock"
        )
        assert lowered == sum(row["tier"] != "hot" for row in rows.values())
        assert nseq == highest
        named = {row["archive"]["file"] for row in rows.values() if row["archive"]}
        assert named <= set(self.register.known())
        assert named <= {path.name for path in self.folder.glob("*")}


@contextmanager
def tier_house(database: Database, folder: Path) -> Iterator[TierHouse]:
    """An empty one."""
    with database.pool(Role.APP, size=2) as app, database.pool(Role.WORKER, size=2) as worker:
        archive = ArchiveFolder(folder)
        records = PostgresRecordStore(app, archive)
        yield TierHouse(
            database=database,
            folder=folder,
            records=records,
            reader=PostgresRecordReader(app, records),
            tiers=PostgresTiers(worker),
            register=PostgresArchiveRegister(worker),
            jobs=PostgresRecordStore(worker, archive),
            figures=PostgresChangeFigures(worker),
            uses=PostgresUseLog(app),
        )
