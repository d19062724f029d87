"""Groups of options: one dataclass in a command's signature, one option for each of its fields.

Typer reads options off a signature, so commands that share a scope would all repeat its five
options. Here the group is written once, and a command takes it as a value.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, get_type_hints

Command: TypeAlias = Callable[..., None]


def with_groups(command: Command) -> Command:
    """A command whose dataclass parameters are spread over options for Typer to read.

    The fields are annotated as Typer wants its parameters: ``Annotated[str, typer.Option(…)]``.
    Names of fields have to differ over all groups of one command.
    """
    declared = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {
        parameter.name: parameter.annotation
        for parameter in declared
        if dataclasses.is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def spread(**values: object) -> None:
        for name, group in groups.items():
            names = [field.name for field in dataclasses.fields(group)]
            values[name] = group(**{field: values.pop(field) for field in names})
        command(**values)

    parameters = [
        option
        for parameter in declared
        for option in (
            _options(groups[parameter.name])
            if parameter.name in groups
            else [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
        )
    ]
    # Set by inspect's own protocol, which type checkers don't know.
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # inspect reads it, the stubs of functions lack it
    return spread


def _options(group: type[Any]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        required = field.default is dataclasses.MISSING
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if required else field.default,
            annotation=hints[field.name],
        )
