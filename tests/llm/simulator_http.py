"""A raw HTTP client for tests of the simulator: nothing of ours between the bytes and the assertions."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

USER = {"role": "user", "content": "hello"}


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, read to its end."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        """The body parsed."""
        return json.loads(self.raw)

    @property
    def blocks(self) -> list[str]:
        """The stream's events and comments as sent."""
        return [block for block in self.raw.decode().split("\n\n") if block]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """The stream's events parsed, without comments and ``[DONE]``."""
        data = (block.removeprefix("data: ") for block in self.blocks if block.startswith("data: "))
        return [json.loads(item) for item in data if item != "[DONE]"]

    @property
    def done(self) -> bool:
        """Whether the stream's last event is ``[DONE]``."""
        return bool(self.blocks) and self.blocks[-1] == "data: [DONE]"

    def choices(self) -> list[dict[str, Any]]:
        """The first choice of each chunk that has one."""
        return [chunk["choices"][0] for chunk in self.chunks if chunk.get("choices")]

    def deltas(self, field: str) -> list[Any]:
        """The values of one field of the deltas, where it is there and not empty."""
        return [choice["delta"][field] for choice in self.choices() if choice["delta"].get(field)]

    def finish_reasons(self) -> list[str]:
        """The finish reasons given."""
        return [choice["finish_reason"] for choice in self.choices() if choice.get("finish_reason")]


def open_connection(base_url: str, timeout: float = 20) -> http.client.HTTPConnection:
    """Connect to the server."""
    return http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=timeout)


def ask(connection: http.client.HTTPConnection, token: str = "", **body: Any) -> Answer:
    """Send one chat request over an open connection and read the answer."""
    whole = {"model": "m", "messages": [USER], **body}
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    connection.request("POST", "/v1/chat/completions", json.dumps(whole), headers)
    response = connection.getresponse()
    return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())


def chat(base_url: str, token: str = "", **body: Any) -> Answer:
    """Send one chat request over a connection of its own."""
    connection = open_connection(base_url)
    try:
        return ask(connection, token, **body)
    finally:
        connection.close()


def stream(base_url: str, **body: Any) -> Answer:
    """Ask for a stream with usage."""
    return chat(base_url, stream=True, stream_options={"include_usage": True}, **body)


def get(base_url: str, path: str, token: str = "") -> Answer:
    """Send a GET request."""
    connection = open_connection(base_url)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()
