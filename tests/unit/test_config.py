from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from agentmesh.config import paths, sources, user_file
from agentmesh.config.rules import rule_text
from agentmesh.config.schema import TypeSettings
from agentmesh.config.settings import Settings, load, resolve_model
from agentmesh.domain.errors import ConfigError, NoModel
from agentmesh.domain.states import PermissionMode


class Machine:
    """A user's configuration, a project and an environment, all empty at first."""

    def __init__(self, folder: Path) -> None:
        self.user_file = folder / "config" / "config.toml"
        self.workdir = folder / "project"
        self.project_file = self.workdir / ".agentmesh" / "config.toml"
        self.environ = {"AGENTMESH_CONFIG_DIR": str(self.user_file.parent)}
        self.user_file.parent.mkdir()
        self.project_file.parent.mkdir(parents=True)

    def user(self, text: str) -> None:
        self.user_file.write_text(text)

    def project(self, text: str) -> None:
        self.project_file.write_text(text)

    def load(self, **flags: Any) -> Settings:
        return load(flags, self.environ, self.workdir)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_defaults_are_the_contract(machine):
    settings = machine.load()

    limits = settings.limits
    assert (limits.max_depth, limits.max_children, limits.max_agents, limits.max_unread) == (4, 16, 64, 1000)
    assert (limits.max_tokens, limits.max_cost_usd, limits.tool_output_bytes) == (20_000_000, 10.0, 65_536)
    assert settings.permission_mode is PermissionMode.ASK
    assert settings.concurrency == 16
    assert settings.database_url is settings.direct_database_url is settings.reader_url is settings.model is None
    assert settings.data_dir == paths.default_data(machine.environ)
    assert settings.providers["openai"].base_url == "https://api.openai.com/v1"
    assert settings.providers["openai"].api_key_env == "OPENAI_API_KEY"
    assert settings.warnings == ()


def test_a_database_named_by_a_later_source_is_reached_by_no_url_of_an_earlier_one(machine):
    machine.user("database_url = 'host=/a'\ndirect_database_url = 'host=/b'\nreader_url = 'host=/c'")
    found = machine.load()
    assert (found.database_url, found.direct_database_url, found.reader_url) == ("host=/a", "host=/b", "host=/c")
    found = machine.load(database_url="host=/d")
    assert (found.database_url, found.direct_database_url, found.reader_url) == ("host=/d", None, None)
    found = machine.load(database_url="host=/d", direct_database_url="host=/e")
    assert (found.database_url, found.direct_database_url, found.reader_url) == ("host=/d", "host=/e", None)
    found = machine.load(direct_database_url="host=/e")
    assert (found.database_url, found.direct_database_url, found.reader_url) == ("host=/a", "host=/e", "host=/c")
    found = machine.load(database_url="host=/a")
    assert (found.database_url, found.direct_database_url, found.reader_url) == ("host=/a", "host=/b", "host=/c")


def test_what_the_web_tool_and_commands_may_is_the_users_own_to_say(machine):
    machine.user('[web]\nallow_private = ["LocalHost:8000", "[::1]:80", "10.0.0.1"]\n[sandbox]\nbash = "auto"')
    machine.project('[web]\nallow_private = ["169.254.169.254"]\n[sandbox]\nbash = "off"')
    settings = machine.load()
    assert settings.web.allow_private == ("localhost:8000", "[::1]:80", "10.0.0.1")
    assert settings.sandbox.bash == "auto"
    assert [warning.partition(": ")[2].partition(" ")[0] for warning in settings.warnings] == [
        "web.allow_private",
        "sandbox.bash",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[web]\nallow_private = "localhost"', "web.allow_private should be a list of hosts"),
        ('[web]\nallow_private = ["http://localhost/"]', "web.allow_private should be a host"),
        ('[sandbox]\nbash = "yes"', "sandbox.bash should be 'off', 'auto' or 'required'"),
        ('[sandbox]\nbahs = "auto"', "sandbox.bahs is not a known key"),
    ],
)
def test_wrong_values_for_the_web_tool_and_commands_are_named(machine, text, complaint):
    machine.user(text)
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        machine.load()


