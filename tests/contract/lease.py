"""What every lease promises."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from memory_tool.job_ports import Lease

Contender: TypeAlias = Callable[[], Lease]
"""Makes a lease of the same name for another holder."""


class LeaseContract:
    """Subclasses give the fixture ``contender``."""

    def test_one_holder_at_a_time(self, contender: Contender) -> None:
        """Two that apply to one index do everything twice, and get in each other's way."""
        one, two = contender(), contender()
        assert one.try_acquire()
        assert not two.try_acquire()
        assert one.try_acquire(), "holding it already is no reason to lose it"
        assert not two.try_acquire()

    def test_what_is_given_back_can_be_taken(self, contender: Contender) -> None:
        """A process that ends in order leaves nobody waiting."""
        one, two = contender(), contender()
        assert one.try_acquire()
        one.release()
        assert two.try_acquire()
        assert not one.try_acquire()
        two.release()
        assert one.try_acquire()

    def test_giving_back_what_is_not_held_harms_nobody(self, contender: Contender) -> None:
        """Closing twice, or after having lost it, must not free what another holds."""
        one, two, three = contender(), contender(), contender()
        two.release()
        assert one.try_acquire()
        two.release()
        assert not two.try_acquire()
        two.release()
        assert not three.try_acquire()
        one.release()
        one.release()
        assert three.try_acquire()

    def test_one_of_many_wins(self, contender: Contender) -> None:
        """However close they come, and from whichever thread: on each new round too."""
        leases = [contender() for _ in range(6)]
        with ThreadPoolExecutor(12) as pool:
            for _ in range(20):
                won = list(pool.map(lambda lease: lease.try_acquire(), leases * 2))
                winners = {place % 6 for place, took in enumerate(won) if took}
                assert len(winners) == 1
                leases[winners.pop()].release()
