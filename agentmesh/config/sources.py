"""The sources of settings, weakest first: defaults, the user's file, the project's file, the environment, flags.

Each source is checked on top of the ones before it, so a complaint names the file, variable or flag that is wrong. A
project's file comes with a checkout that anybody may have written: it may only tighten.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentmesh.config import documents, forms, paths
from agentmesh.config.mcp import McpServer
from agentmesh.config.schema import Database, Document, Limits, PermissionRules, Provider, TypeSettings
from agentmesh.domain import jsontext
from agentmesh.domain.errors import ConfigError
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.config.rules import SourcedRule

OPENAI_URL = "https://api.openai.com/v1"
MOST_BYTES: Final = 1024 * 1024
_MOST_OF_PROJECT: Final = 32_768
"""Bytes of a project's file: tomllib takes minutes for a long key with many dots."""

Key = tuple[str, ...]
"""A key with the tables that contain it: ``("limits", "max_depth")``."""
Values = Mapping[str, Any]
"""A configuration as TOML gives it: tables are mappings."""

_STRICTEST_FIRST = (PermissionMode.PLAN, PermissionMode.ASK, PermissionMode.EDITS, PermissionMode.ALL)
_PREFIX = "AGENTMESH_"
_OPENAI_URL_KEY = ("providers", "openai", "base_url")
_DOCUMENT = forms.table(Document)
_RULES = forms.table(PermissionRules)
_BY_NAME: Final[Mapping[str, type]] = {
    "agent_types": TypeSettings,
    "databases": Database,
    "mcpServers": McpServer,
    "providers": Provider,
}
"""Tables of tables that have names of their own, each with the class of these."""
_SETTABLE: Final = {"limits": "", "model_calls": "model_", "log": "log_", "retention": "retention_"}
"""Tables whose keys variables and flags can set, with the prefix of the names there; others stand only in files."""


class Read(NamedTuple):
    """All sources as one document."""

    document: Document
    openai_configured: bool
    """Whether the user's file has a provider named openai."""
    is_one_database: bool
    """Whether the environment or a flag names the database to use: then it is the only one."""
    rules: tuple[SourcedRule, ...]
    """Permission rules of all files; ``document`` has only the user's."""
    warnings: tuple[str, ...]
    """What was ignored, and why."""


def settable() -> dict[str, Key]:
    """Return each key that a variable or flag can set, by its name there: ``max_depth`` for ``limits.max_depth``."""
    tables = _tables()
    names: dict[str, Key] = {
        name: (name,) for name in forms.keys(Document) if name not in tables and name != "model_aliases"
    }
    for table, prefix in _SETTABLE.items():
        names |= {prefix + name: (table, name) for name in forms.keys(tables[table])}
    return names


def _tables() -> Mapping[str, type]:
    """Return the class of each table of a configuration; for a table of named tables, the class of these."""
    single = {name: type(default) for name, default in Document._field_defaults.items() if isinstance(default, tuple)}
    return {**single, **_BY_NAME}


def variable(name: str) -> str:
    """Return the environment variable that sets ``name``."""
    return _PREFIX + name.upper()


def flag(name: str) -> str:
    """Return the option of the command line that sets ``name``."""
    return f"--{name.replace('_', '-')}"