def test_each_source_wins_over_the_one_before(machine):
    def seen(**flags):
        return machine.load(**flags).limits.max_agents

    assert seen() == 64
    machine.user("[limits]\nmax_agents = 50\nmax_depth = 3")
    assert seen() == 50
    machine.project("[limits]\nmax_agents = 40")
    assert seen() == 40
    machine.environ["AGENTMESH_MAX_AGENTS"] = "60"
    assert seen() == 60
    assert seen(max_agents=70) == 70
    assert seen(max_agents=None) == 60
    assert machine.load(max_agents=70).limits.max_depth == 3


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("database_url", "postgresql://h/db", "postgresql://h/db"),
        ("direct_database_url", "host=/run user=me", "host=/run user=me"),
        ("reader_url", "postgresql://r@h/db", "postgresql://r@h/db"),
        ("data_dir", "/data", Path("/data")),
        ("model", " openai/gpt-5 ", "openai/gpt-5"),
        ("effort", "low", "low"),
        ("permission_mode", "plan", PermissionMode.PLAN),
        ("concurrency", "1", 1),
        ("compact_at", "0.5", 0.5),
        ("max_depth", "0", 0),
        ("max_children", "1", 1),
        ("max_agents", "1", 1),
        ("max_unread", "5", 5),
        ("max_tokens", "9000000000", 9_000_000_000),
        ("max_cost_usd", "0.5", 0.5),
        ("max_task_steps", "7", 7),
        ("task_silence", "30", 30.0),
        ("tool_output_bytes", "2048", 2048),
        ("max_living", "300", 300),
        ("ask_agents", "0", 0),
        ("max_spawns", "200", 200),
        ("max_turns", "50", 50),
        ("max_turn_seconds", "600", 600),
        ("max_seconds", "7200", 7200),
        ("answer_tokens", "900", 900),
        ("answer_bytes", "4096", 4096),
        ("model_connect_timeout", "2.5", 2.5),
        ("model_first_token_timeout", "9", 9.0),
        ("model_idle_timeout", "7", 7.0),
        ("model_retries", "0", 0),
        ("model_longest_pause", "90", 90.0),
        ("model_prefix_gate", "4000", 4000),
        ("log_file", "/var/log/agentmesh.log", "/var/log/agentmesh.log"),
        ("log_level", "debug", "debug"),
        ("retention_sessions", "90d", "90d"),
    ],
)
def test_every_setting_has_a_variable_and_a_flag(machine, name, value, expected):
    def read(settings):
        value: Any = settings
        for part in sources.settable()[name]:
            value = getattr(value, part)
        return value

    assert read(machine.load(**{name: value})) == expected
    machine.environ[f"AGENTMESH_{name.upper()}"] = value
    assert read(machine.load()) == expected


def test_the_table_above_is_complete():
    rows = test_every_setting_has_a_variable_and_a_flag.pytestmark[0].args[1]
    assert {row[0] for row in rows} == set(sources.settable())


