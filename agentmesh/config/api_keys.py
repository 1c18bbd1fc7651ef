"""API keys that the program keeps: in the system's keyring, or in a file that only its owner may read.

A key is kept with the address of its server. If somebody moves the provider to another server, that gets no key.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentmesh.config import paths
from agentmesh.domain import jsontext
from agentmesh.domain.errors import ConfigError
from agentmesh.domain.log import logger

if TYPE_CHECKING:
    from agentmesh.config.schema import Provider

LOG = logger(__name__)

Kept = Literal["keyring", "file"]
_SERVICE = "agentmesh"
_FILE = "keys.json"


def keep_key(environ: Mapping[str, str], provider: str, base_url: str, key: str) -> Kept:
    """Keep the key of a provider, in the keyring if there is one; return where. Raise ConfigError if that fails."""
    _find.cache_clear()
    name, ring = f"{provider} {base_url}", _keyring()
    if ring is not None:
        from keyring.errors import KeyringError

        try:
            ring.set_password(_SERVICE, name, key)
            if ring.get_password(_SERVICE, name) == key:
                return "keyring"
        except (KeyringError, OSError, RuntimeError) as error:
            LOG.info("the keyring takes no key, a file does: %s", type(error).__name__)
    _write(_file(environ), {**_read(_file(environ)), name: key})
    return "file"


def key_of(environ: Mapping[str, str], name: str, provider: Provider) -> str:
    """Return a provider's key from its variable, otherwise the stored one; empty if there is neither."""
    key = environ.get(provider.api_key_env or "", "")
    if key.strip() or provider.stored_key is None:
        return key
    return _find(str(_file(environ)), f"{name} {provider.base_url}", provider.stored_key)


@lru_cache(maxsize=64)
def _find(file: str, name: str, kept: Kept) -> str:
    """Return a kept key; read once, because it is asked for before every call."""
    if kept == "file":
        return _read(Path(file)).get(name, "")
    from keyring.errors import KeyringError

    ring = _keyring()
    try:
        return (ring and ring.get_password(_SERVICE, name)) or ""
    except (KeyringError, OSError, RuntimeError) as error:
        LOG.warning("the keyring gives no key for %s: %s", name.partition(" ")[0], type(error).__name__)
        return ""


def _keyring() -> Any:
    """Return the system's keyring; None if it has none, or only one that would show keys to everybody."""
    import keyring

    ring = keyring.get_keyring()
    return ring if ring.priority >= 1 else None


def _file(environ: Mapping[str, str]) -> Path:
    return paths.user_config(environ).with_name(_FILE)


def _read(file: Path) -> dict[str, str]:
    try:
        opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}.") from error
    with os.fdopen(opened, encoding="utf-8") as content:
        mode = os.fstat(opened).st_mode
        if not stat.S_ISREG(mode) or mode & 0o077:
            raise ConfigError(f"{file} holds API keys, and others may read it.", hint=f"chmod 600 {file}")
        try:
            keys = jsontext.parse(content.read())
        except ValueError:
            keys = None
    if not isinstance(keys, dict):
        raise ConfigError(f"{file} is not what agentmesh wrote.", hint="Remove it, and run agentmesh setup again.")
    return {str(name): str(key) for name, key in keys.items()}


def _write(file: Path, keys: Mapping[str, str]) -> None:
    """Write the file in one piece; nobody else may read it, not even for a moment."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as out:
            json.dump(dict(keys), out)
        fresh.replace(file)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise ConfigError(f"{file} cannot be written: {error.strerror}.") from error
