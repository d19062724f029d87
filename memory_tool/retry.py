"""The one retry layer: a policy as a value, made into a tenacity object."""

from dataclasses import dataclass

import tenacity

from memory_tool.errors import Unavailable
from memory_tool.log import logger


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How patient a path is when a store can't be reached.

    Attributes:
        attempts: Tries in all.
        seconds: Deadline of all tries together.
        first_wait: Seconds before the second try; doubles, with jitter.
    """

    attempts: int = 3
    seconds: float = 10.0
    first_wait: float = 0.05


def retrying(policy: RetryPolicy, operation: str) -> tenacity.Retrying:
    """Try again while the store is unavailable; the last error is raised as it is.

    Only :class:`~memory_tool.errors.Unavailable` is retried, and writes are safe to repeat because
    each carries an idempotency key that stays the same over all tries.
    """

    def note(state: tenacity.RetryCallState) -> None:
        logger().warning("retried", operation=operation, attempt=state.attempt_number)

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(Unavailable),
        stop=tenacity.stop_after_attempt(policy.attempts)
        | tenacity.stop_after_delay(policy.seconds),
        wait=tenacity.wait_exponential_jitter(
            multiplier=policy.first_wait, max=2.0, jitter=policy.first_wait
        ),
        before_sleep=note,
        reraise=True,
    )
