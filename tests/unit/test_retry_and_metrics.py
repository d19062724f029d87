"""The one retry layer, and the bounded figures."""

import pytest

from memory_tool.errors import InputError, Unavailable
from memory_tool.metrics import WINDOW, Metrics
from memory_tool.retry import RetryPolicy, retrying

POLICY = RetryPolicy(attempts=3, seconds=60, first_wait=0)


def test_an_unavailable_store_is_tried_three_times() -> None:
    """And its last error is raised as it is."""
    tries: list[int] = []

    def call() -> None:
        tries.append(1)
        raise Unavailable(outcome="unknown", key="k")

    with pytest.raises(Unavailable) as caught:
        retrying(POLICY, "test")(call)

    assert len(tries) == 3
    assert (caught.value.outcome, caught.value.key) == ("unknown", "k")


def test_a_wrong_call_is_never_repeated() -> None:
    """It would be as wrong the second time."""
    tries: list[int] = []

    def call() -> None:
        tries.append(1)
        raise InputError

    with pytest.raises(InputError):
        retrying(POLICY, "test")(call)

    assert len(tries) == 1


def test_the_second_try_may_succeed() -> None:
    """That is what it is for."""
    answers = iter([Unavailable(), None])

    def call() -> str:
        error = next(answers)
        if error is not None:
            raise error
        return "done"

    assert retrying(POLICY, "test")(call) == "done"


def test_figures_cover_a_bounded_window() -> None:
    """A process that lives for months must not grow by its own latencies."""
    metrics = Metrics()
    for _ in range(WINDOW):
        metrics.observe("store", 1.0)
    for _ in range(WINDOW):
        metrics.observe("store", 3.0)

    assert metrics.mean("store") == pytest.approx(3.0)


def test_percentiles_are_those_of_the_window() -> None:
    """p95 of 1..100 is 96: five values lie at or above it."""
    metrics = Metrics()
    for value in range(1, 101):
        metrics.observe("retrieve", float(value))

    assert metrics.percentile("retrieve", 0.5) == 51
    assert metrics.percentile("retrieve", 0.95) == 96
    assert metrics.percentile("never", 0.95) == 0


def test_a_failed_block_is_no_latency() -> None:
    """A timeout would otherwise look like a slow success."""
    metrics = Metrics()
    with pytest.raises(InputError), metrics.timed("store"):
        raise InputError

    assert metrics.mean("store") == 0
