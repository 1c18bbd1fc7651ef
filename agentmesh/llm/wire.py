"""HTTP to one provider through the openai SDK.

It imports openai, so it is itself imported only at the first call. The SDK sends the bytes of a request and returns the
answer as an httpx response. We read its bytes ourselves: the SDK's stream builds an object per chunk, which costs nine
times as much as the bare protocol.
"""

from __future__ import annotations

import contextlib
import re
import ssl
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from agentmesh.domain import jsontext
from agentmesh.domain.text import one_line
from agentmesh.domain.urls import is_openai
from agentmesh.llm import listed
from agentmesh.llm.connections import Connections, ErrorResponse, Hooks, ModelConnection, Send
from agentmesh.llm.exchange import Exchange
from agentmesh.llm.failed_answer import FailedAnswer
from agentmesh.llm.failure import TRY_AGAIN, AttemptFailed, explain
from agentmesh.llm.provider import IDLE_TIMEOUT, Provider
from agentmesh.llm.retry import retry_after
from agentmesh.llm.sdk import openai

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
_WRITE_TIMEOUT = 60.0
_TLS = {
    "CERTIFICATE_VERIFY_FAILED": "If you trust the server, let SSL_CERT_FILE name the file with its certificate.",
    "WRONG_VERSION_NUMBER": "The server does not speak TLS there: base_url needs http:// instead of https://.",
}
"""What of a failed connection no later attempt changes, by OpenSSL's name, and what a person can do."""
_KEEP_ALIVE = 30.0
_LONGEST_DOCUMENT = 4 * 1024 * 1024
"""Bytes of a document in which a server says something of itself."""
_ADDRESSES = 3
"""A name may resolve to several addresses, each tried for the connect timeout."""

Sent = Callable[[], Collection[str]]
"""Returns the names of everything in a request that a server may refuse; called after a refusal."""


