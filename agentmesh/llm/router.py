"""Several providers behind one ChatModel: ``provider/model`` names the server, a bare name uses the default one."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from agentmesh.domain.cancel import Cancel
from agentmesh.llm.capabilities import Capabilities
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.pauses import Pauses
from agentmesh.llm.port import CallFailed, ChatRequest, Prices, Reply, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.retry import RetryPolicy


class Router:
    """A ChatModel that sends each request to the provider of its model; thread-safe."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        policy: RetryPolicy | None = None,
        pauses: Pauses | None = None,
        capabilities: Capabilities | None = None,
    ) -> None:
        """Route among ``providers``; a single one also takes names without a provider."""
        self._providers = dict(providers)
        self._default = next(iter(self._providers)) if len(self._providers) == 1 else None
        self._policy = policy
        self._pauses = pauses or Pauses(policy)
        self._capabilities = capabilities or Capabilities()
        self._lock = threading.Lock()
        self._clients: dict[str, OpenAIChat] = {}

    def resolve(self, model: str) -> tuple[OpenAIChat, str]:
        """Return the provider's client and the model's name at that provider; raise CallFailed."""
        first, slash, rest = model.partition("/")
        if slash and rest and first in self._providers:
            return self._client(first), rest
        if self._default in self._providers and model:
            return self._client(self._default), model
        configured = ", ".join(sorted(self._providers)) or "none"
        raise CallFailed(
            f"No provider is configured for model {model!r}.",
            hint=f"Write provider/model; configured providers: {configured}.",
            kind="unknown_model",
        )

    def complete(self, request: ChatRequest, cancel: Cancel, watch: Watch) -> Reply:
        """Return the answer; raise CallCancelled if ``cancel`` is set, CallFailed if the call fails for good."""
        client, model = self.resolve(request.model)
        return client.complete(replace(request, model=model), cancel, watch)

    def context_window(self, model: str) -> int | None:
        """Return the model's context size in tokens, or None if unknown."""
        client, name = self.resolve(model)
        return client.context_window(name)

    def renew_window(self, model: str, cancel: Cancel) -> None:
        """Ask the model's server again for a context size that it was seen to have."""
        client, name = self.resolve(model)
        client.renew_window(name, cancel)

    def slots(self, model: str) -> int | None:
        """Return how many conversations the model's server keeps and answers at once; None if it does not say."""
        client, name = self.resolve(model)
        return client.slots(name)

    def sees(self, model: str) -> bool:
        """Return whether the model is sent images; raise CallFailed for an unknown provider."""
        client, name = self.resolve(model)
        return client.sees(name)

    def answer_tokens(self, model: str) -> int:
        """Return the limit of output tokens for one answer of the model; raise CallFailed for an unknown provider."""
        client, name = self.resolve(model)
        return client.answer_tokens(name)

    def token_prices(self, model: str, input_tokens: int) -> Prices | None:
        """Return the listed prices for a request of this size, None if unknown; raise CallFailed as above."""
        client, name = self.resolve(model)
        return client.token_prices(name, input_tokens)

    def address(self, model: str) -> str:
        """Return the base URL of the model's server, without secrets; raise CallFailed as above."""
        return self.resolve(model)[0].provider.address

    def warm(self) -> None:
        """Import and open everything that the first call to each provider needs."""
        for name in self._providers:
            self._client(name).warm()

    def close(self) -> None:
        """Close the connections of all providers."""
        with self._lock:
            clients = list(self._clients.values())
        for client in clients:
            client.close()

    def _client(self, name: str) -> OpenAIChat:
        with self._lock:
            if name not in self._clients:
                self._clients[name] = OpenAIChat(self._providers[name], self._policy, self._pauses, self._capabilities)
            return self._clients[name]
