"""Asks a model server for the list of its models, which costs nothing."""

from __future__ import annotations

import http.client
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

from agentmesh.domain import jsontext
from agentmesh.domain.text import one_line
from agentmesh.llm import listed

LOCAL_PORTS: Mapping[int, str] = MappingProxyType(
    {11434: "Ollama", 1234: "LM Studio", 8000: "vLLM", 8080: "llama.cpp", 4000: "LiteLLM"}
)
"""Where local model servers listen unless told otherwise."""
_LOCAL_SECONDS = 0.3
_SECONDS = 5.0
_MOST_BYTES = 4 * 1024 * 1024
_LONGEST = 200


def fetch(base_url: str, headers: Mapping[str, str]) -> list[str]:
    """Return the names of the models; empty if the answer has another form. Raise what urllib raises."""
    return list(windows(base_url, headers))


def windows(base_url: str, headers: Mapping[str, str], seconds: float = _SECONDS) -> dict[str, int | None]:
    """Return the models, each with its context size in tokens if the server names it; otherwise as ``fetch``."""
    request = urllib.request.Request(f"{base_url}/models", headers=dict(headers))  # noqa: S310  http(s), checked
    with urllib.request.build_opener(_StayThere).open(request, timeout=seconds) as response:
        return _entries(response.read(_MOST_BYTES))


def local_servers(ports: Iterable[int] = tuple(LOCAL_PORTS)) -> dict[str, str]:
    """Return the local servers that answer within a blink, each URL with the program that listens there by default."""
    with ThreadPoolExecutor(8, thread_name_prefix="probe") as threads:
        urls = [url for url in threads.map(_asked, ports) if url]
    return {url: LOCAL_PORTS.get(int(url.split(":")[2].partition("/")[0]), "a model server") for url in urls}


def _asked(port: int) -> str | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_LOCAL_SECONDS)
    try:
        connection.request("GET", "/v1/models")
        answer = connection.getresponse()
        is_list = answer.status == 200 and '"data"' in answer.read(100_000).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return f"http://localhost:{port}/v1" if is_list else None


def _entries(body: bytes) -> dict[str, int | None]:
    try:
        data: Any = jsontext.parse(body)["data"]
        return {one_line(str(entry["id"]), _LONGEST): listed.window(entry) for entry in data}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


class _StayThere(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key is for this server only."""

    def redirect_request(self, *_: Any) -> None:
        return None
