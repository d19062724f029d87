"""How the targets of a process are grouped under leases, and what is done beside applying."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory_tool.index_jobs.agenda import Agenda
from memory_tool.index_jobs.applier import Applier
from memory_tool.index_jobs.background import BackgroundApplier
from memory_tool.index_jobs.renewals import Renewals
from memory_tool.index_jobs.scrub import Scrub
from memory_tool.index_jobs.target_group import TargetGroup
from memory_tool.inventory_ports import TruthInventory
from memory_tool.job_ports import Jobs, Lease, Scrubbed, TargetRegistry
from memory_tool.job_values import STORE, Duty, MayGoOn
from memory_tool.log import logger
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.ports import VectorIndex
from memory_tool.renewal_ports import GenerationCatalogue, Renewable


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """What following the log of a store takes.

    Attributes:
        log: The log.
        jobs: The jobs of the store.
        registry: Knows which targets are followed, where the store keeps that.
        lease_of: The lease of a shared target, by its name; ``None`` where the store is this
            process's alone, and all targets are the folder's.
        duties: Further duties for the store as a whole.
        renewal_of: How a target is built anew beside what is read; without, it is emptied.
        catalogue: Notes the builds of each target.
        truth: What each build is compared with.
        daily: Whether full builds are offered each day by themselves.
    """

    log: ChangeLog
    jobs: Jobs
    registry: TargetRegistry | None = None
    lease_of: Callable[[str], Lease] | None = None
    duties: tuple[Duty, ...] = ()
    renewal_of: Callable[[IndexTarget], Renewable | None] = lambda _target: None
    catalogue: GenerationCatalogue | None = None
    truth: TruthInventory | None = None
    daily: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTargets:
    """The targets of a data folder, which one process of its host brings forward.

    ``duties`` are further ones of that process.
    """

    name: str
    lease: Lease
    targets: Sequence[IndexTarget]
    vector_index: VectorIndex
    duties: tuple[Duty, ...] = ()


def background_of(
    following: Following, folder: FolderTargets, *, shared: Sequence[IndexTarget] = ()
) -> BackgroundApplier:
    """Everything that brings targets forward: those of the folder together, a shared one alone."""
    lease_of = following.lease_of
    own = folder.targets if lease_of else [*folder.targets, *shared]
    embedded = _group(following, folder.name, lease=folder.lease, targets=own)
    groups = [embedded] if own else []
    if lease_of:
        groups += [
            _group(following, target.name, lease=lease_of(target.name), targets=[target])
            for target in shared
        ]
    index = folder.vector_index
    if isinstance(index, Scrubbed) and index.target in embedded.targets:
        scrub = Scrub(index, pointer=following.log.pointer, group=embedded)
        embedded.also(Duty(kind="scrub", target=folder.name, every="day", run=scrub.run))
    for duty in folder.duties:
        embedded.also(duty)
    duties = list(following.duties)
    if following.registry is not None:
        names = [name for group in groups for name in group.targets]
        retire = _Retire(following.registry, names)
        duties.append(Duty(kind="retire", target=STORE, every="hour", run=retire.run))
    return BackgroundApplier(groups, Agenda(following.jobs, duties))


def _group(
    following: Following, name: str, *, lease: Lease, targets: Sequence[IndexTarget]
) -> TargetGroup:
    registry = following.registry
    found = map(following.renewal_of, targets)
    own = Renewals(
        [renewal for renewal in found if renewal is not None],
        catalogue=following.catalogue,
        truth=following.truth,
    )
    return TargetGroup(
        name,
        applier=Applier(following.log, targets, renewals=own),
        lease=lease,
        jobs=following.jobs,
        note_seen=registry.note_seen if registry else lambda _targets: None,
        daily=following.daily,
    )


class _Retire:
    """Forgets targets whose host is gone."""

    def __init__(self, registry: TargetRegistry, own: Sequence[str]) -> None:
        self._registry = registry
        self._own = own

    def run(self, _may_go_on: MayGoOn) -> None:
        """Never this process's own, though the store slept for a day: they are in use."""
        self._registry.note_seen(self._own)
        for target in self._registry.retire():
            logger().warning("target_retired", target=target)
