"""Walls that no file may pass and no comment may open.

What tells a tidy project from an ugly one is its largest file and its longest function, never the
average, so every limit is one on the maximum. Complexity (at most 10) and the number of arguments
(at most 6) are counted by ruff as C901 and PLR0913; here a `noqa` for either is a breach.

Run it anywhere in the checkout. Each breach is printed as `path:line: rule`; the exit status is 1
when there is any.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

CHECKOUT: Final = Path(__file__).resolve().parents[1]

FILE_LINES: Final = 400
FUNCTION_LINES: Final = 60
"""From `def` to the last line, the docstring not counted."""

POSITIONAL_ARGUMENTS: Final = 2
"""Without `self` or `cls`; a third one is named at the call, so that it can be read there."""

FIXED_SIGNATURES: Final = frozenset({"memory_tool.tool.store_memory"})
"""The only functions that may take more by position: how they are called was agreed with others.

`store_memory(memory_type, content, metadata)` is the call that Threefold was asked to offer.
"""

DOUBLES_PER_TEST: Final = 0.1
"""Over all of tests/. A stand-in proves that a driver's error is translated, and little else."""

PACKAGES: Final = ("memory_tool", "memory_manage")
ADAPTERS: Final = "memory_tool.adapters"

EMPTY_WORDS: Final = frozenset(
    {
        "common",
        "data",
        "engine",
        "handler",
        "helper",
        "info",
        "misc",
        "processor",
        "service",
        "util",
    }
)
"""They fit every module, so they say nothing of any. Their plurals are no better."""

_OPENED_WALL: Final = re.compile(r"#\s*(?:ruff:\s*)?noqa:.*\b(?:C901|PLR0913)\b")
_MACHINE_PATH: Final = re.compile(
    r"(?<![\w.:/])/(?:home|root|Users|work|opt|mnt|srv)/\w|\b[A-Z]:\\\\?\w"
)
_DOUBLE: Final = re.compile(
    r"\b(?:(?:Magic|Async|NonCallable)?Mock|create_autospec|patch(?:\.\w+)?"
    r"|mocker\.\w+(?:\.\w+)?|monkeypatch\.setattr)\("
)

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One Python file of the checkout.

    Attributes:
        path: Seen from the checkout, with forward slashes.
        text: What is in it.
        tree: The same, parsed.
    """

    path: PurePosixPath
    text: str
    tree: ast.Module

    def functions(self) -> Iterator[Function]:
        """Every function and method, nested ones too."""
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node

    @property
    def module(self) -> str:
        """The dotted name under which the file is imported."""
        return ".".join(self.path.with_suffix("").parts).removesuffix(".__init__")


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A place where a wall was passed."""

    path: PurePosixPath
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}"


def sources(checkout: Path) -> list[Source]:
    """Read the Python files that git tracks, or would track: new ones are checked before `add`."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.py"],
        cwd=checkout,
        check=True,
        capture_output=True,
        text=True,
    )
    found = []
    for name in sorted(filter(None, listing.stdout.split("\0"))):
        path = checkout / name
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text, filename=name)
            found.append(Source(path=PurePosixPath(name), text=text, tree=tree))
    return found


def long_file(source: Source) -> Iterator[Breach]:
    """A file that can't be held in the head."""
    lines = len(source.text.splitlines())
    if lines > FILE_LINES:
        rule = f"the file has {lines} lines, at most {FILE_LINES} are allowed"
        yield Breach(path=source.path, line=FILE_LINES + 1, rule=rule)


def long_functions(source: Source) -> Iterator[Breach]:
    """Functions that wanted to be several."""
    for function in source.functions():
        lines = _last_line(function) - function.lineno + 1 - _docstring_lines(function)
        if lines > FUNCTION_LINES:
            rule = f"`{function.name}` has {lines} lines, at most {FUNCTION_LINES} are allowed"
            yield Breach(path=source.path, line=function.lineno, rule=rule)


def unnamed_arguments(source: Source) -> Iterator[Breach]:
    """Calls whose meaning would lie in the order of their arguments."""
    for function in source.functions():
        if _named_by_others(function) or f"{source.module}.{function.name}" in FIXED_SIGNATURES:
            continue
        positional = [*function.args.posonlyargs, *function.args.args]
        if positional and positional[0].arg in {"self", "cls"}:
            positional = positional[1:]
        if len(positional) > POSITIONAL_ARGUMENTS:
            extra = positional[POSITIONAL_ARGUMENTS].arg
            rule = f"`{function.name}` takes `{extra}` by position, put a `*` before it"
            yield Breach(path=source.path, line=function.lineno, rule=rule)


def opened_walls(source: Source) -> Iterator[Breach]:
    """Limits of ruff that are walls, excused by a comment."""
    yield from _matching_lines(source, _OPENED_WALL, rule="a wall has no `noqa`, split instead")


