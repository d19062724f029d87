"""The command line of ``scripts/evaluate``."""

import argparse
import os
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from elasticsearch import Elasticsearch
from rich.console import Console

from memory_tool.adapters.offline_embedder import OfflineEmbedder
from memory_tool.settings import PREFIX
from scripts.evaluation.looked_up_embedder import LookedUpEmbedder
from scripts.evaluation.metrics import quality, speed
from scripts.evaluation.report import Figure, show, write_json
from scripts.evaluation.run import Evaluation
from scripts.evaluation.sets import FORMS, EvaluationSet, is_there, read_set

VARIABLE: Final = "THREEFOLD_EVALUATION_DATA"
WRONG_USE: Final = 2
WIDTH: Final = 120
"""Columns of the tables where the output is no terminal."""


def _named(words: Sequence[str]) -> list[str]:
    """The sets that the words name; ``xquad`` is all four of its tasks."""
    found = [
        name
        for word in words
        for name in (
            [name for name in FORMS if name.startswith("xquad-")] if word == "xquad" else [word]
        )
    ]
    return list(dict.fromkeys(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write JSON if asked to.

    Returns:
        The exit status: 0, or 2 when the sets are not there.
    """
    options = _parser().parse_args(arguments)
    if options.vector_backend == "elasticsearch" and not options.elasticsearch:
        _say("--vector-backend elasticsearch needs --elasticsearch, the address of a node.")
        return WRONG_USE
    folder = options.data or os.environ.get(VARIABLE)
    _forget_settings()
    if not folder:
        _say(f"Where are the sets? Name their folder by --data or {VARIABLE}.")
        return WRONG_USE
    names = _named(options.sets.split(",")) if options.sets else list(FORMS)
    unknown = [name for name in names if name not in FORMS]
    if unknown:
        _say(f"There is no set {unknown[0]!r}; known are {', '.join(FORMS)}.")
        return WRONG_USE
    missing = [name for name in names if not is_there(Path(folder), name)]
    if missing and (options.sets or len(missing) == len(names)):
        _say(f"{folder} does not hold {', '.join(missing)}.")
        return WRONG_USE
    if missing:
        _say(f"not measured, since {folder} does not hold them: {', '.join(missing)}")
    sets = [read_set(Path(folder), name) for name in names if name not in missing]
    sets = [_thinned(found, options.limit_queries) for found in sets]
    embedder = LookedUpEmbedder(
        OfflineEmbedder(),
        given=Path(folder) / "vectors" / "e5-small.npz",
        kept=options.cache.expanduser() / "e5-small-q4.npz",
    )
    with _places(options) as settings:
        figures = _measured(sets, embedder, compared=options.strategies, settings=settings)
    show(figures, Console(width=None if sys.stdout.isatty() else WIDTH))
    if options.json:
        write_json(options.json, figures)
    return 0


def _forget_settings() -> None:
    """Measure the defaults, in stores of our own, whatever the environment names."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/evaluate",
        description="Measure how well the memory finds what it should, on sets with known answers.",
    )
    parser.add_argument("--data", metavar="DIR", help=f"folder of the sets (default: {VARIABLE})")
    parser.add_argument("--sets", metavar="A,B", help=f"some of {','.join(FORMS)} (default: all)")
    parser.add_argument(
        "--json", metavar="FILE", type=Path, help="write rows of set, metric, value"
    )
    parser.add_argument(
        "--strategies", action="store_true", help="also measure single arms and plain RRF"
    )
    parser.add_argument(
        "--elasticsearch",
        metavar="URL",
        help="keep the keyword index there, without a password (default: embedded)",
    )
    parser.add_argument(
        "--vector-backend",
        choices=("faiss", "elasticsearch"),
        default="faiss",
        help="where the vectors are searched (default: %(default)s)",
    )
    parser.add_argument(
        "--limit-queries", metavar="N", type=int, help="ask at most N questions of each set"
    )
    parser.add_argument(
        "--cache",
        metavar="DIR",
        type=Path,
        default=Path("~/.cache/threefold-evaluation"),
        help="folder of vectors that had to be made (default: %(default)s)",
    )
    return parser


@contextmanager
def _places(options: argparse.Namespace) -> Iterator[Mapping[str, str]]:
    """Settings of the stores: none, or indices of our own on an Elasticsearch, for a while."""
    url = options.elasticsearch
    if not url:
        yield {}
        return
    prefix = f"threefold-evaluation-{uuid.uuid4().hex[:12]}"
    try:
        yield {
            "elasticsearch_url": url,
            "elasticsearch_prefix": prefix,
            "elasticsearch_replicas": "0",
            "vector_backend": options.vector_backend,
        }
    finally:
        with Elasticsearch(url.split(",")) as client:
            for name in client.indices.get(index=f"{prefix}*"):
                client.indices.delete(index=name)


def _measured(
    sets: Sequence[EvaluationSet],
    embedder: LookedUpEmbedder,
    *,
    compared: bool,
    settings: Mapping[str, str],
) -> list[Figure]:
    """All sets in one store, as users of one memory are."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="threefold-evaluation-") as folder:
        # The embedded PostgreSQL of root runs as another user, who has to get in.
        Path(folder).chmod(0o711)
        evaluation = Evaluation(Path(folder), embedder, settings=settings)
        try:
            for found in sets:
                evaluation.fill(found, _say)
            evaluation.settle()
            for found in sets:
                for way, ask in evaluation.ways(compared=compared).items():
                    _say(f"{found.name}: {len(found.questions)} questions {way or 'as shipped'}")
                    judged = [ask(found.name, question) for question in found.questions]
                    figures += [
                        Figure(set_name=found.name, way=way, metric=metric, value=value)
                        for metric, value in {**quality(judged), **speed(judged)}.items()
                    ]
        finally:
            evaluation.close()
    return figures


def _thinned(found: EvaluationSet, most: int | None) -> EvaluationSet:
    """At most so many questions, evenly spread over the set."""
    questions = found.questions
    if most is None or len(questions) <= most:
        return found
    step = len(questions) / most
    return replace(found, questions=tuple(questions[int(at * step)] for at in range(most)))


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
