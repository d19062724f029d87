"""A small disk is really full."""

import errno

import pytest

from tests.services.tmpfs import small_disk


def test_a_small_disk_is_soon_full_and_gone_at_the_end() -> None:
    """Tests of a full disk must not fill the machine's own."""
    with small_disk(1) as folder:
        with pytest.raises(OSError, match="space") as caught:
            (folder / "large").write_bytes(bytes(2**21))
        assert caught.value.errno == errno.ENOSPC
        assert folder.is_mount()

    assert not folder.exists()
