"""Fixtures live by concern in tests/fixtures; this is the list of them."""

from __future__ import annotations

import os

from agentmesh.tools.environment import AGENT_VARIABLE

# An agent may run the suite: its meshes are the suite's own, so they open as a person's do.
os.environ.pop(AGENT_VARIABLE, None)

pytest_plugins = [
    "tests.fixtures.blocking",
    "tests.fixtures.database",
    "tests.fixtures.engine",
    "tests.fixtures.mesh",
    "tests.fixtures.proxy",
    "tests.fixtures.terminal",
    "tests.fixtures.tls",
]
