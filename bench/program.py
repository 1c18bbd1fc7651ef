"""A user's program on the Python API, in a process of its own: a job is a new session and a prompt for its root.

It does what docs/how-to/python.md shows, with the worker's default concurrency, and its process is spoken to as the
peers' are.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from bench.peers.process import serve

if TYPE_CHECKING:
    import agentmesh


def main() -> None:
    """Serve: first the directory and the settings, then prompts."""
    with ExitStack() as stack:
        state: list[tuple[agentmesh.Mesh, str]] = []

        def answer(value: dict[str, Any]) -> Any:
            began, used = time.perf_counter(), time.process_time()
            if not state:
                import agentmesh

                mesh = stack.enter_context(agentmesh.open(settings=value["settings"]))
                stack.enter_context(mesh.worker())
                state.append((mesh, value["workdir"]))
                return {"processor": time.process_time(), "seconds": time.perf_counter() - began}
            mesh, workdir = state[0]
            session = mesh.start_session(workdir, permission_mode="all")
            said = session.run(value["prompt"], timeout=600)
            return {
                "seconds": time.perf_counter() - began,
                "processor": time.process_time() - used,
                "session": str(session.id),
                "answer": len(said),
            }

        serve(answer)


if __name__ == "__main__":
    main()