class Wire:
    """Connections to one provider; thread-safe."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        # The SDK insists on an Authorization header unless the request itself says that there is none.
        signed = provider.api_key or any(name.lower() == "authorization" for name in provider.headers)
        self._headers: dict[str, str | openai.Omit] = {} if signed else {"Authorization": openai.Omit()}
        try:
            url = httpx2.URL(provider.base_url)
            # Read the certificates once for all connections: it takes 20 ms.
            self._certificates = httpx2.create_ssl_context()
            self._name = f"{url.host}:{url.port or url.scheme}"
            self._connections = Connections(self._connection, _KEEP_ALIVE)
            self._connections.give_back(self._connection())
        except (ImportError, ValueError, OSError, httpx2.InvalidURL) as error:
            raise AttemptFailed(
                "bad_request",
                f"No connection to {provider.name} can be made: {self._said(error)}",
                hint="Check base_url, and the proxy and the certificates in the environment.",
            ) from None

    @contextlib.contextmanager
    def chat(self, exchange: Exchange, body: bytes, model: str, sent: Sent) -> Iterator[Iterator[bytes]]:
        """Send a chat request and yield the chunks of the answer's body as they arrive.

        Raise AttemptFailed, also from the iterator, if the answer is an error, breaks off or does not arrive.
        """

        def send(client: openai.OpenAI) -> httpx2.Response:
            answer = client.post(
                "/chat/completions",
                cast_to=httpx2.Response,
                content=body,
                options={"headers": self._headers},
                stream=True,
                stream_cls=openai.Stream[object],
            )
            return cast("httpx2.Response", answer)

        with self._asked(exchange, send, model, sent) as response:
            yield self._chunks(response, exchange, model)

    def listing(self, exchange: Exchange) -> list[Mapping[str, Any]]:
        """Return the entries of the server's list of models; raise AttemptFailed."""
        try:
            return listed.entries(self._document(exchange, "/models"))
        except ValueError:
            raise AttemptFailed("garbage", f"{self._provider.name} lists its models in an unknown form.") from None

    def own(self, exchange: Exchange, name: str) -> Any:
        """Return a server's account of itself: the document of this name beside its ``/v1``.

        Raise AttemptFailed, also if it is not JSON.
        """
        try:
            return self._document(exchange, f"{self._provider.root}/{name}")
        except ValueError:
            raise AttemptFailed("garbage", f"{self._provider.name} says at /{name} what is not JSON.") from None

    def _document(self, exchange: Exchange, path: str) -> Any:
        """Return a JSON document of the server; raise AttemptFailed, or ValueError for another or too long a text."""

        def send(client: openai.OpenAI) -> httpx2.Response:
            answer = client.get(
                path,
                cast_to=httpx2.Response,
                options={"headers": self._headers},
                stream=True,
                stream_cls=openai.Stream[object],
            )
            return cast("httpx2.Response", answer)

        with self._asked(exchange, send, "", set) as response:
            body = bytearray()
            for piece in self._chunks(response, exchange, ""):
                body += piece
                if len(body) > _LONGEST_DOCUMENT:
                    raise ValueError
        return jsontext.parse(bytes(body))

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    @contextlib.contextmanager
    def _asked(self, exchange: Exchange, send: Send, model: str, sent: Sent) -> Iterator[httpx2.Response]:
        """Send a request on a connection that the exchange can cut, and yield the answer."""
        connection = self._connections.take()
        try:
            with exchange.using(connection):
                exchange.allow(self._provider.connect_timeout * _ADDRESSES + exchange.seconds)
                with self._translated(exchange, model, sent):
                    response = connection.ask(send, lambda: exchange.allow(exchange.seconds))
                with contextlib.closing(response):
                    yield response
        finally:
            self._connections.give_back(connection)

    def _chunks(self, response: httpx2.Response, exchange: Exchange, model: str) -> Iterator[bytes]:
        where = self._provider.named(model)
        reason: BaseException | None = None
        try:
            yield from response.iter_bytes()
        except httpx2.HTTPError as error:
            reason = error
        if exchange.timed_out or isinstance(reason, httpx2.TimeoutException):
            raise _too_slow(where, exchange)
        if reason is not None:
            raise AttemptFailed(
                "cut",
                f"The connection to {where} broke in the middle of an answer: {self._said(reason)}",
                hint=TRY_AGAIN,
                retry=True,
            )

    @contextlib.contextmanager
    def _translated(self, exchange: Exchange, model: str, sent: Sent) -> Iterator[None]:
        # "from None": the errors contain the request with its key.
        try:
            yield
        except ErrorResponse as refused:
            raise self._refused(refused.response, _error(refused.body), model, sent) from None
        except (openai.APIConnectionError, httpx2.HTTPError, OSError) as error:
            raise self._unreachable(error.__cause__ or error, exchange, model) from None

    def _refused(self, response: httpx2.Response, error: Any, model: str, sent: Sent) -> AttemptFailed:
        if response.is_redirect:
            to = one_line(self._provider.redact(response.headers.get("location", "nowhere")), 200)
            return AttemptFailed(
                "bad_request",
                f"{self._provider.named(model)} redirects to {to}, which is not followed.",
                hint="Set base_url to that address, if it is yours: key, headers and conversation go there then.",
                status=response.status_code,
            )
        said = response.headers.get("x-should-retry")
        answer = FailedAnswer(
            response.status_code,
            error,
            after=retry_after(response.headers),
            should_retry={"true": True, "false": False}.get(said or ""),
        )
        return explain(answer, self._provider, model, sent())

    def _unreachable(self, error: BaseException, exchange: Exchange, model: str) -> AttemptFailed:
        provider = self._provider
        where = f"{provider.named(model)} at {provider.address}"
        is_timeout = exchange.timed_out or isinstance(error, httpx2.TimeoutException)
        if is_timeout and not isinstance(error, httpx2.ConnectTimeout):
            return _too_slow(where, exchange)
        if isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol | httpx2.InvalidURL):
            return AttemptFailed(
                "bad_request", f"No request can be sent to {where}.", hint="Check base_url and headers."
            )
        said = self._said(error)
        through, hint = "", "Check that the server runs and that base_url and the network are right."
        final = next((words for sign, words in _TLS.items() if sign in said), None)
        if proxy := _proxy(provider.base_url):
            through = f" through the proxy {proxy}"
            hint = "Check the proxy. NO_PROXY names the servers that are reached without it."
            if "WRONG_VERSION_NUMBER" in said:  # it may be the proxy's own TLS, and the key must not go in clear
                final = "Check the proxy's URL: most proxies are reached by http://, for servers with https:// too."
        return AttemptFailed(
            "connection",
            f"{where} cannot be reached{through}: {said}",
            hint=final or hint,
            retry=final is None,
            away=isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout),
        )

    def _connection(self) -> ModelConnection:
        return ModelConnection(
            lambda hooks: _client(self._provider, _http(self._provider, self._certificates, hooks)), self._name
        )

    def _said(self, error: BaseException) -> str:
        return self._provider.redact(_ERRNO.sub("", str(error))) or type(error).__name__


