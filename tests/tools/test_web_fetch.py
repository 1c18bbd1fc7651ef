"""web_fetch against real servers on loopback, which the configuration of these tests allows by name and port."""

from __future__ import annotations

import errno
import gzip
import itertools
import shutil
import socket
import ssl
import subprocess
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentmesh.config.schema import Web
from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.engine.tool import ToolError
from agentmesh.tools import web_get
from agentmesh.tools.web_address import Target, is_public
from agentmesh.tools.web_fetch import WebFetch
from tests.tools.calling import call, context
from tests.tools.web_server import Reply, WebServer, answer, moved, serving

HERE = Path("/")


def fetch(server: WebServer, path: str = "/", allow: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """Fetch from a server that the configuration allows."""
    tool = WebFetch(Web(allow_private=(server.url.partition("://")[2], *allow)))
    return call(tool, more.pop("where", HERE), url=server.url + path, **more)


def one(reply: Reply, **more: Any) -> dict[str, Any]:
    """Fetch this one answer."""
    with serving({"/": reply}) as server:
        return fetch(server, **more)


# What comes back


def test_a_page_becomes_markdown():
    page = (
        "<html><head><title>A &amp; B</title><script>no()</script></head><body><h1>Head</h1><p>Some <b>text</b> and "
        "<a href='/x'>a link</a>.</p><ul><li>one<li>two</ul><pre>a\n  b</pre><table><tr><td>1<td>2</table>"
    )
    with serving({"/": answer(page, "text/html")}) as server:
        result = fetch(server)
    assert result == {
        "url": f"{server.url}/",
        "status": 200,
        "content_type": "text/html",
        "title": "A & B",
        "content": f"# Head\n\nSome text and [a link]({server.url}/x).\n\n- one\n- two\n\n```\na\n  b\n```\n\n1 | 2",
    }


def test_raw_leaves_html_as_it_is():
    assert one(answer("<p>x", "text/html"), raw=True)["content"] == "<p>x"


@pytest.mark.parametrize(
    "kind", ["application/json", "application/ld+json; charset=utf-8", "text/x-python", "", "TEXT/CSV"]
)
def test_other_text_comes_as_it_is(kind: str):
    assert one(answer('{"a": "<b>é"}', kind))["content"] == '{"a": "<b>é"}'


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain; charset=iso-8859-1", b"caf\xe9 \x80", "café €"),
        ("text/plain; charset=utf-16", "é".encode("utf-16"), "é"),
        ("text/plain", b"\xff\xfe" + "é".encode("utf-16-le"), "é"),
        ("text/plain", b"\xef\xbb\xbf" + "é".encode(), "é"),
        ("text/plain", b"caf\xe9", "café"),
        ("text/plain; charset=shift_jis", "日本".encode("shift_jis"), "日本"),
        ("text/html", b"<meta charset='koi8-r'>" + "мир".encode("koi8-r"), "мир"),
        ("application/xml", b'<?xml version="1.0" encoding="gb2312"?>' + "中".encode("gb2312"), None),
        ("text/plain; charset=no-such-thing", "é".encode(), "é"),
        ("text/plain; charset=punycode", "é".encode(), "é"),
        ("text/plain; charset=zip", "é".encode(), "é"),
        ("text/plain; charset=utf-8", b"caf\xe9", "caf\ufffd"),
    ],
)
def test_charsets(kind: str, body: bytes, text: str | None):
    content = one(answer(body, kind))["content"]
    assert content == text if text else content.endswith("中")


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (answer(b"%PDF", "application/pdf"), "application/pdf of 4 bytes, not text"),
        (answer(b"\x89PNG", "image/png", Content_Length=""), "image/png of unknown size, not text"),
        (answer(b"a\0b", "text/plain"), "binary of 3 bytes, not text"),
        (answer(b"x", "te\x1b[31mxt; x", Content_Length="1"), "not text"),
        (answer("gone", status="410 Gone"), "answered 410 Gone"),
        (answer("x", status="503 Service Unavailable"), "answered 503 Service Unavailable"),
        (answer("x", Content_Encoding="br"), "packed as 'br'"),
        (answer("x", Content_Encoding="gzip"), "no complete answer"),
        (answer("x", Content_Length="9"), "no complete answer: it ended early"),
        (b"nonsense\r\n\r\n", "no complete answer"),
        (b"", "no complete answer"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", "no complete answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "no complete answer"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(reply: bytes, words: str):
    with pytest.raises(ToolError, match=words) as caught:
        one(reply)
    assert caught.value.hint
    assert "\x1b" not in str(caught.value)


def test_gzip_and_chunks_are_taken_apart():
    packed = gzip.compress(b"hello " * 1000)
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (packed[:10], packed[10:])) + b"0\r\n\r\n"
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    assert one(head + chunks)["content"] == "hello " * 1000


