"""One mesh under attack for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.walls.ground import Ground
from tests.walls.station import Station


@pytest.fixture(scope="session")
def station() -> Iterator[Station]:
    """agentmesh on a ground of its own."""
    with Ground() as ground, Station(ground) as made:
        yield made
