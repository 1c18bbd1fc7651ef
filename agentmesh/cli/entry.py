"""Where ``agentmesh`` starts. ``--version`` is answered before anything heavy is imported."""

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
    gc.disable()  # it would look at what is imported again and again, and that stays: 3 ms of every command
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
