"""The welcome for a person who has configured no model: three lines, and the local servers that answer."""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

LOCAL_PORTS: Mapping[int, str] = MappingProxyType(
    {11434: "Ollama", 1234: "LM Studio", 8000: "vLLM", 8080: "llama.cpp", 4000: "LiteLLM"}
)
"""Where local model servers listen unless told otherwise."""

_SECONDS = 0.3


def welcome(servers: Iterable[str], help_key: str) -> str:
    """Return the three lines; each fits a narrow terminal unless servers answer."""
    found = [f"OPENAI_BASE_URL={server}" for server in servers]
    local = f" A local server answers: {' or '.join(found)}" if found else ""
    return "\n".join(
        [
            "No model set up: this is a scripted demo; agents and tools are real.",
            f"For a real one set OPENAI_API_KEY and AGENTMESH_MODEL=NAME, then start again.{local}",
            f"Type demo and press Enter to see agents at work. {help_key}: commands and keys.",
        ]
    )


def answering(ports: Iterable[int] = tuple(LOCAL_PORTS)) -> list[str]:
    """Return the URLs of local model servers that answer within a blink; they are offered, never chosen."""
    with ThreadPoolExecutor(8, thread_name_prefix="probe") as threads:
        return [url for url in threads.map(_asked, ports) if url]


def _asked(port: int) -> str | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request("GET", "/v1/models")
        answer = connection.getresponse()
        is_list = answer.status == 200 and '"data"' in answer.read(100_000).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return f"http://localhost:{port}/v1" if is_list else None
