"""``agentmesh simulate``: serve a scripted model over HTTP."""

from __future__ import annotations

import os
import threading
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Self

import click

from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.prerequisites import environment_variable
from agentmesh.cli.stopping import stoppable
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError


@click.command()
@click.option(
    "--script",
    type=NAMED,
    metavar="FILE",
    help="Script with its answers (docs/reference/simulator.md); by default the demo's.",
)
@click.option(
    "--profile",
    default="openai",
    show_default=True,
    type=NAMED,
    metavar="NAME",
    help="Kind of server that it imitates.",
)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port on loopback; a free one by default.")
@click.option("--token-env", type=NAMED, metavar="NAME", help="Environment variable with the only API key it accepts.")
@click.option("--url-file", type=NAMED, metavar="FILE", help="Also write the base URL there, while it serves.")
def simulate(script: str | None, profile: str, port: int, token_env: str | None, url_file: str | None) -> None:
    """Serve a scripted model that speaks Chat Completions, on loopback, until Ctrl+C. Prints its base URL."""
    with _UrlFile(url_file) as file:
        _serve(script, profile, port, token_env, file)


class _UrlFile:
    """The file with the base URL: complete, and there only while the server answers."""

    def __init__(self, name: str | None) -> None:
        self._file = Path(name) if name else None

    def __enter__(self) -> Self:
        self._remove()  # a leftover of a server that was killed
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def write(self, base_url: str) -> None:
        """Write it atomically, so that every reader sees all of it."""
        if self._file is None:
            return
        part = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        try:
            part.write_text(f"{base_url}\n", encoding="utf-8")
            part.replace(self._file)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise UsageError(f"{self._file} cannot be written: {error.strerror}.") from error

    def _remove(self) -> None:
        if self._file is not None:
            try:
                self._file.unlink(missing_ok=True)
            except OSError as error:
                raise UsageError(f"{self._file} cannot be removed: {error.strerror}.") from error


def _serve(script: str | None, profile: str, port: int, token_env: str | None, file: _UrlFile) -> None:
    from agentmesh.llm.simulator.serve import serve

    token = environment_variable(token_env) if token_env else None
    # A signal handler must not set the event itself: it may interrupt the wait for it, which holds its lock.
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
            started=partial(_announce, file),
            stop=ended,
        )


def _announce(file: _UrlFile, base_url: str) -> None:
    file.write(base_url)
    print(base_url, flush=True)
    say(
        f'Use it from another terminal:  OPENAI_BASE_URL={base_url} OPENAI_API_KEY=any agentmesh run --model demo "..."'
    )
