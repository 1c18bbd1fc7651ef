"""Runs the simulator in the foreground, for ``agentmesh simulate``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from agentmesh.domain.errors import UsageError
from agentmesh.llm.simulator.demo import demo_responder
from agentmesh.llm.simulator.profiles import find_profile
from agentmesh.llm.simulator.server import Simulator


def serve(
    *,
    script: Path | None = None,
    profile: str = "openai",
    port: int = 0,
    token: str | None = None,
    started: Callable[[str], None] = lambda _base_url: None,
    stop: threading.Event | None = None,
) -> None:
    """Serve a script file (by default the demo's script) until ``stop`` is set or Ctrl+C raises KeyboardInterrupt.

    ``started`` gets the base URL. Raise ConfigError for a bad script, UsageError for a bad profile or an occupied port.
    """
    if script is None:
        responder = demo_responder()
    else:
        from agentmesh.llm.simulator.script import load_script

        responder = load_script(script)
    if not 0 <= port <= 65535:
        raise UsageError(f"{port} is not a port", hint="ports go from 1 to 65535; 0 chooses a free one")
    try:
        shape = find_profile(profile)
    except ValueError as error:
        raise UsageError(str(error)) from error
    simulator = Simulator(responder, profile=shape, token=token, port=port, record=False)
    try:
        base_url = simulator.start()
    except OSError as error:
        raise UsageError(f"port {port} cannot be used: {error}", hint="port 0 chooses a free one") from error
    try:
        started(base_url)
        (stop or threading.Event()).wait()
    finally:
        simulator.stop()