def test_an_empty_variable_is_not_set(machine):
    machine.environ |= {"AGENTMESH_MODEL": "", "AGENTMESH_MAX_DEPTH": " ", "OPENAI_BASE_URL": ""}
    settings = machine.load()
    assert settings.model is None
    assert settings.limits.max_depth == 4
    assert settings.providers["openai"].base_url == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("text", "key", "complaint"),
    [
        ("[limits]\nmax_depth = -1", "limits.max_depth", "greater than or equal to 0"),
        ("[limits]\nmax_depth = 2147483648", "limits.max_depth", "less than or equal to 2147483647"),
        ("[limits]\nmax_depth = true", "limits.max_depth", "should be a number"),
        ("[limits]\nmax_depth = 'many'", "limits.max_depth", "valid integer"),
        ("[limits]\nmax_cost_usd = nan", "limits.max_cost_usd", "finite"),
        ("[limits]\nmax_cost_usd = inf", "limits.max_cost_usd", "finite"),
        ("[limits]\nmax_cost_usd = 10000001", "limits.max_cost_usd", "less than or equal to 10000000"),
        ("[limits]\nmax_seconds = 2147483647", "limits.max_seconds", "less than or equal to 315360000"),
        ("limits = 3", "limits", "should be a table"),
        *(
            (f"[retention]\nsessions = {age}", "retention.sessions", complaint)
            for age, complaint in {
                "'90'": "should be an age with its unit",
                "'-1d'": "should be an age with its unit",
                "'0d'": "should be an age with its unit",
                "'36526d'": "should be an age with its unit",
                "90": "should be a valid string",
            }.items()
        ),
        ("concurrency = 0", "concurrency", "greater than or equal to 1"),
        ("permission_mode = 'yolo'", "permission_mode", "'ask', 'edits', 'all' or 'plan'"),
        ("model = ''", "model", "not empty"),
        ("model = 4", "model", "valid string"),
        ("effort = 'much'", "effort", "should be 'none', 'minimal'"),
        ('model = "a\\u0000"', "model", "should have no NUL"),
        ("data_dir = '~nobody-of-this-name/x'", "data_dir", "home directory"),
        ("data_dir = ''", "data_dir", "should be a path, not empty"),
        ("data_dir = ' '", "data_dir", "should be a path, not empty"),
        ('[log]\nfile = "a\\u0000b"', "log.file", "should have no NUL"),
        ("[log]\nfile = ''", "log.file", "should be a path, not empty"),
        ("[model_calls]\nidle_timeout = 0", "model_calls.idle_timeout", "greater than 0"),
        ("providers = []", "providers", "should be a table"),
        ("permissions = 'all'", "permissions", "should be a table"),
        ("permissions.deny = 'bash'", "permissions.deny", "should be a list of rules"),
        ("permissions.deny = [3]", "permissions.deny", "should be a valid string"),
        ("permissions.ask = ['write', 'bash rm']", "permissions.ask", "should be a rule: TOOL or TOOL(PATTERN)"),
        ("permissions.allow = ['read(../x)']", "permissions.allow", "has a pattern that cannot be used, '../x'"),
        ("model_aliases.sonnet = ''", "model_aliases.sonnet", "not empty"),
        ("agent_types.explore = true", "agent_types.explore", "should be a table"),
        ("agent_types.explore.hidden = 'yes'", "agent_types.explore.hidden", "should be true or false"),
        ("[providers]\nlocal = 'http://localhost'", "providers.local", "should be a table"),
        ("[providers.local]\napi_key_env = 'X'", "providers.local.base_url", "is missing"),
        ("[providers.local]\nbase_url = 'localhost:11434'", "providers.local.base_url", "should be a URL"),
        *(
            (f"[providers.a]\nbase_url = 'http://h'\n{line}", f"providers.a.{key}", complaint)
            for line, key, complaint in (
                ("stream = 1", "stream", "should be true or false"),
                ("tool_choice = 'required'", "tool_choice", 'should be "auto"'),
                ("temperature = 3", "temperature", "less than or equal to 2"),
                ("temperature = nan", "temperature", "finite"),
                ("concurrency = 0", "concurrency", "greater than or equal to 1"),
                ("extra_body = 3", "extra_body", "should be a table"),
                ("extra_body.messages = []", "extra_body", "messages, which agentmesh sets"),
                ("extra_body.temperature = 0", "extra_body", "temperature, which agentmesh sets"),
                ("extra_body.since = 2020-01-01", "extra_body", "only what JSON has"),
                ("extra_body.top_p = inf", "extra_body", "only what JSON has"),
                (f"extra_body.x = '{'x' * 70_000}'", "extra_body", "at most 65536 bytes"),
            )
        ),
        ("[providers.'a/b']\nbase_url = 'http://localhost'", "providers.a/b", "should be a name"),
        (
            "[providers.a]\nbase_url = 'http://localhost'\nheaders.X = \"a\\nb\"",
            "providers.a.headers.X",
            "printable ASCII",
        ),
    ],
)
def test_a_bad_value_is_refused_with_its_file_and_key(machine, text, key, complaint):
    machine.user(text)
    with pytest.raises(ConfigError) as raised:
        machine.load()
    assert raised.value.message.startswith(f"{machine.user_file}: {key} ")
    assert complaint in raised.value.message
    assert raised.value.exit_code == 2


