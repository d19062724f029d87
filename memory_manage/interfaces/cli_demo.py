"""tmp"""

from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import StoreOptions


@with_groups
def demo(*, store: StoreOptions) -> None:
    """Demo."""
