"""``python -m agentmesh``."""

# ruff: noqa: I002  a planted __future__.py would be imported
import sys

from agentmesh.cli.imports import leave_out_the_directory

leave_out_the_directory(first=True)

from agentmesh.cli.entry import main  # noqa: E402  only now: the directory may hold modules of any name

sys.exit(main())