def test_a_bad_variable_or_flag_is_named_as_the_person_wrote_it(machine):
    with pytest.raises(ConfigError, match=r"^--max-depth should be a valid integer"):
        machine.load(max_depth="deep")
    machine.environ["AGENTMESH_PERMISSION_MODE"] = "sudo"
    with pytest.raises(ConfigError, match=r"^AGENTMESH_PERMISSION_MODE should be 'ask'"):
        machine.load()
    del machine.environ["AGENTMESH_PERMISSION_MODE"]
    machine.environ["OPENAI_BASE_URL"] = "localhost"
    with pytest.raises(ConfigError, match=r"^OPENAI_BASE_URL should be a URL"):
        machine.load()
    del machine.environ["OPENAI_BASE_URL"]
    with pytest.raises(ConfigError, match=r"^--database-url should have no NUL and only whole characters"):
        machine.load(database_url="postgresql:///\udcff")


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("modle = 'x'", "modle", "Did you mean model?"),
        ("[limits]\nmax_dept = 1", "limits.max_dept", "Did you mean max_depth?"),
        ("[limit]\nmax_depth = 1", "limit", "Did you mean limits?"),
        (
            "[providers.a]\nbase_url = 'http://h'\napi_key = 's3cret'",
            "providers.a.api_key",
            "Did you mean api_key_env?",
        ),
        ("[permissions]\ndenied = []", "permissions.denied", "Did you mean deny?"),
        ("[agent_types.explore]\nhide = true", "agent_types.explore.hide", "Did you mean hidden?"),
        ("[model_calls]\nzzz = 1", "model_calls.zzz", "Known here: connect_timeout, first_token_timeout,"),
        ("max_agents = 8", "max_agents", "It belongs in the table [limits]."),
        ('[tui]\nbell = true\nmodel = "x"', "tui.model", "model belongs above the first [table] of the file."),
    ],
)
@pytest.mark.parametrize("where", ["user", "project"])
def test_an_unknown_key_is_refused_and_the_nearest_is_named(machine, where, text, key, hint):
    getattr(machine, where)(text)
    with pytest.raises(ConfigError) as raised:
        machine.load()
    assert raised.value.message == f"{getattr(machine, where + '_file')}: {key} is not a known key."
    assert hint in raised.value.hint
    assert "s3cret" not in raised.value.message + raised.value.hint


def test_a_file_may_begin_with_a_byte_order_mark(machine):
    machine.user_file.write_bytes(b"\xef\xbb\xbfmodel = 'x'")
    assert machine.load().model == "x"


@pytest.mark.parametrize("content", [b"limits = [", b"a = 1\na = 2", b"x=" + b"[" * 100_000, b"a." * 300 + b"a=1"])
def test_a_file_that_is_no_toml_is_refused(machine, content):
    machine.user_file.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        machine.load()
    assert raised.value.message.startswith(f"{machine.user_file} is not valid TOML: ")


@pytest.mark.parametrize("of", ["user_file", "project_file"])
@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (Path.mkdir, "is not a regular file"),
        (os.mkfifo, "is not a regular file"),
        (lambda file: file.symlink_to("/dev/zero"), "is not a regular file"),
        (lambda file: file.symlink_to(file.name), "cannot be read"),
        (lambda file: file.write_bytes(b"model = '\xff'"), "is not UTF-8 text"),
        (lambda file: file.write_bytes(b"#" * (2 << 20)), "is larger than .* KiB"),
    ],
    ids=["folder", "pipe", "device", "loop", "bytes", "huge"],
)
def test_a_file_that_cannot_be_read_is_refused(machine, of, make, complaint):
    file = getattr(machine, of)
    make(file)
    with pytest.raises(ConfigError, match=f"{re.escape(str(file))} {complaint}"):
        machine.load()


def test_a_pipe_in_place_of_the_users_file_is_not_waited_for_when_a_value_is_set(machine):
    os.mkfifo(machine.user_file)
    with pytest.raises(ConfigError, match="is not a regular file"):
        user_file.set_values(machine.environ, {("tui", "theme"): "dark"})


def test_foreign_text_in_a_complaint_is_printable(machine):
    machine.project('"\\u001b[31mred" = 1')
    with pytest.raises(ConfigError) as raised:
        machine.load()
    assert "\x1b" not in raised.value.message