def _too_slow(where: str, exchange: Exchange) -> AttemptFailed:
    late = "accepted the request and did not answer in time"
    how = "stopped sending before the end of its answer" if exchange.setting == IDLE_TIMEOUT else late
    hint = f"Raise {exchange.setting} if the server is only slow." if exchange.setting else ""
    return AttemptFailed("timeout", f"{where} {how}.", hint=hint, retry=True)


def _proxy(base_url: str) -> str:
    """Return host and port of the environment's proxy for a URL, without a password; empty if there is none."""
    url = urlsplit(base_url)
    try:
        found = getproxies()
        proxy = urlsplit(found.get(url.scheme) or found.get("all") or "")
        name = proxy.netloc.rpartition("@")[2] or proxy.path
        return "" if not name or proxy_bypass(url.hostname or "") else one_line(name, 80)
    except ValueError:
        return ""


def _http(provider: Provider, certificates: ssl.SSLContext, hooks: Hooks) -> httpx2.Client:
    return openai.DefaultHttpxClient(
        verify=certificates,
        limits=httpx2.Limits(keepalive_expiry=None),  # Connections decides how long
        timeout=httpx2.Timeout(
            max(provider.first_token_timeout, provider.idle_timeout),  # an Exchange sets the shorter deadlines
            connect=provider.connect_timeout,
            write=_WRITE_TIMEOUT,
            pool=_WRITE_TIMEOUT,
        ),
        event_hooks=hooks,
        follow_redirects=False,  # the key, the headers and the conversation are for this address alone
    )


def _client(provider: Provider, http: httpx2.Client) -> openai.OpenAI:
    url = httpx2.URL(provider.base_url)
    return openai.OpenAI(
        api_key=provider.api_key,
        admin_api_key="",  # must be given: otherwise the SDK takes OpenAI's from the environment, or insists on a key
        base_url=url.copy_with(query=None),
        default_query=dict(url.params),
        max_retries=0,
        http_client=http,
        default_headers=cast("Mapping[str, str]", _headers(provider)),
    )


def _headers(provider: Provider) -> dict[str, str | openai.Omit]:
    """Return the headers of every request; Omit leaves out values that the SDK would take from OPENAI_* variables."""
    headers: dict[str, str | openai.Omit] = {
        "Authorization": f"Bearer {provider.api_key}" if provider.api_key else openai.Omit()
    }
    if not is_openai(provider.base_url):
        headers |= {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
    return headers | dict(provider.headers)


def _error(said: str) -> Any:
    """Return the content of an error's body, as the SDK reads it."""
    text = said.strip()
    try:
        body = jsontext.parse(text)
    except ValueError:
        return text
    return body.get("error", body) if isinstance(body, dict) else body
