"""Print the anonymous memory of a process that opened a store; ``all`` also searches it."""

import json
import sys
from pathlib import Path

import numpy as np

from scripts.benchmark.made import DIMENSION, SPACE
from scripts.benchmark.ours import open_memory
from scripts.benchmark.questions import LARGE, SMALL_NAMESPACES


def main() -> None:
    """Open, search, print bytes."""
    folder, searches, settings = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    rng = np.random.default_rng(1)
    with open_memory(folder, **settings) as memory:
        namespaces = [LARGE, *(("bench", f"small-{n}") for n in range(SMALL_NAMESPACES))]
        for namespace in namespaces if searches == "all" else []:
            for _ in range(5):
                vector = rng.standard_normal(DIMENSION).astype(np.float32)
                memory.search("word", namespace=namespace, query_embedding=vector, space=SPACE.name)
        lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
    sys.stdout.write(f"{kilobytes * 1024}\n")


if __name__ == "__main__":
    main()
