"""What every archive has to do."""

import dataclasses

import pytest

from memory_tool.archive_ports import Archive, ArchiveRecord, ChunkPlace
from memory_tool.errors import Corrupt
from memory_tool.model import Json, MemoryId
from tests.factories import new_id


def record_of(
    content: str, *, memory_id: MemoryId | None = None, versions: int = 0
) -> ArchiveRecord:
    """A record of a memory that says this."""
    name = memory_id or new_id()
    image: dict[str, Json] = {
        "id": name,
        "content": content,
        "nseq": 3,
        "tags": ["茶"],
        "metadata": {"a": 1.5},
    }
    return ArchiveRecord(
        id=name,
        namespace="u:anna",
        image=image,
        versions=tuple(
            {"version": number, "replaced_at": "2025-07-01T12:00:00+00:00", "image": image}
            for number in range(1, versions + 1)
        ),
        chunks=(ChunkPlace(ordinal=0, start=0, stop=len(content), language="zh"),),
    )


class ArchiveContract:
    """Subclass it for an adapter and override ``archive``."""

    @pytest.fixture
    def archive(self) -> Archive:
        """An empty one."""
        raise NotImplementedError

    def test_what_is_written_is_read_back(self, archive: Archive) -> None:
        """Every field, every version, in any order, of short and of long texts."""
        long = record_of("港口的账本是蓝色的。\n" * 20_000, versions=3)
        records = [record_of(f"note {number}") for number in range(300)]
        records[40:40] = [long]
        file = archive.write(7, records)
        assert file.ns_id == 7
        assert set(file.places) == {record.id for record in records}
        for record in reversed(records):
            assert archive.read(file.places[record.id]) == record

    def test_a_written_file_is_listed_by_name_and_size(self, archive: Archive) -> None:
        """So that one which no row knows can be found."""
        assert archive.files() == {}
        file = archive.write(1, [record_of("one")])
        (found,) = archive.files().items()
        assert found[0] == file.name
        assert found[1].size == file.size > 0
        assert 0 <= found[1].age < 60

    def test_a_removed_file_is_gone_and_may_be_removed_again(self, archive: Archive) -> None:
        """A job that was killed after removing it removes it once more."""
        record = record_of("one")
        file = archive.write(1, [record])
        archive.remove(file.name)
        archive.remove(file.name)
        assert archive.files() == {}
        with pytest.raises(Corrupt, match=file.name):
            archive.read(file.places[record.id])

    def test_another_record_is_never_given_out(self, archive: Archive) -> None:
        """Neither that of another line or part, nor one that reads as it never did."""
        first, second = record_of("one"), record_of("two")
        file = archive.write(1, [first, second])
        place = file.places[first.id]
        for wrong in (
            dataclasses.replace(place, line=1),
            dataclasses.replace(place, line=99),
            dataclasses.replace(place, sha256="0" * 64),
            dataclasses.replace(place, at=file.size + 5),
        ):
            with pytest.raises(Corrupt, match=file.name):
                archive.read(wrong)

    def test_no_name_leads_out_of_the_archive(self, archive: Archive) -> None:
        """A row of the store may be damaged as well."""
        record = record_of("one")
        place = archive.write(1, [record]).places[record.id]
        with pytest.raises(Corrupt):
            archive.read(dataclasses.replace(place, file=f"../{place.file}"))
