"""Where ``agentmesh`` starts. ``--version`` is answered before anything heavy is imported."""

from __future__ import annotations

import sys

from agentmesh import __version__


def main() -> int:
    """Run the command line of this process; return its exit code."""
    args = sys.argv[1:]
    if args in (["--version"], ["-V"]):
        print(f"agentmesh {__version__}")
        return 0
    try:
        from agentmesh.cli.outcome import run
    except KeyboardInterrupt:
        return 130
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
