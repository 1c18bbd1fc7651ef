"""The composition root: it reads nothing by itself, opens what settings name, and gives all parts what they need."""

from __future__ import annotations

from agentmesh.app.host_and_user import HostAndUser
from agentmesh.app.mesh import Mesh, open_mesh
from agentmesh.app.models import DEMO

__all__ = ["DEMO", "HostAndUser", "Mesh", "open_mesh"]