def machine_paths(source: Source) -> Iterator[Breach]:
    """Places that exist on one machine only."""
    yield from _matching_lines(source, _MACHINE_PATH, rule="a path of one machine")


def empty_name(source: Source) -> Iterator[Breach]:
    """A module whose name doesn't tell what is inside."""
    words = source.path.stem.lower().split("_")
    for word in words:
        if word in EMPTY_WORDS or word.removesuffix("s") in EMPTY_WORDS:
            yield Breach(path=source.path, line=1, rule=f"`{word}` tells nothing as a module name")


def imports_from_root(source: Source) -> Iterator[Breach]:
    """Imports of our own packages by the root, which is for users: they make cycles."""
    if source.path.parts[0] not in PACKAGES:
        return
    for line, imported in _imports(source):
        if imported in PACKAGES:
            rule = f"import from a module of {imported}, not from its root"
            yield Breach(path=source.path, line=line, rule=rule)


def foreign_adapters(source: Source) -> Iterator[Breach]:
    """Adapters that import an adapter of another family; the first word names the family."""
    if not source.module.startswith(f"{ADAPTERS}."):
        return
    family = _family(source.module)
    for line, imported in _imports(source):
        if imported.startswith(f"{ADAPTERS}.") and _family(imported) != family:
            rule = f"an adapter of {family} imports one of {_family(imported)}"
            yield Breach(path=source.path, line=line, rule=rule)


def too_many_doubles(files: Sequence[Source]) -> Iterator[Breach]:
    """Every test double, once there are too many of them."""
    tests = 0
    doubles: list[Breach] = []
    for source in files:
        if source.path.parts[0] == "tests":
            tests += sum(function.name.startswith("test_") for function in source.functions())
            doubles += _matching_lines(source, _DOUBLE, rule="a test double")
    if len(doubles) > DOUBLES_PER_TEST * tests:
        total = f"one of {len(doubles)} for {tests} tests, at most {DOUBLES_PER_TEST} each"
        for double in doubles:
            yield Breach(path=double.path, line=double.line, rule=f"{double.rule}, {total}")


WALLS: Final[Sequence[Callable[[Source], Iterator[Breach]]]] = (
    long_file,
    long_functions,
    unnamed_arguments,
    opened_walls,
    machine_paths,
    empty_name,
    imports_from_root,
    foreign_adapters,
)


def breaches(files: Sequence[Source]) -> list[Breach]:
    """Hold every file against every wall; in the order of the files and lines."""
    found = [breach for source in files for wall in WALLS for breach in wall(source)]
    found += too_many_doubles(files)
    return sorted(found, key=lambda breach: (breach.path, breach.line, breach.rule))


def _last_line(node: ast.stmt) -> int:
    return node.lineno if node.end_lineno is None else node.end_lineno


def _docstring_lines(function: Function) -> int:
    if ast.get_docstring(function, clean=False) is None:
        return 0
    docstring = function.body[0]
    return _last_line(docstring) - docstring.lineno + 1


def _named_by_others(function: Function) -> bool:
    """Whether the signature is not ours to choose: the language's, a parent's, or pytest's."""
    decorators = {_last_name(decorator) for decorator in function.decorator_list}
    dunder = function.name.startswith("__") and function.name.endswith("__")
    of_pytest = function.name.startswith("test_") or "fixture" in decorators
    return dunder or of_pytest or bool(decorators & {"overload", "override"})


def _last_name(decorator: ast.expr) -> str:
    if isinstance(decorator, ast.Call):
        return _last_name(decorator.func)
    if isinstance(decorator, ast.Attribute):
        return decorator.attr
    return decorator.id if isinstance(decorator, ast.Name) else ""


def _imports(source: Source) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each module imported; `from a import b` may mean `a` or `a.b`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.lineno, node.module
            if node.module == ADAPTERS:
                yield from ((node.lineno, f"{ADAPTERS}.{alias.name}") for alias in node.names)


def _family(module: str) -> str:
    return module.removeprefix(f"{ADAPTERS}.").split(".")[0].split("_")[0]


def _matching_lines(source: Source, pattern: re.Pattern[str], *, rule: str) -> Iterator[Breach]:
    for number, line in enumerate(source.text.splitlines(), start=1):
        for _ in pattern.finditer(line):
            yield Breach(path=source.path, line=number, rule=rule)


def main() -> int:
    """Print the breaches of this checkout.

    Returns:
        The exit status: 0 when every wall stands, else 1.
    """
    files = sources(CHECKOUT)
    found = breaches(files)
    for breach in found:
        print(breach)
    verdict = f"{len(found)} breaches" if found else "every wall stands"
    print(f"{len(files)} files, {verdict}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
