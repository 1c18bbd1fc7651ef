"""Patterns of URLs in rules: an allow rule covers what it plainly says, a deny rule whatever may mean the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.domain.urls import canonical, is_openai, parse_url, url_allowed, url_restricted

_URLISH = "ae.com/:@#?\\*[]%2f \t\u3002\uff0fx1"
SUBDOMAINS = "https://*.example.com/*"


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        (SUBDOMAINS, "https://a.example.com/"),
        (SUBDOMAINS, "https://a.example.com"),
        (SUBDOMAINS, "https://a.b.example.com/x/y?z=1"),
        (SUBDOMAINS, "HTTPS://A.Example.COM/"),
        (SUBDOMAINS, "https://a.example.com./"),
        (SUBDOMAINS, "https://a.example.com:443/"),
        ("https://example.com:443/*", "https://example.com/"),
        ("https://example.com", "https://example.com/"),
        ("https://docs.example.com*", "https://docs.example.com/a/b"),
        ("https://example.com/docs/*", "https://example.com/docs/a?b=../c"),
        ("https://example.com/search?q=*", "https://example.com/search?q=x"),
        ("https://bücher.example/*", "https://xn--bcher-kva.example/x"),
        ("https://xn--bcher-kva.example/*", "https://BÜCHER.example/x"),
        ("http://[::1]:8080/*", "http://[0:0:0::1]:8080/x"),
        ("http://127.0.0.1/*", "http://127.0.0.1/x"),
        ("http://localhost:*/*", "http://localhost:8080/x"),
        ("*://example.com/*", "http://example.com/x"),
        ("example.com/*", "https://example.com/x"),
        ("https://*", "https://anything.example/x"),
        ("https://docs-*.example.com/*", "https://docs-1.example.com/"),
    ],
)
def test_an_allow_rule_covers_the_host_that_it_names(pattern: str, url: str):
    assert url_allowed(pattern, url)
    assert url_restricted(pattern, url)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        (SUBDOMAINS, "https://evil.com/x.example.com/"),
        (SUBDOMAINS, "https://evil.com/.example.com/"),
        (SUBDOMAINS, "https://evil.com?.example.com/"),
        (SUBDOMAINS, "https://evil.com#.example.com/"),
        (SUBDOMAINS, "https://evil.com\\@a.example.com/"),
        (SUBDOMAINS, "https://evil.com\\.example.com/"),
        (SUBDOMAINS, "https://evil.com:443@a.example.com/"),
        (SUBDOMAINS, "https://a.example.com@evil.com/"),
        (SUBDOMAINS, "https://a.example.com:x@evil.com/.example.com/"),
        (SUBDOMAINS, "https://me@a.example.com/"),
        (SUBDOMAINS, "https://a.example.com.evil.com/"),
        (SUBDOMAINS, "https://evil.com%2f.example.com/"),
        (SUBDOMAINS, "https://evil.com%23.example.com/"),
        (SUBDOMAINS, "https://evil.com\t.example.com/"),
        (SUBDOMAINS, "https://evil.com\uff0f.example.com/"),
        (SUBDOMAINS, "https://.example.com/"),
        (SUBDOMAINS, "https://example.com/"),
        (SUBDOMAINS, "https://notexample.com/"),
        (SUBDOMAINS, "http://a.example.com/"),
        (SUBDOMAINS, "https://a.example.com:8443/"),
        (SUBDOMAINS, "https://a.example.com:0/"),
        (SUBDOMAINS, "https://a.ex\u0430mple.com/"),
        (SUBDOMAINS, "https:///a.example.com/"),
        (SUBDOMAINS, "https:a.example.com/"),
        (SUBDOMAINS, "//a.example.com/"),
        (SUBDOMAINS, "ftp://a.example.com/"),
        (SUBDOMAINS, "https://a.example.com:port/"),
        (SUBDOMAINS, "https://[::1].example.com/"),
        (SUBDOMAINS, ""),
        ("https://docs.example.com*", "https://docs.example.com.evil.com/"),
        ("https://docs.example.com*", "https://docs.example.com@evil.com/"),
        ("https://docs.example.com*", "https://docs.example.com:8080/"),
        ("https://docs.*", "https://docs.a.evil.com/"),
        ("https://example.com", "https://example.com/x"),
        ("https://example.com/", "https://example.com/x"),
        ("https://example.com/docs/*", "https://example.com/docs/../admin"),
        ("https://example.com/docs/*", "https://example.com/docs/%2e%2E/admin"),
        ("https://example.com/docs/*", "https://example.com/docs/%252e%252e/admin"),
        ("https://example.com/docs/*", "https://example.com/docs/..%2fadmin"),
        ("https://example.com/docs/*", "https://example.com/docs/..%5cadmin"),
        ("https://example.com/docs/*", "https://example.com/docs/..;/admin"),
        ("https://example.com/search?q=*", "https://example.com/search/q=x"),
        ("https://me@example.com/*", "https://me@example.com/"),
        ("http://[::1]/*", "http://[::2]/"),
        ("https://[::1/*", "https://[::1/"),
        ("file:///*", "file:///etc/passwd"),
        ("", "https://example.com/"),
    ],
)
def test_an_allow_rule_covers_nothing_else(pattern: str, url: str):
    assert not url_allowed(pattern, url)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("https://evil.com/*", "http://evil.com/"),
        ("https://evil.com/*", "https://evil.com:8443/x"),
        ("https://evil.com/*", "https://me:secret@evil.com/x"),
        ("https://evil.com/*", "https://EVIL.com./x"),
        ("https://evil.com/*", "https://\uff45vil.com/x"),
        ("https://evil.com/*", "https://evil\u3002com/x"),
        ("https://evil.com", "https://evil.com/x"),
        ("evil.com", "https://evil.com/x"),
        ("https://b.com/admin/*", "https://b.com/%61dmin/x"),
        ("https://b.com/admin/*", "https://b.com/%2561dmin/x"),
        ("https://b.com/admin/*", "https://b.com//admin/x"),
        ("https://b.com/admin/*", "https://b.com/x/../admin/y"),
        ("https://b.com/admin/*", "https://b.com/./admin"),
        ("https://b.com/admin/*", "https://b.com/admin?x"),
        ("https://b.com/admin", "https://b.com/admin/x"),
        ("http://127.0.0.1/*", "http://127.1/"),
        ("http://127.0.0.1/*", "http://0x7f000001/"),
        ("http://127.0.0.1/*", "http://2130706433/"),
        ("http://[::1]/*", "http://[0:0::0:1]/"),
    ],
)
def test_a_deny_rule_covers_every_spelling(pattern: str, url: str):
    assert url_restricted(pattern, url)


def test_a_deny_rule_of_one_path_leaves_the_others():
    assert not url_restricted("https://b.com/admin/*", "https://b.com/administration")
    assert not url_restricted("https://b.com/admin/*", "https://b.com/x?y=/admin/")
    assert not url_restricted("https://evil.com/*", "https://notevil.com/")


@given(st.text(alphabet=_URLISH, max_size=30), st.sampled_from(["https://", "https:", ""]))
def test_no_url_that_a_rule_allows_is_fetched_from_another_host(rest: str, scheme: str):
    url = scheme + rest
    if url_allowed("https://*.a.com/*", url):
        from agentmesh.tools.web_address import Target

        target = Target.parse(url)
        assert target.host.endswith(".a.com")
        assert (target.scheme, target.port) == ("https", 443)
    assert url_restricted("*", url) == (parse_url(url) is not None)


def test_only_the_host_says_that_a_model_server_is_openais():
    assert is_openai("https://API.openai.com:443/v1?x=1")
    for url in ("https://proxy.example/api.openai.com/v1", "https://api.openai.com.example/v1", "http://[x", ""):
        assert not is_openai(url)


def test_the_plain_spelling_is_its_own():
    for url in ("https://a.example:8443/x?y=%20", "no url", "http://[::1]/", "https://EXAMPLE.com"):
        assert canonical(canonical(url)) == canonical(url)
