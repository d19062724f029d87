"""What every record store has to do with memories that were kept elsewhere."""

from dataclasses import replace

import pytest

from memory_tool.model import Status
from memory_tool.port_values import Attached
from memory_tool.prepare import adopted
from memory_tool.scope import Scope
from memory_tool.write_changes import Kept
from tests.contract.truth import Truth
from tests.factories import ANNA, NOON, memory_of, put


class AdoptionContract:
    """Subclass it for an adapter and override ``truth``."""

    @pytest.fixture
    def truth(self) -> Truth:
        """An empty truth."""
        raise NotImplementedError

    def test_what_was_kept_elsewhere_comes_with_its_versions(self, truth: Truth) -> None:
        """An import is no loss of history; the oldest versions beyond ten go, as they do here."""
        current = replace(memory_of("tea is black"), version=14)
        versions = tuple(
            replace(current, content=f"tea {number}", version=number, metadata={"n": number})
            for number in range(1, 14)
        )
        kept = Kept(
            memory_id=current.id,
            created_at=NOON,
            updated_at=NOON,
            version=14,
            attached=Attached(versions=versions),
        )
        (result,) = truth.write(adopted(put(current.content), kept))
        assert (result.status, result.id, result.version) == (Status.ADDED, current.id, 14)
        # To have come just now counts as a look at it.
        history = [
            replace(memory, last_accessed_at=None)
            for memory in truth.reader.history(Scope.of(ANNA), current.id)
        ]
        assert history == [*versions[-10:], replace(current, content="tea is black")]
