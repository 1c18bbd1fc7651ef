"""Fixtures live by concern in tests/fixtures; this is the list of them."""

from __future__ import annotations

pytest_plugins = [
    "tests.fixtures.blocking",
    "tests.fixtures.database",
    "tests.fixtures.engine",
    "tests.fixtures.mesh",
    "tests.fixtures.proxy",
    "tests.fixtures.terminal",
    "tests.fixtures.tls",
]
