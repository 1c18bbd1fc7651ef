"""The embedded PostgreSQL server, which runs if no database URL is configured.

PostgreSQL's programs come from a PyPI wheel. This package decides where the cluster lives, which user it runs as, and
when it starts and stops. docs/decisions/0002-embedded-server.md says why the wheel's own Python layer does not do so.
"""

from __future__ import annotations

from agentmesh.store.embedded.server import EmbeddedServer, EmbeddedStatus

__all__ = ["EmbeddedServer", "EmbeddedStatus"]
