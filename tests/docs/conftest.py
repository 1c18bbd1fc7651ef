"""A reader of the documentation, with everything that the pages need and nothing of this machine's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentmesh.store.embedded import EmbeddedServer
from tests.docs.shell import Reader
from tests.fixtures import server

PROJECT = {
    "src/calc.py": "def add(a, b):\n    return a + b  # TODO: other numbers\n",
    "tests/test_calc.py": "from src.calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
}
"""What readers of the guides have; who reads the tutorial makes it."""


@pytest.fixture
def reader(tmp_path, database_url) -> Iterator[Reader]:
    """A reader whose database is a new one; PostgreSQL's own programs are at hand."""
    environ = {"AGENTMESH_DATABASE_URL": database_url, "AGENTMESH_DATA_DIR": str(tmp_path / "data")}
    made = Reader(tmp_path, environ)
    for path, text in PROJECT.items():
        made.write(path, text)
    made.run(
        "git init --quiet && git add . && git -c user.name=me -c user.email=me@example.org commit --quiet -m first"
    )
    programs = server.embedded().binary("psql").parent
    made.run(f"PATH={programs}:$PATH PSQLRC=/dev/null PSQL_PAGER= PAGER=; export PSQLRC PSQL_PAGER PAGER")
    yield made
    made.close()


@pytest.fixture
def lonely(tmp_path) -> Iterator[Reader]:
    """A reader with nothing but the embedded server of a folder of the test's own."""
    data = server.run_folder() / f"data-{tmp_path.name}"  # where the server's own user may pass, and all in memory
    made = Reader(tmp_path, {"AGENTMESH_DATA_DIR": str(data)})
    yield made
    made.close()
    EmbeddedServer(data).stop(force=True)