# Bounds


def test_long_text_keeps_head_and_tail():
    result = one(answer(f"first {'x' * 100_000} last"), where=context(HERE, output_limit=2000))
    assert len(result["content"].encode()) <= 2000
    assert result["content"].startswith("first")
    assert result["content"].endswith("last")
    assert result["truncated"] is True


def test_a_gzip_bomb_is_unpacked_no_further_than_the_bound():
    stream = zlib.compressobj(1, wbits=31)
    bomb = b"".join(stream.compress(b"\n" * (1 << 20)) for _ in range(64)) + stream.flush()
    result = one(answer(bomb, Content_Encoding="gzip"))
    assert (result["truncated"], result["note"]) == (True, "Only its first 5 MiB were read.")


def test_an_endless_body_is_read_no_further_than_the_bound():
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    assert one(endless)["note"] == "Only its first 5 MiB were read."


def dripping(head: bytes) -> Callable[[socket.socket], None]:
    """Return who sends this and then never ends, a byte at a time."""

    def drip(connection: socket.socket) -> None:
        connection.sendall(head)
        connection.settimeout(0.05)
        while True:
            connection.sendall(b"x")
            try:
                if not connection.recv(1):
                    return
            except TimeoutError:
                continue

    return drip


SLOW = {
    "head": dripping(b"HTTP/1.1 200 OK\r\nX-Slow: "),
    "body": dripping(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"),
}


@pytest.mark.parametrize("part", SLOW)
def test_a_server_that_never_ends_is_given_up_at_the_timeout(part: str):
    with pytest.raises(ToolError, match="took too long"):
        one(SLOW[part], timeout=1)


@pytest.mark.parametrize("part", SLOW)
def test_an_interrupt_ends_it_whatever_it_waits_for(part: str):
    cancel, asked = Cancel(), threading.Event()

    def slow(connection: socket.socket) -> None:
        asked.set()
        SLOW[part](connection)

    errors: list[str] = []

    def run() -> None:
        with pytest.raises(ToolError) as caught:
            one(slow, where=context(HERE, cancel=cancel), timeout=100)
        errors.append(str(caught.value))

    thread = threading.Thread(target=run)
    thread.start()
    assert asked.wait(20)
    cancel.set(CancelReason.INTERRUPT)
    thread.join(20)
    assert errors == ["Interrupted."]


def test_an_interrupt_ends_a_connection_that_nobody_takes():
    cancel = Cancel()
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for sock in (first, second):  # more than the queue holds: the next one gets no answer
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        threading.Timer(0.3, lambda: cancel.set(CancelReason.KILL)).start()
        with pytest.raises(ToolError, match=r"Interrupted\."):
            call(WebFetch(Web((where,))), context(HERE, cancel=cancel), url=f"http://{where}/", timeout=100)


def test_a_long_page_is_left_when_interrupted():
    cancel = Cancel()
    page = answer("<p>x" * 100_000, "text/html")

    def page_then_interrupt(connection: socket.socket) -> None:
        connection.sendall(page[:-1])
        cancel.set(CancelReason.INTERRUPT)

    with pytest.raises(ToolError, match=r"Interrupted\."):
        one(page_then_interrupt, where=context(HERE, cancel=cancel))


# Redirects


@pytest.mark.parametrize("status", ["301 x", "302 x", "303 x", "307 x", "308 x"])
def test_redirects_within_the_host_are_followed(status: str):
    with serving({"/": moved("/b?x=1#y", status), "/b?x=1": answer("here")}) as server:
        result = fetch(server)
    assert (result["url"], result["content"]) == (f"{server.url}/b?x=1", "here")


def test_a_redirect_to_another_host_is_told_and_not_followed():
    with serving({"/": answer("secret")}, "127.0.0.2") as other, serving({"/": moved(f"{other.url}/x")}) as server:
        result = fetch(server, allow=("127.0.0.2",))
    assert result["redirect"] == f"{other.url}/x"
    assert "call web_fetch with that URL" in result["note"]
    assert other.requests == []


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("http://127.0.0.2/", "no public address"),
        ("http://169.254.169.254/latest/meta-data/", "no public address"),
        ("http://[::ffff:10.0.0.1]/", "no public address"),
        ("http://localhost/", "no public address"),
        ("//0x7f.1/", "no public address"),
        ("http://user:pass@example.com/", "user name or password"),
        ("file:///etc/passwd", "not a URL that can be fetched"),
        ("gopher://127.0.0.1/", "not a URL that can be fetched"),
        ("http://[::1", "not a URL that can be fetched"),
    ],
)
def test_a_redirect_to_what_may_not_be_fetched_is_refused(location: str, words: str):
    with serving({"/": moved(location)}) as server, pytest.raises(ToolError, match=words) as caught:
        fetch(server)
    assert "pass@" not in str(caught.value)


