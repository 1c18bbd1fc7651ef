"""``agentmesh simulate``: serve a scripted model over HTTP."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from queue import SimpleQueue

import click

from agentmesh.cli.named import NAMED
from agentmesh.cli.stopping import stoppable
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError


@click.command()
@click.option(
    "--script",
    type=NAMED,
    metavar="FILE",
    help="What it answers (docs/reference/simulator.md); else the demo's script.",
)
@click.option(
    "--profile",
    default="openai",
    show_default=True,
    type=NAMED,
    metavar="NAME",
    help="Which kind of server it resembles.",
)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port on loopback; a free one by default.")
@click.option("--token-env", type=NAMED, metavar="NAME", help="Environment variable with the only API key it accepts.")
def simulate(script: str | None, profile: str, port: int, token_env: str | None) -> None:
    """Serve a scripted model that speaks Chat Completions, on loopback, until Ctrl+C. Prints its base URL."""
    from agentmesh.llm.simulator.serve import serve

    token = os.environ.get(token_env) if token_env else None
    if token_env and not token:
        raise UsageError(f"The environment variable {token_env} is not set.")
    # A signal's handler must not set the event itself: it may interrupt the very wait for it, which holds its lock.
    asked: SimpleQueue[None] = SimpleQueue()
    ended = threading.Event()

    def end_when_asked() -> None:
        asked.get()
        ended.set()

    threading.Thread(target=end_when_asked, name="simulate-stop", daemon=True).start()
    with stoppable(lambda: asked.put(None)):
        serve(
            script=Path(script) if script else None,
            profile=profile,
            port=port,
            token=token,
            started=_announce,
            stop=ended,
        )


def _announce(base_url: str) -> None:
    print(base_url, flush=True)
    say(
        f'Use it from another terminal:  OPENAI_BASE_URL={base_url} OPENAI_API_KEY=any agentmesh run --model demo "..."'
    )
