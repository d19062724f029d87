"""What the files of ``deploy/`` name: settings, commands of ours, documents of YAML."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

CHECKOUT: Final = Path(__file__).parents[2]
DEPLOY: Final = CHECKOUT / "deploy"

TEXTS: Final = {
    str(path.relative_to(DEPLOY)): path.read_text(encoding="utf-8")
    for path in sorted(DEPLOY.rglob("*"))
    if path.is_file() and path.suffix != ".lock"
}
"""Every file by its path."""

_VARIABLE: Final = re.compile(r"THREEFOLD_[A-Z][A-Z0-9_]*[A-Z0-9]")

_COMMAND: Final = re.compile(
    r"""(?:^\s*|/bin/|`|\[["']?|CMD,[ ]|(?:worker|threefold|--)[ ])  # where a command begins
    threefold(?=["',\s]+[a-z-])
    (?P<arguments>[^`\]\n]*)""",
    re.VERBOSE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of ``threefold`` that a file holds."""

    file: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}: threefold {' '.join(self.arguments)}"


def named_variables() -> Iterator[tuple[str, str]]:
    """Each file and each variable with our prefix in it."""
    for file, text in TEXTS.items():
        for name in sorted(set(_VARIABLE.findall(text))):
            yield file, name


def calls() -> tuple[Call, ...]:
    """Every call of ours in every file: lists of YAML and JSON, lines of shells, code in prose."""
    found = [
        Call(file=file, arguments=_arguments(match["arguments"]))
        for file, text in TEXTS.items()
        for match in _COMMAND.finditer(_with_instances(file, _code(file, text)))
    ]
    return tuple(dict.fromkeys(found))


def _code(file: str, text: str) -> str:
    """What isn't prose: in Markdown what is marked as code, elsewhere all but plain comments."""
    if file.endswith(".md"):
        fences = re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        return "\n".join(fences) + "\n".join(re.findall(r"`[^`\n]+`", text))
    return re.sub(r"^\s*#[^`\n]*$", "", text, flags=re.MULTILINE)


def _with_instances(file: str, text: str) -> str:
    """A unit that is a template, once for each of its timers."""
    stem = file.removesuffix(".service")
    if not stem.endswith("@"):
        return text
    names = [Path(name).stem.partition("@")[2] for name in TEXTS if name.startswith(stem)]
    return "\n".join(text.replace("%i", name) for name in names if name)


def _arguments(text: str) -> tuple[str, ...]:
    """The words of a shell's line or of a list of YAML or JSON; none of ours holds a blank."""
    words = (word.strip("\"',") for word in text.split())
    return tuple(word for word in words if word)


def documents(text: str) -> list[dict[str, Any]]:
    """The documents of a YAML text, refusing a key that is given twice."""
    return list(YAML(typ="safe", pure=True).load_all(text))


def checked(*command: str | Path, at: Path | None = None) -> str:
    """Run a tool of this environment or of the system, which must succeed; all that it printed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        cwd=at,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
