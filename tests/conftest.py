"""Fixtures live by concern in tests/fixtures; this is the list of them."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from agentmesh.tools.environment import AGENT_VARIABLE

# An agent may run the suite: its meshes are the suite's own, so they open as a person's do.
os.environ.pop(AGENT_VARIABLE, None)

# How long an example takes says more of the machine than of the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

pytest_plugins = [
    "tests.fixtures.blocking",
    "tests.fixtures.commands",
    "tests.fixtures.database",
    "tests.fixtures.engine",
    "tests.fixtures.mesh",
    "tests.fixtures.proxy",
    "tests.fixtures.terminal",
    "tests.fixtures.tls",
]
