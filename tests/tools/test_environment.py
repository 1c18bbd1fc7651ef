"""Which variables a command gets: none with a password in a URL."""

from __future__ import annotations

import pytest

from agentmesh.tools.environment import command_environment


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"])
@pytest.mark.parametrize(
    "value",
    [
        "user:canary@proxy:3128", "user@proxy:3128", "http://user:canary@proxy:3128", "http://user:can/ary@proxy:3128",
        "http://user:can@ary@proxy", "socks5h://user:can?ary#@proxy:1", "//user:canary@proxy", "@",
    ],
)  # fmt: skip
def test_a_proxy_with_a_user_is_left_out(name: str, value: str):
    assert name not in command_environment({name: value}, "a")


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "LANG", "XDG_CACHE_HOME"])
@pytest.mark.parametrize(
    "value",
    [
        "https://user:canary@host/a",
        "https://user:can/ary@host/a",
        "https://user:12/canary@host",
        "https://:can@ary@host",
        "x=http://u:c/d/e@host:1",
    ],
)
def test_a_url_with_a_password_is_left_out_whatever_the_variable(name: str, value: str):
    assert name not in command_environment({name: value}, "a")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("http_proxy", "proxy:3128"),
        ("HTTPS_PROXY", "http://proxy.example.org:3128/"),
        ("no_proxy", "localhost,.example.org"),
        ("XDG_CACHE_HOME", "/home/me@example.org/cache"),
        ("GOPATH", "file:///home/me@example.org/go"),
        ("LANG", "ca_ES.UTF-8@valencia"),
        ("GIT_AUTHOR_EMAIL", "me@example.org"),
        ("REQUESTS_CA_BUNDLE", "https://host/team@example.org/bundle"),
    ],
)
def test_other_values_are_kept(name: str, value: str):
    assert command_environment({name: value}, "a")[name] == value
