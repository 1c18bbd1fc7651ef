"""Keep the current directory off this program's import path. This module itself imports only loaded modules."""

# ruff: noqa: I002  a planted __future__.py would be imported
import os
import sys


def leave_out_the_directory(*, first: bool = False) -> None:
    """Remove the working directory from the import path, if a relative PYTHONPATH put it there.

    ``first``: remove the first entry too, which is the working directory under ``python -m``. The folder of this
    program itself stays. Imports before our first line are out of reach here: sitecustomize with such a PYTHONPATH, and
    under ``python -m agentmesh`` a package named agentmesh and the modules that runpy needs.
    """
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if first and not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0]) != os.path.realpath(home):
        del sys.path[0]
    given = os.environ.get("PYTHONPATH")
    entries = given.split(os.pathsep) if given else []
    relative = {os.path.abspath(entry) for entry in entries if not os.path.isabs(entry)}
    relative -= {home, *(entry for entry in entries if os.path.isabs(entry))}
    sys.path[:] = [entry for entry in sys.path if entry not in relative]