def test_a_project_may_tighten(machine):
    machine.project('permission_mode = "plan"\n[limits]\nmax_agents = 2\nmax_cost_usd = 0.1\nmax_depth = 4')
    settings = machine.load()
    assert settings.permission_mode is PermissionMode.PLAN
    assert (settings.limits.max_agents, settings.limits.max_cost_usd, settings.limits.max_depth) == (2, 0.1, 4)
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("permission_mode = 'all'", "permission_mode", "only make it stricter"),
        ("permission_mode = 'edits'", "permission_mode", "only make it stricter"),
        ("limits.max_agents = 65", "limits.max_agents", "only lower it"),
        ("limits.max_living = 641", "limits.max_living", "only lower it"),
        ("limits.ask_agents = 0", "limits.ask_agents", "only lower it"),
        ("limits.ask_agents = 21", "limits.ask_agents", "only lower it"),
        ("limits.max_cost_usd = 10.01", "limits.max_cost_usd", "only lower it"),
        ("database_url = 'postgresql://evil'", "database_url", "only your own"),
        ("direct_database_url = 'postgresql://evil'", "direct_database_url", "only your own"),
        ("reader_url = 'postgresql://evil'", "reader_url", "only your own"),
        ("data_dir = '/evil'", "data_dir", "only your own"),
        ("model = 'evil'", "model", "only your own"),
        ("effort = 'xhigh'", "effort", "only your own"),
        ("agent_types.explore.effort = 'xhigh'", "agent_types.explore.effort", "only your own"),
        ("concurrency = 1", "concurrency", "only your own"),
        ("model_calls.retries = 1", "model_calls.retries", "only your own"),
        ("providers.openai.base_url = 'http://evil'", "providers.openai.base_url", "only your own"),
        ("permissions.allow = ['bash']", "permissions.allow", "only deny and ask"),
        ("model_aliases.sonnet = 'evil'", "model_aliases.sonnet", "only your own"),
        ("agent_types.explore.model = 'evil'", "agent_types.explore.model", "only your own"),
        ("agent_types.explore.hidden = false", "agent_types.explore.hidden", "only hide types"),
        ("providers.openai.headers.X = 'evil'", "providers.openai.headers.X", "only your own"),
    ],
)
def test_what_a_project_would_loosen_is_ignored_and_told(machine, text, key, reason):
    before = machine.load()
    machine.project(text)
    settings = machine.load()
    (warning,) = settings.warnings
    assert warning.startswith(f"{machine.project_file}: {key} is ignored: ")
    assert reason in warning
    assert "evil" not in repr(settings.providers)
    for name in Settings._fields:
        if name not in ("warnings", "elsewhere"):
            assert getattr(settings, name) == getattr(before, name)


def test_a_project_may_ask_sooner_and_let_fewer_live(machine):
    machine.user("limits.ask_agents = 0")
    machine.project("[limits]\nask_agents = 5\nmax_living = 640")
    settings = machine.load()
    assert (settings.limits.ask_agents, settings.limits.max_living) == (5, 640)
    assert settings.warnings == ()


def test_a_project_is_measured_against_the_user_not_the_default(machine):
    machine.user("permission_mode = 'plan'\nlimits.max_agents = 100")
    machine.project("permission_mode = 'ask'\nlimits.max_agents = 80")
    settings = machine.load()
    assert settings.permission_mode is PermissionMode.PLAN
    assert settings.limits.max_agents == 80
    assert len(settings.warnings) == 1


def test_only_the_users_file_is_asked_whether_openai_is_configured(machine):
    machine.environ["OPENAI_BASE_URL"] = "http://localhost:8000/v1"
    machine.project("providers.openai.base_url = 'http://evil'")
    assert resolve_model(machine.load(), "openai/gpt-oss-20b") == ("openai", "openai/gpt-oss-20b")


def test_a_misspelled_variable_is_told(machine):
    machine.environ |= {
        "AGENTMESH_DATABSE_URL": "x",
        "AGENTMESH_TEST_DATABASE_URL": "not ours",
        "AGENTMESH_PG15_BIN": "not ours",
        "DATABASE_URL": "not ours",
    }
    assert machine.load().warnings == (
        "AGENTMESH_DATABSE_URL is ignored: there is no such setting. Did you mean AGENTMESH_DATABASE_URL?",
    )


def test_the_repr_shows_no_secret(machine):
    machine.user(
        "database_url = 'postgresql://me:s3cret@h/db'\ndirect_database_url = 'postgresql://me:s3cret@h/db'\n"
        "reader_url = 'postgresql://me:s3cret@h/db'\n"
        "[providers.p]\nbase_url = 'https://me:s3cret@h/v1'\nheaders = {Authorization = 's3cret'}"
    )
    machine.environ["OPENAI_API_KEY"] = "s3cret"
    settings = machine.load()
    assert "s3cret" not in repr(settings)
    assert settings.providers["p"].headers == {"Authorization": "s3cret"}


def test_settings_are_frozen(machine):
    settings = machine.load()
    with pytest.raises(AttributeError):
        settings.model = "x"
    with pytest.raises(AttributeError):
        settings.limits.max_depth = 9


def test_the_users_own_openai_keeps_its_key_and_the_environment_moves_it(machine):
    machine.user("[providers.openai]\nbase_url = 'http://proxy/v1/'\ncontext_window = 1000")
    assert machine.load().providers["openai"].base_url == "http://proxy/v1"
    machine.environ["OPENAI_BASE_URL"] = "http://elsewhere/v1"
    provider = machine.load().providers["openai"]
    assert (provider.base_url, provider.api_key_env, provider.context_window) == (
        "http://elsewhere/v1",
        "OPENAI_API_KEY",
        1000,
    )


