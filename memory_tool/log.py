"""Log events: stable words with fields, one summary line for each operation, never content."""

import logging
import sys
from typing import Final

import structlog

_DRIVERS: Final = ("elastic_transport", "psycopg.pool")
"""They warn of each attempt to reach a server that is away, which is told once by the house."""


def logger() -> structlog.stdlib.BoundLogger:
    """The logger of the house. Until :func:`log_as_json` is called it speaks standard logging."""
    log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger("threefold")
    return log


def log_as_json(*, level: int = logging.INFO) -> None:
    """Write events as one JSON object a line to standard error, Chinese readable.

    Of other libraries only warnings are passed on, as they are.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    logging.getLogger("threefold").setLevel(level)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.filter_by_level,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def stay_quiet_by_default() -> None:
    """A library prints nothing unless asked: events go to standard logging as plain fields."""
    for name in ("threefold", *_DRIVERS):
        logging.getLogger(name).addHandler(logging.NullHandler())
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.filter_by_level,
            structlog.stdlib.render_to_log_kwargs,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