def read(flags: Values, environ: Mapping[str, str], workdir: Path | None, named: Callable[[str], str] = flag) -> Read:
    """Read and merge all sources; with None for ``workdir`` there is no project's file.

    ``named`` returns what its author wrote to set a flag. Raise ConfigError for an unknown key or a bad value; it names
    the file, the variable or the flag.
    """
    names = settable()
    values: Values = {
        "data_dir": paths.default_data(environ),
        "providers": {"openai": {"base_url": OPENAI_URL, "api_key_env": "OPENAI_API_KEY"}},
    }
    user_file, project_file = paths.user_config(environ), paths.project_config(workdir or Path())
    user = _anchored(toml(user_file), user_file.parent)
    values = _checked(values, user, lambda key: f"{user_file}: {_dotted(key)}")

    project = toml(project_file, _MOST_OF_PROJECT) if workdir else {}
    _checked(values, project, lambda key: f"{project_file}: {_dotted(key)}")
    project, ignored = _tightening(values, project, project_file)
    rules = (*_sourced(user, user_file), *_sourced(project, project_file, from_project=True))
    # Lists of rules are added up: a list that replaced the user's would loosen it.
    values = _merged(values, {name: value for name, value in project.items() if name != "permissions"})

    variables = {key: variable(name) for name, key in names.items()} | {_OPENAI_URL_KEY: "OPENAI_BASE_URL"}
    from_environ = {key: environ[name] for key, name in variables.items() if environ.get(name, "").strip()}
    values = _checked(values, _nested(from_environ), lambda key: variables[key])

    options = {names[name]: named(name) for name, value in flags.items() if value is not None}
    from_flags = {names[name]: value for name, value in flags.items() if value is not None}
    values = _checked(values, _nested(from_flags), lambda key: options[key])

    return Read(
        document=_document(values),
        openai_configured="openai" in user.get("providers", {}),
        is_one_database=("database_url",) in {**from_environ, **from_flags},
        rules=rules,
        warnings=(*ignored, *_misspelled(environ, names)),
    )


def toml(file: Path, most: int = MOST_BYTES) -> Values:
    """Return the content of a file of at most ``most`` bytes, empty if there is none; raise ConfigError."""
    content = toml_text(file, most)
    if not content:
        return {}
    import tomllib  # 4 ms, and most directories have no such file

    try:
        values = tomllib.loads(content)
        jsontext.refuse_deeper(values)
    except RecursionError:
        raise ConfigError(f"{file} is not valid TOML: it nests too deeply.") from None
    except ValueError as error:
        raise ConfigError(f"{file} is not valid TOML: {one_line(str(error), 200)}.") from error
    return values


def toml_text(file: Path, most: int = MOST_BYTES) -> str:
    """Return the text of a file of at most ``most`` bytes, empty if there is none; raise ConfigError."""
    try:
        content, left_out = documents.read(file, most)
    except FileNotFoundError:
        return ""
    except documents.Unreadable as error:
        raise ConfigError(f"{file} {error}.") from error
    if left_out:
        raise ConfigError(f"{file} is larger than {most >> 10} KiB, and is not read.")
    return content


def _anchored(values: Values, folder: Path) -> Values:
    """Return the values with relative paths made absolute: in a file they do not depend on the working directory."""
    data_dir, log = values.get("data_dir"), values.get("log")
    anchored = {**values, "data_dir": _in_folder(folder, data_dir)} if "data_dir" in values else values
    if not isinstance(log, Mapping) or log.get("file", "-") == "-":
        return anchored
    return {**anchored, "log": {**log, "file": _in_folder(folder, log["file"])}}


def _in_folder(folder: Path, value: Any) -> Any:
    """Return a path from ``folder`` on, unless it is absolute, begins at a home directory, or is not valid."""
    if not isinstance(value, str) or not value.strip() or value.startswith("~"):
        return value
    return str(folder / value)


def _checked(base: Values, layer: Values, name_of: Callable[[Key], str]) -> Values:
    """Return ``layer`` merged over ``base``, which is valid; raise ConfigError if the layer is wrong."""
    if not layer:
        return base
    if layer.get("database_url", base.get("database_url")) != base.get("database_url"):
        # The other URLs of a source below lead to the database that this source replaces.
        base = {name: value for name, value in base.items() if name not in ("direct_database_url", "reader_url")}
    merged = _merged(base, layer)
    try:
        _document(merged)
    except forms.UnknownKey as error:
        raise _unknown_key(error.key, name_of(error.key)) from error
    except forms.BadValue as error:
        raise ConfigError(f"{name_of(error.key)} {error.complaint}.") from error
    return merged


