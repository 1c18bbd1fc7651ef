"""The way of this process to its models, which the workers of several databases share."""

from __future__ import annotations

import os
from collections.abc import Mapping

from agentmesh.app.host_and_user import HostAndUser
from agentmesh.config.settings import Settings
from agentmesh.engine.model_news import ModelNews
from agentmesh.llm.capabilities import Capabilities
from agentmesh.llm.models import Models
from agentmesh.llm.pauses import Pauses
from agentmesh.llm.provider import Provider
from agentmesh.llm.retry import RetryPolicy


class ModelClient:
    """Connections to the providers, with their pauses and what is known of their servers."""

    def __init__(self, settings: Settings, providers: Mapping[str, Provider], place: HostAndUser) -> None:
        calls = settings.model_calls
        self.providers = providers
        policy = RetryPolicy(retries=calls.retries, longest_pause=calls.longest_pause)
        pauses, capabilities = Pauses(policy), Capabilities()
        self.models = Models(providers, policy, pauses, capabilities)
        self.news = ModelNews(pauses, capabilities, f"{place.host} pid {os.getpid()}")
        """The news about models that this process and other workers exchange."""

    def close(self) -> None:
        """Close the connections."""
        self.models.close()
