"""HTTP to one provider by the openai SDK: its authentication, headers and error classes, on our own sockets.

Imports openai, so it is itself imported only at the first call. The answer's bytes are handed on as they come: the
SDK's stream builds an object per chunk, which costs nine times the bare protocol.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import httpx2
import openai

from agentmesh.llm.failure import Answer, AttemptFailed, explain
from agentmesh.llm.provider import Provider
from agentmesh.llm.retry import retry_after
from agentmesh.llm.sockets import CancellableBackend

_WRITE_TIMEOUT = 60.0
_KEEP_ALIVE = 30.0


class Wire:
    """Connections to one provider; thread-safe. Each call runs inside an Exchange of its thread."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        try:
            self._client = _client(provider)
        except (ImportError, ValueError, OSError, httpx2.InvalidURL) as error:
            raise AttemptFailed(
                "bad_request",
                f"No connection to {provider.name} can be made: {self._said(error)}",
                hint="Check base_url, and the proxy and the certificates in the environment.",
            ) from None
        # The SDK insists on an Authorization header unless told in the request itself that there is none.
        signed = provider.api_key or any(name.lower() == "authorization" for name in provider.headers)
        self._headers: dict[str, str | openai.Omit] = {} if signed else {"Authorization": openai.Omit()}

    @contextlib.contextmanager
    def chat(self, body: bytes, model: str, sent: Iterable[str]) -> Iterator[Iterator[bytes]]:
        """Send a chat request and yield the chunks of the answer's body as they come.

        Raises AttemptFailed, also from the iterator, when the answer is an error, breaks off or does not come.
        """
        with self._translated(model, sent):
            answer = self._client.post(
                "/chat/completions",
                content=body,
                cast_to=httpx2.Response,
                options={"headers": self._headers},
                stream=True,
                stream_cls=openai.Stream[object],
            )
        # With this cast_to the SDK returns the response itself, unread; its types promise a stream.
        response = cast("httpx2.Response", answer)
        try:
            yield self._chunks(response, model)
        finally:
            response.close()

    def models(self) -> tuple[str, ...]:
        """Return the names of the models that the server has; raise AttemptFailed."""
        with self._translated("", ()):
            response: httpx2.Response = self._client.get(
                "/models", cast_to=httpx2.Response, options={"headers": self._headers}
            )
            try:
                found = response.json()
            except ValueError:
                raise AttemptFailed("garbage", f"{self._provider.name} lists its models in no known form.") from None
        listed = found.get("data") if isinstance(found, dict) else None
        entries = listed if isinstance(listed, list) else ()
        return tuple(str(entry["id"]) for entry in entries if isinstance(entry, dict) and entry.get("id"))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _chunks(self, response: httpx2.Response, model: str) -> Iterator[bytes]:
        where = self._provider.named(model)
        try:
            yield from response.iter_bytes()
        except httpx2.TimeoutException:
            raise AttemptFailed(
                "timeout",
                f"{where} stopped sending before the end of its answer.",
                hint="Raise the provider's idle_timeout if the server is only slow.",
                retry=True,
            ) from None
        except httpx2.HTTPError as error:
            raise AttemptFailed(
                "cut",
                f"The connection to {where} broke in the middle of an answer: {self._said(error)}",
                hint="Try again.",
                retry=True,
            ) from None

    @contextlib.contextmanager
    def _translated(self, model: str, sent: Iterable[str]) -> Iterator[None]:
        # "from None": the SDK's errors hold the request with its key.
        provider = self._provider
        try:
            yield
        except openai.APIStatusError as error:
            said = error.response.headers.get("x-should-retry")
            answer = Answer(
                error.status_code,
                error.body,
                after=retry_after(error.response.headers),
                should_retry={"true": True, "false": False}.get(said or ""),
            )
            raise explain(answer, provider, model, sent) from None
        except openai.APIConnectionError as error:
            raise self._unreachable(error.__cause__ or error, model) from None
        except httpx2.HTTPError as error:  # the SDK reads the body of an error without translating what happens then
            raise self._unreachable(error, model) from None

    def _unreachable(self, error: BaseException, model: str) -> AttemptFailed:
        provider = self._provider
        where = f"{provider.named(model)} at {provider.address}"
        if isinstance(error, httpx2.TimeoutException) and not isinstance(error, httpx2.ConnectTimeout):
            return AttemptFailed(
                "timeout",
                f"{where} accepted the request and did not answer in time.",
                hint="Raise the provider's first_token_timeout if the server is only slow.",
                retry=True,
            )
        if isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol | httpx2.InvalidURL):
            return AttemptFailed(
                "bad_request", f"No request can be sent to {where}.", hint="Check base_url and headers."
            )
        said = self._said(error)
        return AttemptFailed(
            "connection",
            f"{where} cannot be reached: {said}",
            hint="Check that the server runs and that base_url and the network are right.",
            retry="CERTIFICATE_VERIFY_FAILED" not in said,
        )

    def _said(self, error: BaseException) -> str:
        return self._provider.redact(str(error)) or type(error).__name__


def _client(provider: Provider) -> openai.OpenAI:
    http = openai.DefaultHttpxClient(
        limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=_KEEP_ALIVE),
        timeout=httpx2.Timeout(
            provider.first_token_timeout, connect=provider.connect_timeout, write=_WRITE_TIMEOUT, pool=_WRITE_TIMEOUT
        ),
    )
    # httpx2 has no public way to give its connection pools a backend and keep the proxies of the environment.
    for transport in (http._transport, *http._mounts.values()):  # noqa: SLF001
        if isinstance(transport, httpx2.HTTPTransport):
            transport._pool._network_backend = CancellableBackend()  # noqa: SLF001
    return openai.OpenAI(
        api_key=provider.api_key,
        admin_api_key="",  # given, else the SDK takes OpenAI's from the environment, or insists on a key
        base_url=provider.base_url,
        max_retries=0,
        http_client=http,
        default_headers=cast("Mapping[str, str]", _headers(provider)),
    )


def _headers(provider: Provider) -> dict[str, str | openai.Omit]:
    """Return the headers of every request; Omit keeps out what the SDK would take from OPENAI_* variables."""
    headers: dict[str, str | openai.Omit] = {
        "Authorization": f"Bearer {provider.api_key}" if provider.api_key else openai.Omit()
    }
    if httpx2.URL(provider.base_url).host != "api.openai.com":
        headers |= {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
    return headers | dict(provider.headers)
