"""Memories that were kept elsewhere, into a store: item by item, in grouped commits."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from memory_manage.exchange_export import exchange_of
from memory_manage.exchange_files import Numbered
from memory_manage.exchange_formats import READERS, Form
from memory_manage.exchange_lines import Tree, read_header, read_memory, read_tree
from memory_tool.errors import Corrupt, ThreefoldError
from memory_tool.model import OnDuplicate, Status, WriteResult
from memory_tool.scope import Namespace
from memory_tool.tool import MemoryTool
from memory_tool.write_changes import Arrival

FAILURES_KEPT: Final = 100
"""Most failures that a report keeps; all of them are told as they happen, and counted."""

HELD_MAX: Final = 1000
"""Most items that wait for others of their namespace: files may have them in any order."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that did not go in, by the number of its line or place, and why."""

    number: int
    error: str


@dataclass(frozen=True, slots=True)
class _Bound:
    """An item on its way to its namespace."""

    number: int
    place: Namespace
    arrival: Arrival


_Entry: TypeAlias = Failure | Tree | _Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """How an import reads its items.

    Attributes:
        form: Who wrote them; ``None``: Threefold, as the first one has to say.
        namespace: Where all of them go; ``None``: where each one says.
        on_duplicate: When the same text is there under another id, or another text under the same
            id; ``None``: as an item says itself, else as ``skip``.
        advance: Hears how many items each step took.
        failed: Hears of each item that did not go in.
    """

    form: Form | None = None
    namespace: Namespace | None = None
    on_duplicate: OnDuplicate | None = None
    advance: Callable[[int], None] = lambda _done: None
    failed: Callable[[Failure], None] = lambda _failure: None


@dataclass(slots=True)
class ImportReport:
    """What became of the items of an import, by status, and the first that failed."""

    counts: Counter[Status] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether all went in, or was there."""
        return not self.counts[Status.FAILED]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        told = (Status.ADDED, Status.UPDATED, Status.DUPLICATE, Status.SKIPPED, Status.FAILED)
        return {
            **{status.value: self.counts[status] for status in told},
            "failures": [dataclasses.asdict(failure) for failure in self.failures],
        }


def import_memories(
    tool: MemoryTool, items: Iterable[Numbered], *, options: ImportOptions
) -> ImportReport:
    """Take in memories. A bad one is told, and leaves the others alone.

    To do it again, or to go on with what broke off, is harmless: what has an id or key of its own
    and is there already is left as it is.

    Raises:
        InputError: The items are none of the named format.
        Corrupt: The end of an export is missing; what came before it is in.
        Unavailable: The store can't be reached; what was told before is in.
    """
    report, groups = ImportReport(), _Groups(tool, options)
    try:
        for entry in _entries(iter(items), options):
            if isinstance(entry, Failure):
                _note(report, [(entry.number, _failed(entry.error))], options=options)
            elif isinstance(entry, Tree):
                # Behind the memories before it: they make the namespace.
                _note(report, groups.commit(), options=options)
                exchange_of(tool).grow(entry.namespace, entry.nodes)
            else:
                _note(report, groups.take(entry), options=options)
    finally:
        # Also what stands before the place where a file was cut off.
        _note(report, groups.commit(), options=options)
        report.failures.sort(key=lambda failure: failure.number)
    return report


def _failed(error: str) -> WriteResult:
    return WriteResult(status=Status.FAILED, error=error)


def _note(
    report: ImportReport,
    results: Iterable[tuple[int, WriteResult]],
    *,
    options: ImportOptions,
) -> None:
    for number, result in results:
        report.counts[result.status] += 1
        options.advance(1)
        if result.status is Status.FAILED:
            failure = Failure(number, result.error or "")
            options.failed(failure)
            if len(report.failures) < FAILURES_KEPT:
                report.failures.append(failure)


class _Groups:
    """Items that are committed together, a group for each namespace, none of them twice."""

    def __init__(self, tool: MemoryTool, options: ImportOptions) -> None:
        self._tool = tool
        self._rule = options.on_duplicate
        self._bound: dict[Namespace, list[_Bound]] = {}
        self._rows: dict[Namespace, set[object]] = {}
        self._held = 0

    def take(self, one: _Bound) -> list[tuple[int, WriteResult]]:
        """Add an item; what became of those that had to be stored for it."""
        place, rows = one.place, _rows_of(one.arrival)
        full = len(self._bound.get(place, ())) >= self._tool.settings.group_items
        done = []
        if full or not rows.isdisjoint(self._rows.get(place, ())):
            done = self._commit(place)
        elif self._held >= HELD_MAX:
            done = self.commit()
        if self._rule is not None:
            new = dataclasses.replace(one.arrival.new, on_duplicate=self._rule)
            one = dataclasses.replace(one, arrival=dataclasses.replace(one.arrival, new=new))
        self._bound.setdefault(place, []).append(one)
        self._rows.setdefault(place, set()).update(rows)
        self._held += 1
        return done

    def commit(self) -> list[tuple[int, WriteResult]]:
        """Store every group; the items' numbers with what became of them."""
        return [result for place in tuple(self._bound) for result in self._commit(place)]

    def _commit(self, place: Namespace) -> list[tuple[int, WriteResult]]:
        bound = self._bound.pop(place)
        del self._rows[place]
        self._held -= len(bound)
        results = self._tool.adopt(place, [one.arrival for one in bound])
        return [(one.number, result) for one, result in zip(bound, results, strict=True)]


def _rows_of(arrival: Arrival) -> set[object]:
    """What two items share when they may mean the same row."""
    named = {("id", arrival.kept.memory_id), ("key", arrival.new.key)}
    return {("text", arrival.new.content), *(one for one in named if one[1] is not None)}


# ── Reading ──


def _entries(items: Iterator[Numbered], options: ImportOptions) -> Iterator[_Entry]:
    if options.form in (None, "threefold"):
        return _export_entries(items, options)
    read = READERS[options.form]

    def bound(one: Numbered) -> _Bound:
        return _Bound(one.number, *read(one.item, options.namespace))

    return (_entry(one, bound) for one in items)


def _export_entries(items: Iterator[Numbered], options: ImportOptions) -> Iterator[_Entry]:
    """The lines of our own export, which has to begin and to end."""
    read_header(_mapping(next(items, Numbered(1))))
    seen = 0

    def tree(one: Numbered) -> Tree:
        return read_tree(_mapping(one), options.namespace)

    def bound(one: Numbered) -> _Bound:
        return _Bound(one.number, *read_memory(_mapping(one), options.namespace))

    said: Mapping[str, Any] = {}
    for one in items:
        said = _mapping(one)
        if said.get("end") is True:
            break
        if "tree" in said:
            yield _entry(one, tree)
            continue
        seen += 1
        yield _entry(one, bound)
    if said.get("end") is not True:
        message = "the export was cut off: its last line is missing"
        raise Corrupt(message)
    if said.get("memories") != seen:
        message = f"the export has {seen} memories, and says that it had {said.get('memories')}"
        raise Corrupt(message)


def _mapping(one: Numbered) -> Mapping[str, Any]:
    return one.item if isinstance(one.item, Mapping) else {}


def _entry(one: Numbered, read: Callable[[Numbered], _Entry]) -> _Entry:
    if one.error is not None:
        return Failure(one.number, one.error)
    try:
        return read(one)
    except ThreefoldError as error:
        return Failure(one.number, f"{type(error).__name__}: {error}")
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        return Failure(one.number, f"it can't be understood: {error}")
