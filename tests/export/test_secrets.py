"""Secrets do not leave: what is configured, and what looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.config.schema import Provider
from agentmesh.config.settings import Settings
from agentmesh.export.cleaning import Cleaner, readable
from agentmesh.export.secrets import Redactor, configured
from tests.fixtures.mesh import Mesh

KEY = "not-shaped-like-a-key"
PRIVATE = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("use sk-ant-api03-abcdef1234567890 now", "use *** now"),
        ("sk-abcdefghijklmnopqrstuvwxyz", "***"),
        ("ghp_abcdefghijklmnop1234", "***"),
        ("github_pat_11ABCDEFG0123456789", "***"),
        ("AKIAIOSFODNN7EXAMPLE", "***"),
        ("xoxb-1234567890-abc", "***"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2Q", "***"),
        (f"before\n{PRIVATE}\nafter", "before\n***\nafter"),
        ("-----BEGIN PRIVATE KEY-----\ncut he", "***"),
        ("postgresql://me:hunter22@db:5432/x", "postgresql://***@db:5432/x"),
        ("Authorization: Bearer abcdefghijklmn", "Authorization: Bearer ***"),
        ("OPENAI_API_KEY=abcdefgh12345", "OPENAI_API_KEY=***"),
        ('{"password": "correct horse battery"}', '{"password": "correct horse battery"}'),
        ('{"password": "correct-horse"}', '{"password": "***"}'),
        ('{\\"password\\": \\"correct-horse\\"}', '{\\"password\\": \\"***\\"}'),
        ("api_key: 'abcdefgh'", "api_key: '***'"),
    ],
)
def test_what_looks_like_a_secret_goes(text, left):
    redactor = Redactor()
    assert redactor(text) == left
    assert redactor.found == (text != left)


@pytest.mark.parametrize(
    "text",
    [
        'api_key = os.environ["OPENAI_API_KEY"]',
        "password = read_password(path)",
        "self.api_key = provider.api_key",
        "npm-check-updates and hf_hub_download",
        "max_tokens: 20000000",
        "https://example.org:8080/path",
        "the bearer of news",
        "task sk-ip",
    ],
)
def test_what_only_speaks_of_secrets_stays(text):
    assert Redactor()(text) == text


def test_configured_values_go_wherever_they_stand():
    redactor = Redactor({KEY, "short"})
    assert redactor(f"a{KEY}b and short") == "a***b and short"
    assert redactor.found == 1


def test_the_keys_of_providers_and_the_passwords_of_urls_are_known(tmp_path: Path):
    providers = {
        "one": Provider(base_url="https://u:basepass@h/v1", api_key_env="ONE_KEY"),
        "two": Provider(
            base_url="https://h/v1?token=inquery", headers={"X-Api-Key": "inheader", "X-Title": "agentmesh"}
        ),
    }
    settings = Settings(
        tmp_path, providers, frozenset(providers), database_url="postgresql://me:p%40ssword@db/x", reader_url=None
    )
    found = configured(settings, {"ONE_KEY": KEY, "OTHER": "else"})
    assert found == {KEY, "basepass", "inquery", "inheader", "p%40ssword", "p@ssword"}


def test_a_secret_goes_before_the_text_is_cut_in_the_middle_of_it():
    clean = Cleaner(Redactor({KEY}))
    row = clean.row({"text": "x" * 15_990 + KEY * 3})
    assert KEY[:8] not in row["text"]
    assert clean.cut == 0
    assert clean.redacted == 3


def test_the_texts_of_a_row_share_its_room_and_short_ones_stay():
    clean = Cleaner(Redactor())
    row = clean.row({"a": "x" * 16_000, "b": {"c": ["y" * 300, "state"]}, "n": 3})
    assert row["a"] == "x" * 16_000
    assert row["b"] == {"c": ["y" * 200 + "… [100 characters left out]", "state"]}
    assert row["n"] == 3
    assert clean.cut == 1


def test_names_of_fields_are_cleaned_too():
    assert Cleaner(Redactor({KEY})).row({"content": {KEY: 1}}) == {"content": {"***": 1}}


@pytest.mark.only_rows
@pytest.mark.parametrize("name", ["jsonl", "md", "html"])
def test_no_secret_is_in_any_export(mesh: Mesh, exported, name):
    mesh.send(None, mesh.root, f"my key is {KEY}, the other sk-proj-abcdef1234567890")
    (call,) = mesh.call(mesh.root, "bash", text=f"I print {KEY}")
    mesh.finish(call, {"output": f"KEY={KEY}\n{PRIVATE}"})
    written = exported(mesh.session, name, secrets={KEY})
    assert KEY not in written
    assert "abcdef1234567890" not in written
    assert "MIIEow" not in written
    assert "***" in written.replace("\\*", "*")


def test_colours_and_cursors_leave_nothing_behind():
    assert (
        readable("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 a\r\nb\rc \u202e\x07")
        == "red link a\nb\nc "
    )
