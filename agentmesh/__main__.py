"""``python -m agentmesh``."""

from __future__ import annotations

import sys

from agentmesh.cli.entry import main

sys.exit(main())