def _sourced(layer: Values, file: Path, *, from_project: bool = False) -> Iterator[SourcedRule]:
    if "permissions" in layer:
        from agentmesh.config.rules import sourced
        from agentmesh.domain.permissions import Decision

        given = _RULES(layer["permissions"])
        table = {Decision.DENY: given.deny, Decision.ASK: given.ask, Decision.ALLOW: given.allow}
        yield from sourced(table, str(file), from_project=from_project)


def _document(values: Values) -> Document:
    document: Document = _DOCUMENT(values)
    return document


def _unknown_key(key: Key, name: str) -> ConfigError:
    tables = _tables()
    known = sorted(forms.keys(tables[key[0]] if len(key) > 1 else Document))
    close = difflib.get_close_matches(key[-1], known, n=1)
    homes = [table for table, form in tables.items() if table not in _BY_NAME and key[-1] in forms.keys(form)]
    if len(key) > 1 and key[0] not in _BY_NAME and key[-1] in forms.keys(Document):
        hint = f"{key[-1]} belongs above the first [table] of the file."
    elif len(key) == 1 and homes:
        hint = f"It belongs in the table [{homes[0]}]."
    else:
        hint = f"Did you mean {close[0]}?" if close else f"Known here: {', '.join(known)}."
    return ConfigError(f"{name} is not a known key.", hint=hint)


def _tightening(base: Values, layer: Values, file: Path) -> tuple[Values, list[str]]:
    """Return the part of a project's file that only tightens, and a warning for each other key."""
    if not layer:
        return {}, []
    before, after = _document(base), _document(_merged(base, layer))
    kept: dict[Key, Any] = {}
    warnings = []
    for key, value in _leaves(layer):
        match key:
            case ("limits", name):
                tighter = _is_lower(name, before.limits, after.limits)
                reason = "a project's file may only lower it"
            case ("permission_mode",):
                rank = _STRICTEST_FIRST.index
                tighter = rank(after.permission_mode) <= rank(before.permission_mode)
                reason = "a project's file may only make it stricter"
            case ("permissions", effect):
                tighter, reason = effect != "allow" or not value, "a project's file may only deny and ask"
            case ("agent_types", _, "hidden"):
                tighter, reason = value is True, "a project's file may only hide types"
            case _:
                tighter, reason = False, "only your own configuration, the environment and flags may set it"
        if tighter:
            kept[key] = value
        else:
            warnings.append(f"{file}: {_dotted(key)} is ignored: {reason}.")
    return _nested(kept), warnings


def _is_lower(name: str, before: Limits, after: Limits) -> bool:
    """Return whether a limit is not above what it was."""
    old, new = getattr(before, name), getattr(after, name)
    if name == "ask_agents":
        return bool(old == 0 or 0 < new <= old)  # 0 never asks
    if name == "max_living" and old is None:
        old = 10 * before.max_agents
    return bool(old is None or (new is not None and new <= old))


def _misspelled(environ: Mapping[str, str], names: Mapping[str, Key]) -> Iterator[str]:
    """Yield a warning for each variable that looks like one of ours and is unknown."""
    for found in sorted(environ):
        name = found.removeprefix(_PREFIX).lower()
        if found.startswith(_PREFIX) and name not in names:
            # Only close ones: other code reads our other variables (AGENTMESH_CONFIG_DIR, the tests' own).
            for close in difflib.get_close_matches(name, names, n=1, cutoff=0.85):
                yield f"{found} is ignored: there is no such setting. Did you mean {variable(close)}?"


def _merged(base: Values, layer: Values) -> Values:
    result = dict(base)
    for name, value in layer.items():
        old = result.get(name)
        result[name] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def _leaves(values: Values, above: Key = ()) -> Iterator[tuple[Key, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _nested(values: Mapping[Key, Any]) -> Values:
    result: dict[str, Any] = {}
    for (*tables, name), value in values.items():
        table = result
        for part in tables:
            table = table.setdefault(part, {})
        table[name] = value
    return result


def _dotted(key: Key) -> str:
    return one_line(".".join(key))
