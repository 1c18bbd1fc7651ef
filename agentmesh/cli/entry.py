"""The entry point of ``agentmesh``. ``--version`` is answered before any heavy import."""

from __future__ import annotations

import gc
import sys
from functools import partial

from agentmesh import __version__
from agentmesh.cli.imports import leave_out_the_directory


def main() -> int:
    """Run the command line of this process; return its exit code."""
    leave_out_the_directory()
    args = sys.argv[1:]
    if args in (["--version"], ["-V"]):
        print(f"agentmesh {__version__}")
        return 0
    gc.disable()  # otherwise it scans imported objects, which stay anyway, again and again: 3 ms per command
    try:
        from agentmesh.cli.invoking import invoke
        from agentmesh.cli.outcome import run
    except KeyboardInterrupt:
        return 130
    gc.freeze()
    gc.enable()
    return run(partial(invoke, args))


if __name__ == "__main__":
    sys.exit(main())
