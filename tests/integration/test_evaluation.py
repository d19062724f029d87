"""Retrieval quality through the public door, in a short form: one small set in each language.

Collected only where ``THREEFOLD_EVALUATION_DATA`` names the sets; ``scripts/evaluate`` runs all.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
BARS = {"madial-zh": 0.543, "madial-en": 0.487, "memorybank-zh": 0.750, "memorybank-en": 0.727}
"""NDCG@10 of reciprocal rank fusion (k = 60) over exact search with the same embedder."""


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], float]:
    """What one run measured, by set and metric."""
    folder = tmp_path_factory.mktemp("evaluation")
    out = folder / "figures.json"
    command = [sys.executable, str(CHECKOUT / "scripts" / "evaluate"), "--sets", ",".join(BARS)]
    done = subprocess.run(
        [*command, "--json", str(out), "--cache", str(folder / "cache")],
        env={**os.environ, "TMPDIR": "/tmp"},  # noqa: S108 - socket paths are short
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(out.read_text(encoding="utf-8"))
    return {(row["set"], row["metric"]): row["value"] for row in rows}


@pytest.mark.parametrize(("name", "bar"), BARS.items())
def test_ranking_is_at_least_as_good_as_rank_fusion(
    figures: dict[tuple[str, str], float], name: str, bar: float
) -> None:
    """A change of tokens, fusion or threshold that costs quality shows here first."""
    assert figures[name, "ndcg@10"] >= bar


@pytest.mark.parametrize("name", BARS)
def test_every_question_is_answered_whole(figures: dict[tuple[str, str], float], name: str) -> None:
    """Nothing degraded on a healthy machine."""
    assert figures[name, "degraded"] == 0
