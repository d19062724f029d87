"""A full build of all indexes in a process of its own, which tells what it took, as JSON.

rebuild_once.py DATA_DIR
"""

import json
import sys
import time
from pathlib import Path

from memory_tool.bootstrap import Given, open_tool
from memory_tool.index_jobs.target_group import FULL
from memory_tool.progress import Advance, Built
from memory_tool.settings import load_settings
from scripts.benchmark.made import MadeEmbedder


def memory_kib(what: str) -> int:
    """What the kernel says of this process; getrusage would tell of the one that started it too."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:"))


def main(data_dir: Path) -> None:
    """Build and tell."""
    built: list[Built] = []
    settings = load_settings({"data_dir": data_dir, "applying": False}, environment={})
    with open_tool(settings, Given(embedder=MadeEmbedder())) as tool:
        before = memory_kib("VmRSS")

        def hear(step: Advance | Built) -> None:
            if isinstance(step, Built):
                built.append(step)
            elif step.building:
                sys.stderr.write(f"{step.target} {step.applied:,} + {step.pending:,}\n")

        background = tool.stores.background
        if background is None:
            message = "nothing follows this store"
            raise RuntimeError(message)
        background.watch(hear)
        start = time.perf_counter()
        background.do(FULL, again=True, may_go_on=lambda: True)
        seconds = time.perf_counter() - start
    peak = memory_kib("VmHWM")
    answer = {
        "seconds": seconds,
        "peak_kib": peak,
        "idle_kib": before,
        "built": {
            one.target.partition(":")[0]: [one.seconds, one.quality.recall, one.quality.width]
            for one in built
        },
    }
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
