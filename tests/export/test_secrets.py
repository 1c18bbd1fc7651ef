"""Secrets do not leave: what is configured, and what looks like one."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import uuid
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
        ("http://me:p@ssw0rd@host/v1?a=b@c", "http://***@host/v1?a=b@c"),
        ("http://me:pass@host, mail a@b", "http://***@host, mail a@b"),
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


FOR_EXPORTS = Redactor(library=True)

MISSED = [
    ("GITHUB_TOKEN=9f86d081884c7d659a2feaa0c55ad015", "GITHUB_TOKEN=***"),
    ("export SLACK_TOKEN=zbcdefghijklmnop", "export SLACK_TOKEN=***"),
    ('{"token": "s3cr3tvalue-abcdef-42"}', '{"token": "***"}'),
    ("DB_PASS=hunterhunter", "DB_PASS=***"),
    ("DB_PASSWORD: hunter2-hunter2", "DB_PASSWORD: ***"),
    ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic ***"),
    ("authorization: token 9f86d081884c7d", "authorization: token ***"),
    ("Cookie: session=abcdef1234567890; theme=dark", "Cookie: ***"),
    ("Set-Cookie: sid=s%3Aabcdef123456; Path=/; HttpOnly", "Set-Cookie: ***"),
    ("curl -s -u admin:s3cretpw https://example.org", "curl -s -u *** https://example.org"),
    ("curl --user 'admin:s3cretpw' https://example.org", "curl --user '***' https://example.org"),
    ("mysql --password hunter22xyz -e x", "mysql --password *** -e x"),
    ("deploy --api-key=abc123def --dry-run", "deploy --api-key=*** --dry-run"),
    ("https://me:hunter22@example.org/x", "https://***@example.org/x"),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQ\n-----END PGP PRIVATE KEY BLOCK-----", "***"),
    ("AIzaSyA1234567890abcdefghijklmnopqrstuvw", "***"),
    ("sk_live_4eC39HqLyjWDarjtT1zdp7dc", "***"),
    ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "***"),
    ("pypi-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4LTEyMzQtMTIzNC0xMjM0LTEyMzQ1Njc4OTAxMgACKlszLCJhYmNkZWZnaCJd", "***"),
    ("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "***"),
    ("SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG", "***"),
    ("dop_v1_" + "0123456789abcdef" * 4, "***"),
    (
        "AccountName=x;AccountKey=" + "lJzRc1YdHaAA2KCNJJ1tkYwF" * 3 + "==;S=y",
        "AccountName=x;AccountKey=***;S=y",
    ),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "aws_secret_access_key = ***"),
]


@pytest.mark.parametrize(("text", "left"), MISSED, ids=[text[:24] for text, _ in MISSED])
def test_shapes_that_a_review_found_missing_go(text, left):
    assert FOR_EXPORTS(text) == left


@pytest.mark.parametrize(("text", "left"), MISSED, ids=[text[:24] for text, _ in MISSED])
@pytest.mark.parametrize("depth", [1, 2])
def test_they_go_between_other_lines_and_inside_json_within_json_too(text, left, depth):
    whole, clean = f'first line\n{text}\nlast "line"', f'first line\n{left}\nlast "line"'
    assert FOR_EXPORTS(whole) == clean
    for _ in range(depth):
        whole, clean = json.dumps({"output": whole}), json.dumps({"output": clean})
    secret = FOR_EXPORTS(whole)
    for part in set(text.replace("\n", " ").split(" ")) - set(left.split(" ")):
        value = part.split("=", 1)[-1].strip("\"'{};")
        assert len(value) < 8 or value not in secret, secret


@pytest.mark.parametrize("end", ["py", "md", "sql", "toml", "txt"])
def test_this_projects_own_files_stay_readable(end):
    top = Path(__file__).parents[2]
    files = [*sorted(top.glob(f"[a-z]*/**/*.{end}")), *sorted(top.glob(f"*.{end}"))]
    lines = [
        line
        for file in files
        if "secret" not in file.name and "0026" not in file.name and not file.is_relative_to(top / "tests")
        for line in file.read_text().splitlines()
    ]
    changed = [line for line in lines if FOR_EXPORTS(line) != line and not any(each in line for each in EXAMPLES)]
    assert changed == []


EXAMPLES = ("postgresql://user:password@host", "AGENTMESH_MCP_TOKEN=a-long-random-text")
"""What our documentation shows for a secret."""


@pytest.mark.parametrize(
    "entry",
    [
        {"GITHUB_TOKEN": "9f86d081884c7d659a2f"},
        {"DB_PASS": "hunterhunter"},
        {"headers": {"Cookie": "session=abcdef1234567890"}},
        {"headers": [{"Authorization": "Basic dXNlcjpwYXNzd29yZA=="}]},
        {"password": "correct-horse"},
    ],
)
def test_the_name_of_a_field_says_that_its_value_is_a_secret(entry):
    found = re.findall(
        r"[\w=-]{10,}", json.dumps(Cleaner(Redactor()).row({"result": entry})).replace("GITHUB_TOKEN", "")
    )
    assert [each for each in found if each.lower() != "authorization"] == []


def test_the_fields_of_our_own_rows_stay():
    row = {
        "tokens": 123456789,
        "key": "agents.pick",
        "token": "stop",
        "call_id": "abcdefgh1",
        "author": "root-agent-12",
    }
    assert Cleaner(Redactor()).row(row) == row


def _ordinary() -> str:
    picture = base64.b64encode(bytes(range(256)) * 40).decode()
    return "\n".join(
        [
            "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            f"{uuid.UUID(int=2**127 - 3)} and sha256:{'0123456789abcdef' * 4}",
            f"![x](data:image/png;base64,{picture})",
            '{"type": "token", "max_tokens": 20000000, "prompt_tokens": 123456789, "token_count": 12345678}',
            "for token in tokens[0:12345678]: total_tokens += token.size1",
            "Cookie: how they are made, and what --password means; --token is an option, see --token TOKEN",
            "Authorization: see the page on walls; the passwords: never in the log",
            "password = getpass() or settings.password2; secret = load_secret(path1)",
            "curl -s https://example.org/v1/users:batchGet -o users.json",
            "the basic idea and the bearer of news, cookie=yes",
            'primary_key="id", api_key_env = "OPENAI_API_KEY_2"',
        ]
    )


def test_ordinary_text_stays_as_it_is():
    assert FOR_EXPORTS(_ordinary()) == _ordinary()


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


def test_a_key_that_the_program_keeps_is_known(tmp_path: Path):
    environ, url = {"AGENTMESH_CONFIG_DIR": str(tmp_path)}, "https://h/v1"
    keys = tmp_path / "keys.json"
    keys.touch(0o600)
    keys.write_text(json.dumps({f"one {url}": KEY}))
    providers = {"one": Provider(url, stored_key="file")}
    assert configured(Settings(tmp_path, providers, frozenset(providers)), environ) == {KEY}


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


def test_the_library_is_loaded_by_an_export_and_by_nothing_before():
    script = (
        "import sys\nfrom agentmesh.export.secrets import Redactor\nRedactor()('GITHUB_TOKEN=abcdefgh1')\n"
        "print('kingfisher_sdk' in sys.modules)\nRedactor(library=True)('a text to look at')\n"
        "print('kingfisher_sdk' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
