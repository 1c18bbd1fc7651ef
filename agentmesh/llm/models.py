"""All models of a process: the models of the configured providers, and the scripted one with a server of its own."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from agentmesh.domain.cancel import Cancel
from agentmesh.llm.bounds import Bounds
from agentmesh.llm.capabilities import Capabilities
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.pauses import Pauses
from agentmesh.llm.port import ChatRequest, Prices, Reply, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.retry import RetryPolicy
from agentmesh.llm.router import Router

if TYPE_CHECKING:
    from agentmesh.llm.simulator.server import Simulator

DEMO = "demo"
"""Provider of the scripted model; its one model is demo/demo."""


class Models:
    """A ChatModel for every model name of a session; the scripted model's server starts at its first call."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        policy: RetryPolicy | None = None,
        pauses: Pauses | None = None,
        capabilities: Capabilities | None = None,
    ) -> None:
        self._router = Router(providers, policy=policy, pauses=pauses, capabilities=capabilities)
        self._lock = threading.Lock()
        self._simulator: Simulator | None = None
        self._demo: OpenAIChat | None = None

    def complete(self, request: ChatRequest, cancel: Cancel, watch: Watch) -> Reply:
        """Return the answer; raise CallCancelled if ``cancel`` is set, CallFailed if the call fails for good."""
        if request.model.startswith(f"{DEMO}/"):
            return replace(self._demo_client().complete(request, cancel, watch), cost_usd=0.0)
        return self._router.complete(request, cancel, watch)

    def context_window(self, model: str) -> int | None:
        """Return the model's context size in tokens, or None if unknown."""
        return None if model.startswith(f"{DEMO}/") else self._router.context_window(model)

    def renew_window(self, model: str, cancel: Cancel) -> None:
        """Ask the model's server again for a context size that it was seen to have."""
        if not model.startswith(f"{DEMO}/"):
            self._router.renew_window(model, cancel)

    def slots(self, model: str) -> int | None:
        """Return how many conversations the model's server keeps and answers at once; None if it does not say."""
        return None if model.startswith(f"{DEMO}/") else self._router.slots(model)

    def sees(self, model: str) -> bool:
        """Return whether the model is sent images; raise CallFailed for an unknown provider."""
        return True if model.startswith(f"{DEMO}/") else self._router.sees(model)

    def answer_tokens(self, model: str) -> int:
        """Return the limit of output tokens for one answer of the model; raise CallFailed for an unknown provider."""
        return Bounds().tokens if model.startswith(f"{DEMO}/") else self._router.answer_tokens(model)

    def token_prices(self, model: str, input_tokens: int) -> Prices | None:
        """Return the listed prices for a request of this size, None if unknown; raise CallFailed as above."""
        return None if model.startswith(f"{DEMO}/") else self._router.token_prices(model, input_tokens)

    def address(self, model: str) -> str:
        """Return the base URL of the model's server, none of the scripted model; raise CallFailed as above."""
        return "" if model.startswith(f"{DEMO}/") else self._router.address(model)

    def warm(self) -> None:
        """Import and open everything that the first call to a provider needs; skip the scripted model."""
        self._router.warm()

    def close(self) -> None:
        """Close connections and the scripted model's server."""
        self._router.close()
        with self._lock:
            demo, self._demo = self._demo, None
            simulator, self._simulator = self._simulator, None
        if demo:
            demo.close()
        if simulator:
            simulator.stop()

    def _demo_client(self) -> OpenAIChat:
        with self._lock:
            if self._demo is None:
                from agentmesh.llm.simulator.demo import demo_responder
                from agentmesh.llm.simulator.server import Simulator

                self._simulator = Simulator(demo_responder(), record=False)
                self._demo = OpenAIChat(Provider(DEMO, self._simulator.start()))
            return self._demo
