"""The embedded PostgreSQL server: what runs where no database URL is configured.

PostgreSQL's programs come from a PyPI wheel; this package decides where the cluster lives, who it runs as, and when it
starts and stops. docs/decisions/0002-embedded-server.md says why it is not the wheel's own Python layer that does so.
"""

from __future__ import annotations

from agentmesh.store.embedded.server import EmbeddedServer, EmbeddedStatus

__all__ = ["EmbeddedServer", "EmbeddedStatus"]
