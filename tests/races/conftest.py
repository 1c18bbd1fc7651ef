"""What the races share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh


@pytest.fixture
def nothing_is_broken(mesh: Mesh) -> Iterator[None]:
    """See after the test that every invariant holds."""
    yield
    assert violations(mesh.conn) == []
