"""HTTP to one provider by the openai SDK: its client, authentication and headers, on our own sockets.

Imports openai, so it is itself imported only at the first call. The answer's bytes are handed on as they come: the
SDK's stream builds an object per chunk, which costs nine times the bare protocol. A chat's headers are the SDK's, asked
for once: its building of each request anew was a third of a call's processor time.
"""

from __future__ import annotations

import contextlib
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import httpx2
import openai

from agentmesh.domain import jsontext
from agentmesh.llm.clients import Clients
from agentmesh.llm.failure import Answer, AttemptFailed, explain
from agentmesh.llm.provider import Provider
from agentmesh.llm.retry import retry_after
from agentmesh.llm.sockets import CancellableBackend

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
_WRITE_TIMEOUT = 60.0
_KEEP_ALIVE = 30.0
_LONGEST_ERROR = 256 * 1024
"""Bytes of an error's body that are read."""
_TELEMETRY = "x-stainless-"


class Wire:
    """Connections to one provider; thread-safe. Each call runs inside an Exchange of its thread."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        try:
            # Certificates are read once, for all clients: 20 ms.
            make = partial(_http, provider, httpx2.create_ssl_context())
            self._clients = Clients(make, _KEEP_ALIVE)
            http = make()
            self._client = _client(provider, http)
            # The SDK insists on an Authorization header unless told in the request itself that there is none.
            signed = provider.api_key or any(name.lower() == "authorization" for name in provider.headers)
            self._headers: dict[str, str | openai.Omit] = {} if signed else {"Authorization": openai.Omit()}
            self._chat = http.build_request(
                "POST",
                _below(self._client.base_url, "chat/completions"),
                headers=_settled({**self._client.auth_headers, **self._client.default_headers, **self._headers}),
            )
            del self._chat.headers["content-length"]  # of no body
        except (ImportError, ValueError, OSError, httpx2.InvalidURL) as error:
            raise AttemptFailed(
                "bad_request",
                f"No connection to {provider.name} can be made: {self._said(error)}",
                hint="Check base_url, and the proxy and the certificates in the environment.",
            ) from None

    @contextlib.contextmanager
    def chat(self, body: bytes, model: str, sent: Iterable[str]) -> Iterator[Iterator[bytes]]:
        """Send a chat request and yield the chunks of the answer's body as they come.

        Raises AttemptFailed, also from the iterator, when the answer is an error, breaks off or does not come.
        """
        http = self._clients.take()
        try:
            with self._translated(model, sent):
                response = http.send(self._request(http, body), stream=True)
            try:
                if not response.is_success:
                    with self._translated(model, sent):
                        said = _beginning(response)
                    raise self._refused(response, _error(said), model, sent)
                yield self._chunks(response, model)
            finally:
                response.close()
        finally:
            self._clients.give_back(http)

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
        self._clients.close()

    def _request(self, http: httpx2.Client, body: bytes) -> httpx2.Request:
        chat = self._chat
        return httpx2.Request(
            chat.method,
            chat.url,
            headers=chat.headers,
            content=body,
            cookies=http.cookies,
            extensions=chat.extensions,
        )

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
        # "from None": the errors hold the request with its key.
        try:
            yield
        except openai.APIStatusError as error:
            raise self._refused(error.response, error.body, model, sent) from None
        except openai.APIConnectionError as error:
            raise self._unreachable(error.__cause__ or error, model) from None
        except httpx2.HTTPError as error:
            raise self._unreachable(error, model) from None

    def _refused(self, response: httpx2.Response, error: Any, model: str, sent: Iterable[str]) -> AttemptFailed:
        said = response.headers.get("x-should-retry")
        answer = Answer(
            response.status_code,
            error,
            after=retry_after(response.headers),
            should_retry={"true": True, "false": False}.get(said or ""),
        )
        return explain(answer, self._provider, model, sent)

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
            away=isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout),
        )

    def _said(self, error: BaseException) -> str:
        return self._provider.redact(_ERRNO.sub("", str(error))) or type(error).__name__


def _http(provider: Provider, certificates: ssl.SSLContext) -> httpx2.Client:
    http = openai.DefaultHttpxClient(
        verify=certificates,
        limits=httpx2.Limits(keepalive_expiry=_KEEP_ALIVE),
        timeout=httpx2.Timeout(
            provider.first_token_timeout, connect=provider.connect_timeout, write=_WRITE_TIMEOUT, pool=_WRITE_TIMEOUT
        ),
    )
    # httpx2 has no public way to give its connection pools a backend and keep the proxies of the environment.
    for transport in (http._transport, *http._mounts.values()):  # noqa: SLF001
        if isinstance(transport, httpx2.HTTPTransport):
            transport._pool._network_backend = CancellableBackend()  # noqa: SLF001
    return http


def _client(provider: Provider, http: httpx2.Client) -> openai.OpenAI:
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


def _settled(headers: Mapping[str, str | openai.Omit]) -> httpx2.Headers:
    """Return headers of which a later one replaces an earlier one of its name, in whatever case; Omit takes it out.

    Those by which the SDK tells its vendor about this machine stay away.
    """
    settled = httpx2.Headers()
    for name, value in headers.items():
        settled.pop(name, None)
        if isinstance(value, str) and not name.lower().startswith(_TELEMETRY):
            settled[name] = value
    return settled


def _below(base: httpx2.URL, path: str) -> httpx2.URL:
    above, _, query = base.raw_path.partition(b"?")
    return base.copy_with(raw_path=above.rstrip(b"/") + b"/" + path.encode() + (b"?" + query if query else b""))


def _beginning(response: httpx2.Response) -> str:
    """Return what an error's body begins with: it may have no end, and what it means is looked for in all of it."""
    pieces, size = [], 0
    for piece in response.iter_bytes():
        pieces.append(piece)
        size += len(piece)
        if size >= _LONGEST_ERROR:
            break
    raw = b"".join(pieces)[:_LONGEST_ERROR]
    try:
        return raw.decode(response.encoding or "utf-8", "replace")
    except (LookupError, ValueError):  # base64 and idna are encodings, too, but of no text
        return raw.decode("utf-8", "replace")


def _error(said: str) -> Any:
    """Return what the body of an error says, as the SDK reads it."""
    text = said.strip()
    try:
        body = jsontext.parse(text)
    except ValueError:
        return text
    return body.get("error", body) if isinstance(body, dict) else body
