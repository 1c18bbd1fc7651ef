"""What opening a database finds out at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.config.settings import load
from agentmesh.domain.errors import ConfigError, DatabaseUnreachable
from agentmesh.store.opening import open_database, reach, require_one_database


def test_a_pooler_that_is_away_is_told_though_the_way_around_it_works(database_url: str, tmp_path: Path):
    given = {"database_url": "postgresql://nobody@127.0.0.1:1/none", "direct_database_url": database_url}
    settings = load({**given, "data_dir": str(tmp_path)}, {}, None)
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1:1 cannot be reached"):
        open_database(settings, role="test")


def test_a_database_that_is_away_is_told_at_once_also_where_its_schema_does_not_matter(tmp_path: Path):
    settings = load({"database_url": "postgresql://nobody@127.0.0.1:1/none", "data_dir": str(tmp_path)}, {}, None)
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1:1 cannot be reached"):
        open_database(settings, role="test", migrate=False)
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1:1 cannot be reached"):
        reach("postgresql://nobody@127.0.0.1:1/none", role="test")


def test_a_way_around_a_pooler_that_leads_to_another_database_is_refused(database_url, empty_database_url, tmp_path):
    given = {"database_url": empty_database_url, "direct_database_url": database_url, "data_dir": str(tmp_path)}
    settings = load(given, {}, None)
    with pytest.raises(ConfigError, match="Two URLs lead to two databases"):
        open_database(settings, role="test")
    database, _ = open_database(settings, role="test", migrate=False)
    with pytest.raises(ConfigError, match="Two URLs lead to two databases"):
        require_one_database(database)
    database.close()