def test_a_circle_of_redirects_is_left():
    with serving({"/": moved("/a"), "/a": moved("/")}) as server, pytest.raises(ToolError, match="more than 5 times"):
        fetch(server)
    assert len(server.requests) == 6


# Who may be reached


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "file:///etc/passwd",
        "example.com",
        "http://",
        "http:///x",
        "http://exa mple.com/",
        "http://example.com\\@127.0.0.1/".replace("@", ""),
        "http://example.com:99999/",
        "http://[fe80::1%25eth0]/",
        "http://%31%32%37.0.0.1/",
        "http://a..b/",
        "javascript:alert(1)",
        "http://example.com/\r\nX: y",
    ],
)
def test_what_is_no_plain_web_address_is_refused(url: str):
    with pytest.raises(ToolError, match="not a URL that can be fetched"):
        call(WebFetch(Web()), HERE, url=url)


@pytest.mark.parametrize(
    "url", ["http://u:canary-1@example.com/", "http://canary-1@example.com/", "http://a\\@canary-1.com/"]
)
def test_credentials_in_a_url_are_refused_and_not_repeated(url: str):
    with pytest.raises(ToolError, match="user name or password") as caught:
        call(WebFetch(Web()), HERE, url=url)
    assert "canary" not in str(caught.value) + caught.value.hint


_PRIVATE = """
    0.0.0.0 10.1.2.3 100.64.0.1 100.100.100.200 127.0.0.1 127.255.0.1 169.254.169.254 172.16.0.1 172.31.255.255
    192.0.0.192 192.168.1.1 198.18.0.1 192.0.2.1 203.0.113.9 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 168.63.129.16
    :: ::1 fe80::1 fe80::1%eth0 fec0::1 fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 100::1 2001::1
    ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 ::ffff:0:127.0.0.1
    64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 2002:7f00:1:: 2002:a00:1::1
"""
_PUBLIC = "8.8.8.8 1.1.1.1 93.184.216.34 2606:4700:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1"


@pytest.mark.parametrize("address", _PRIVATE.split())
def test_private_addresses(address: str):
    assert not is_public(address)


@pytest.mark.parametrize("address", _PUBLIC.split())
def test_public_addresses(address: str):
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST.", "127.1", "2130706433", "0x7f000001", "017700000001", "[::1]", "[::ffff:127.0.0.1]"],
)
def test_every_way_to_write_this_machine_is_refused(host: str):
    with serving({"/": answer("secret")}) as server:
        with pytest.raises(ToolError, match=r"no public address|cannot be found") as caught:
            call(WebFetch(Web()), HERE, url=f"http://{host}:{server.port}/")
        assert server.requests == []
    assert caught.value.hint


