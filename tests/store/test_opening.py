"""What opening a database finds out at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.config.settings import load
from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.store.opening import open_database


def test_a_pooler_that_is_away_is_told_though_the_way_around_it_works(database_url: str, tmp_path: Path):
    given = {"database_url": "postgresql://nobody@127.0.0.1:1/none", "direct_database_url": database_url}
    settings = load({**given, "data_dir": str(tmp_path)}, {}, None)
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1:1 cannot be reached"):
        open_database(settings, role="test")
