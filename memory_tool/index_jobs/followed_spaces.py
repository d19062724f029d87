"""Follows the indexes of whichever spaces are active or being built, without a restart."""

import threading
from collections.abc import Callable, Mapping, Sequence

from memory_tool.errors import Unavailable
from memory_tool.index_jobs.background import POLL_SECONDS, BackgroundApplier
from memory_tool.job_values import Duty, MayGoOn, Outcome
from memory_tool.log import logger
from memory_tool.progress import Watch

Spaces = tuple[int, ...]


class FollowedSpaces:
    """A :class:`BackgroundApplier` for the spaces of the moment, made anew when they change.

    Spaces change a few times in the life of a store. So what brings indexes forward knows nothing
    of it: it is stopped after the batch at hand, and another one takes its place.
    """

    def __init__(
        self, look: Callable[[], Spaces], make: Callable[[Spaces], BackgroundApplier]
    ) -> None:
        """Make the first; ``look`` tells the numbers of the spaces to follow."""
        self._look = look
        self._make = make
        self._spaces = look()
        self._inner = make(self._spaces)
        self._duties: list[Duty] = []
        self._watching: Watch | None = None
        self._hearing: list[Callable[[], None]] = []
        # Whoever stops the inner one waits for its threads, which may call everything else here.
        self._changing = threading.RLock()
        self._started = False
        self._busy = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="threefold-spaces", daemon=True)

    @property
    def targets(self) -> Mapping[str, Sequence[str]]:
        """See :class:`BackgroundApplier`."""
        return self._inner.targets

    def start(self) -> None:
        """See :class:`BackgroundApplier`."""
        with self._changing:
            self._started = True
            self._inner.start()
        self._thread.start()

    def alive(self) -> bool:
        """See :class:`BackgroundApplier`; also while it waits for one to stop."""
        return self._thread.is_alive() and (self._busy or self._inner.alive())

    def wake(self) -> None:
        """See :class:`BackgroundApplier`."""
        self._inner.wake()

    def distrust(self, target: str, reason: str) -> None:
        """See :class:`BackgroundApplier`."""
        self._inner.distrust(target, reason)

    def also(self, duty: Duty) -> None:
        """See :class:`BackgroundApplier`."""
        self._duties.append(duty)
        self._inner.also(duty)

    def whenever(self, changed: Callable[[], None]) -> None:
        """Call this whenever other spaces are followed than before."""
        self._hearing.append(changed)

    def hurry(self) -> None:
        """See :class:`BackgroundApplier`."""
        self._inner.hurry()

    def apply_now(self) -> bool:
        """See :class:`BackgroundApplier`."""
        self._refresh()
        return self._inner.apply_now()

    def bring_forward(self) -> None:
        """Let everything pending be applied: here, or by the threads that do."""
        if self._started:
            self.wake()
        else:
            self.apply_now()

    def once(self, may_go_on: MayGoOn) -> Mapping[str, bool]:
        """See :class:`BackgroundApplier`."""
        self._refresh()
        return self._inner.once(may_go_on)

    def do(self, kind: str, *, again: bool, may_go_on: MayGoOn) -> Mapping[str, Outcome]:
        """See :class:`BackgroundApplier`."""
        self._refresh()
        return self._inner.do(kind, again=again, may_go_on=may_go_on)

    def mend(self, targets: Sequence[str], reason: str) -> bool:
        """See :class:`BackgroundApplier`."""
        return self._inner.mend(targets, reason)

    def watch(self, watch: Watch) -> None:
        """See :class:`BackgroundApplier`."""
        self._watching = watch
        self._inner.watch(watch)

    def stop(self) -> None:
        """See :class:`BackgroundApplier`."""
        self._end()
        self._inner.stop()

    def close(self) -> None:
        """See :class:`BackgroundApplier`."""
        self._end()
        self._inner.close()

    def _end(self) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._closing.wait(POLL_SECONDS):
            try:
                self._refresh()
            except Unavailable as error:
                logger().warning("job_failed", job="spaces", reason=str(error))
            except Exception:  # noqa: BLE001 - it must outlive any one failure
                logger().exception("job_failed", job="spaces")

    def _refresh(self) -> None:
        """Follow other spaces, if they are others by now."""
        spaces = self._look()
        if spaces == self._spaces:
            return
        with self._changing:
            if spaces == self._spaces or self._closing.is_set():
                return
            logger().info("spaces_followed", spaces=spaces, before=self._spaces)
            self._busy = True
            try:
                self._replace(spaces)
            finally:
                self._busy = False
        for changed in self._hearing:
            changed()

    def _replace(self, spaces: Spaces) -> None:
        self._inner.stop()
        inner = self._make(spaces)
        for duty in self._duties:
            inner.also(duty)
        if self._watching is not None:
            inner.watch(self._watching)
        if self._started:
            inner.start()
        self._inner, self._spaces = inner, spaces
