"""Print the anonymous memory that an index takes in a process which reads and searches it."""

import sys
from pathlib import Path

import numpy as np

from memory_tool.adapters.faiss_codes import KINDS
from memory_tool.adapters.faiss_graph import Graph, read_graph
from memory_tool.adapters.faiss_vectors import decoded

_SEARCHES = 50


def main() -> None:
    """Read, search, print bytes."""
    path, vectors, kind = Path(sys.argv[1]), Path(sys.argv[2]), KINDS[sys.argv[3]]
    before = _anonymous_bytes()
    halves = np.memmap(vectors, np.dtype("<f2"), mode="r").reshape(-1, int(sys.argv[5]))
    rows, dimension = halves.shape
    index = read_graph(path, kind, rows=rows, dimension=dimension)
    graph = Graph(index, kind, width=int(sys.argv[4]), alive=None)
    for question in decoded(halves[:_SEARCHES]):
        decoded(halves[graph.nearest(question, 10)])
    sys.stdout.write(f"{_anonymous_bytes() - before}\n")


def _anonymous_bytes() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


if __name__ == "__main__":
    main()