def test_what_is_allowed_is_that_host_and_port():
    with serving({"/": answer("x")}) as server:
        for allowed in ("127.0.0.1", f"127.0.0.1:{server.port}"):
            assert call(WebFetch(Web((allowed,))), HERE, url=f"{server.url}/")["content"] == "x"
        for allowed in ("127.0.0.1:1", "localhost", "127.0.0"):
            with pytest.raises(ToolError, match="no public address") as caught:
                call(WebFetch(Web((allowed,))), HERE, url=f"{server.url}/")
            assert f'allow_private = ["127.0.0.1:{server.port}"]' in caught.value.hint


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(monkeypatch: pytest.MonkeyPatch):
    """The system's resolver changes its answer at every question; each hop asks one."""
    answers = itertools.chain(["127.0.0.1", "127.0.0.1"], itertools.repeat("127.0.0.2"))
    asked: list[str] = []

    def changing(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    with serving({"/": moved("/b"), "/b": answer("x")}) as server:
        result = call(WebFetch(Web(("rebind.test",))), HERE, url=f"http://rebind.test:{server.port}/")
    assert result["content"] == "x"
    assert asked == ["rebind.test"] * 2
    assert f"Host: rebind.test:{server.port}" in server.requests[0]


def test_a_name_with_public_and_private_addresses_is_never_reached_at_the_private_one(monkeypatch: pytest.MonkeyPatch):
    tried: list[Any] = []

    def both(host: str, port: int, **_: Any) -> list[Any]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.1", "93.184.216.34")
        ]

    def refused(_sock: socket.socket, address: Any) -> int:
        tried.append(address)
        return errno.ECONNREFUSED

    monkeypatch.setattr(socket, "getaddrinfo", both)
    monkeypatch.setattr(socket.socket, "connect_ex", refused)  # no test talks to the internet
    with pytest.raises(ToolError, match="cannot be reached: Connection refused"):
        call(WebFetch(Web()), HERE, url="http://mixed.test/")
    assert tried == [("93.184.216.34", 80)]


def test_an_unknown_host_is_said_so():
    with pytest.raises(ToolError, match=r"nowhere\.invalid cannot be found"):
        call(WebFetch(Web()), HERE, url="http://nowhere.invalid/")


def test_a_closed_port_is_said_so():
    with serving({}) as server:
        pass
    with pytest.raises(ToolError, match="cannot be reached: Connection refused"):
        fetch(server)


# What is sent


def test_nothing_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login canary password canary\n")
    for name, value in {
        "HOME": str(tmp_path),
        "http_proxy": "http://canary:1",
        "HTTP_PROXY": "http://canary:1",
        "ALL_PROXY": "http://canary:1",
        "OPENAI_API_KEY": "canary",
    }.items():
        monkeypatch.setenv(name, value)
    with serving({"/": answer("x", Set_Cookie="a=canary"), "/a%20b?c=%C3%A9": answer("y")}) as server:
        assert fetch(server)["content"] == "x"
        assert fetch(server, "/a%20b?c=é#part")["content"] == "y"
    head = server.requests[0].split("\r\n")
    assert head[0] == "GET / HTTP/1.1"
    assert {line.partition(":")[0] for line in head[1:] if line} == {
        "Host",
        "User-Agent",
        "Accept",
        "Accept-Encoding",
        "Connection",
    }
    assert "canary" not in "".join(server.requests)


def test_names_and_paths_in_other_scripts_are_encoded():
    target = Target.parse("HTTP://BÜCHER.Example.:80/ü?q=a b".replace(" ", "+"))
    assert target.url == "http://xn--bcher-kva.example/%C3%BC?q=a+b"


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that nobody trusts, with its key."""
    if not shutil.which("openssl"):
        pytest.skip("openssl, which makes the certificate, is not installed")
    file = tmp_path_factory.mktemp("tls") / "localhost.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        [*command.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", file, "-out", f"{file}.crt"],
        check=True,
        capture_output=True,
    )
    file.write_text(file.read_text() + Path(f"{file}.crt").read_text())
    return file


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_a_certificate_that_nobody_trusts_is_refused(tls: ssl.SSLContext):
    with serving({"/": answer("x")}, context=tls) as server, pytest.raises(ToolError, match="certificate of localhost"):
        call(WebFetch(Web(("localhost",))), HERE, url=f"https://localhost:{server.port}/")
    assert server.requests == []


def test_the_name_asked_for_is_the_one_that_the_certificate_must_have(
    tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    web_get._trusted.cache_clear()
    names: list[str | None] = []
    tls.sni_callback = lambda _socket, name, _context: names.append(name)
    with serving({"/": answer("x")}, context=tls) as server:
        assert call(WebFetch(Web(("localhost",))), HERE, url=f"https://localhost:{server.port}/")["content"] == "x"
        with pytest.raises(ToolError, match=r"certificate of 127\.0\.0\.1"):
            fetch(server)
    web_get._trusted.cache_clear()
    assert names[0] == "localhost"


def test_a_redirect_to_a_page_that_the_call_may_not_read_is_told_and_not_followed():
    with serving({"/": moved("/private/x"), "/private/x": answer("secret")}) as server:
        where = context(HERE, may_follow=lambda url: "/private/" not in url)
        result = fetch(server, where=where)
        assert result["redirect"] == f"{server.url}/private/x"
        assert "content" not in result
        assert fetch(server)["content"] == "secret"
