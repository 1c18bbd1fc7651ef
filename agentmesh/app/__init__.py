"""The composition root: it opens the database that the settings name, and connects all parts of the program."""

from __future__ import annotations

from agentmesh.app.host_and_user import HostAndUser
from agentmesh.app.mesh import Mesh, open_mesh
from agentmesh.app.models import DEMO

__all__ = ["DEMO", "HostAndUser", "Mesh", "open_mesh"]
