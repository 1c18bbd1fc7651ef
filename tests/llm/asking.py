"""How the tests of the client ask a model: one request, a watch that remembers, a call in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentmesh.domain.cancel import Cancel
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.port import ChatModel, ChatRequest, Reply, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.retry import RetryPolicy
from tests.llm.misbehaving import PATIENCE, Server

AT_ONCE = RetryPolicy(retries=2, first=0.0, longest_pause=0.0)
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}


def request(model: str = "m-1", words: str = "hi", **settings: Any) -> ChatRequest:
    return ChatRequest(model, [{"role": "user", "content": words}], [TOOL], settings)


def client(server: Server, policy: RetryPolicy = AT_ONCE, **fields: Any) -> OpenAIChat:
    return OpenAIChat(
        Provider(**{"name": "acme", "base_url": server.url, "api_key": "key-0123456789", **fields}), policy
    )


@dataclass
class Log:
    """What a Watch was told."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    retries: list[tuple[float, str]] = field(default_factory=list)
    pauses: list[tuple[float, str]] = field(default_factory=list)

    def watch(self) -> Watch:
        return Watch(
            text=self.text.append,
            reasoning=self.reasoning.append,
            tool=self.tools.append,
            retry=lambda pause, why: self.retries.append((pause, why)),
            paused=lambda pause, why, _left: self.pauses.append((pause, why)),
        )


def ask(server: Server, log: Log | None = None, *, asked: ChatRequest | None = None, **fields: Any) -> Reply:
    model = client(server, **fields)
    try:
        return model.complete(asked or request(), Cancel(), (log or Log()).watch())
    finally:
        model.close()


class Asking:
    """A call in a thread of its own."""

    def __init__(self, model: ChatModel, watch: Watch | None = None) -> None:
        self.cancel = Cancel()
        self.outcome: Reply | Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(model, watch or Watch()), daemon=True)
        self._thread.start()

    def _run(self, model: ChatModel, watch: Watch) -> None:
        try:
            self.outcome = model.complete(request(), self.cancel, watch)
        except Exception as error:  # noqa: BLE001  the top frame of a thread; the test looks at it
            self.outcome = error

    def end(self) -> Reply | Exception | None:
        """Return how the call ended; None if it hangs."""
        self._thread.join(PATIENCE)
        return self.outcome


def eventually(condition: Callable[[], bool]) -> None:
    """Look until the condition holds."""
    tick = threading.Event()
    for _ in range(int(PATIENCE / 0.01)):
        if condition():
            return
        tick.wait(0.01)
    raise AssertionError("it never came about")