LOCAL = "[providers.local]\nbase_url = 'http://localhost:11434/v1'\n"
OWN_OPENAI = "[providers.openai]\nbase_url = 'http://proxy/v1'\n"


@pytest.mark.parametrize(
    ("user", "base_url", "name", "provider", "model"),
    [
        ("", "", "gpt-5", "openai", "gpt-5"),
        ("", "", "openai/gpt-5", "openai", "gpt-5"),
        ("", "http://router/v1", "anthropic/claude", "openai", "anthropic/claude"),
        ("", "https://api.openai.com/v1/", "openai/gpt-5", "openai", "gpt-5"),
        ("", "http://localhost:8000/v1", "openai/gpt-oss-20b", "openai", "openai/gpt-oss-20b"),
        (OWN_OPENAI, "", "openai/gpt-5", "openai", "gpt-5"),
        (OWN_OPENAI, "http://other/v1", "openai/gpt-5", "openai", "gpt-5"),
        (LOCAL, "", "local/qwen3:8b", "local", "qwen3:8b"),
        (LOCAL, "", "local/org/model", "local", "org/model"),
        (LOCAL, "", "local", "openai", "local"),
        (LOCAL, "http://router/v1", "lokal/x", "openai", "lokal/x"),
        (LOCAL, "", " local/x ", "local", "x"),
    ],
)
def test_the_first_segment_counts_only_if_it_names_a_provider(machine, user, base_url, name, provider, model):
    machine.user(user)
    machine.environ["OPENAI_BASE_URL"] = base_url
    assert resolve_model(machine.load(), name) == (provider, model)


@pytest.mark.parametrize(
    ("base_url", "name", "hint"),
    [
        ("", "lokal/x", "Known are local, openai."),
        ("", "Local/x", "Did you mean local/x?"),
        (
            "http://router/v1",
            "Local/x",
            "Did you mean local/x? For a model of this name, rename the provider local.",
        ),
    ],
)
def test_a_mistyped_provider_is_not_taken_for_a_model_of_openai(machine, base_url, name, hint):
    machine.user(LOCAL)
    machine.environ["OPENAI_BASE_URL"] = base_url
    with pytest.raises(NoModel, match="no provider") as refused:
        resolve_model(machine.load(), name)
    assert refused.value.hint == hint


@pytest.mark.parametrize("name", ["", "  ", "openai/"])
def test_a_name_without_a_model_is_refused(machine, name):
    with pytest.raises(NoModel, match="names no model"):
        resolve_model(machine.load(), name)


def test_rules_of_user_and_project_are_added_up(machine):
    machine.user("[permissions]\nallow = ['bash(git log *)']\ndeny = ['read(*.pem)', 'write']\nask = ['web_fetch']")
    machine.project("[permissions]\ndeny = ['bash(curl *)']\nask = ['read']\nallow = []")
    settings = machine.load()
    mine, theirs = str(machine.user_file), str(machine.project_file)
    assert [(f"{each.rule.effect} {rule_text(each.rule)}", each.source) for each in settings.rules] == [
        ("deny read(*.pem)", mine),
        ("deny write", mine),
        ("ask web_fetch", mine),
        ("allow bash(git log *)", mine),
        ("deny bash(curl *)", theirs),
        ("ask read", theirs),
    ]
    assert [each.from_project for each in settings.rules] == [False] * 4 + [True] * 2
    assert settings.warnings == ()


def test_a_project_that_would_allow_still_denies(machine):
    machine.user("permissions.deny = ['bash(rm *)']")
    machine.project("[permissions]\nallow = ['bash']\ndeny = ['write']")
    settings = machine.load()
    assert [rule_text(each.rule) for each in settings.rules] == ["bash(rm *)", "write"]
    (warning,) = settings.warnings
    assert warning == f"{machine.project_file}: permissions.allow is ignored: a project's file may only deny and ask."


def test_what_is_said_of_types_and_models(machine):
    machine.user(
        "[model_aliases]\nsonnet = 'local/qwen3'\nopus = 'inherit'\n[agent_types.explore]\nmodel = 'sonnet'\n"
        "[agent_types.mine]\nhidden = true"
    )
    machine.project("agent_types.explore.hidden = true")
    settings = machine.load()
    assert settings.model_aliases == {"sonnet": "local/qwen3", "opus": "inherit"}
    assert settings.agent_types == {
        "explore": TypeSettings(hidden=True, model="sonnet"),
        "mine": TypeSettings(hidden=True),
    }
    assert settings.warnings == ()
