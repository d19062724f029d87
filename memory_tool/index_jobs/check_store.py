"""The check and the repair of an opened store."""

from collections.abc import Callable, Sequence
from functools import partial

from memory_tool.assembly import Stores
from memory_tool.index_jobs.backfill import Backfill
from memory_tool.index_jobs.check import StoreCheck
from memory_tool.index_jobs.check_queries import SAMPLE
from memory_tool.index_jobs.repair import StoreRepair
from memory_tool.job_values import Duty, MayGoOn
from memory_tool.model import StoredRow


def check_of(stores: Stores, *, sample: int = SAMPLE) -> StoreCheck | None:
    """The check; ``None`` for a record store that can't tell what its indexes should hold."""
    if stores.truth_side is None:
        return None
    return StoreCheck(stores.truth_side, stores.inspected, sample=sample)


def daily_checks(now: Callable[[], Stores]) -> tuple[Duty, ...]:
    """A look at each index and at the truth every day, told to the log.

    By the index: of a folder's indexes each host looks at its own, at a shared one any host.
    ``now`` tells the stores of the moment: after a change of the model they are others.
    """

    def look(subject: str, _may_go_on: MayGoOn) -> None:
        check = check_of(now())
        if check is not None:
            check.tell_log(subject)

    first = check_of(now())
    return tuple(
        Duty(kind="check", target=subject, every="day", run=partial(look, subject))
        for subject in (first.subjects if first else ())
    )


def repair_of(
    stores: Stores, complete: Callable[[Sequence[StoredRow]], int], *, sample: int = SAMPLE
) -> StoreRepair | None:
    """The repair; ``complete`` embeds rows. ``None`` where there is no check or nobody applies."""
    check = check_of(stores, sample=sample)
    if check is None or stores.truth_side is None or stores.background is None:
        return None
    fill_gaps = Backfill(stores.gaps, complete).run if stores.gaps else lambda: 0
    return StoreRepair(check, stores.truth_side, background=stores.background, fill_gaps=fill_gaps)
