"""What erasing does to the indexes: all of them anew, and nothing kept for a way back."""

from collections.abc import Callable, Iterator, Sequence

from memory_tool.assembly import Background
from memory_tool.erase_values import Place
from memory_tool.index_jobs.target_group import FULL, MEND
from memory_tool.job_ports import Jobs


class EraseIndexes:
    """Builds the indexes of this process anew and asks others to do it with theirs."""

    def __init__(
        self,
        background: Background,
        *,
        jobs: Jobs,
        known: Callable[[], Sequence[str]],
    ) -> None:
        """``known`` names every target that the store knows of."""
        self._background = background
        self._jobs = jobs
        self._known = known

    def run(self) -> Sequence[Place]:
        """Do it; a place for each index."""
        return [*self._ours(), *self._others()]

    def _ours(self) -> Iterator[Place]:
        outcomes = self._background.do(FULL, again=True, may_go_on=lambda: True)
        for group, outcome in outcomes.items():
            for target in self._background.targets[group]:
                if outcome == "done":
                    said = "built anew, older generations removed"
                    yield Place(name=target, state="done", said=said)
                else:
                    yield self._asked(target)

    def _others(self) -> Iterator[Place]:
        ours = {name for group in self._background.targets.values() for name in group}
        for target in self._known():
            if target not in ours:
                yield self._asked(target)

    def _asked(self, target: str) -> Place:
        self._jobs.offer(MEND, target, every="moment")
        said = "another process was asked to build it anew"
        return Place(name=target, state="waiting", said=said)
