"""The environment of commands that agents run: an allowlist, so that an unexpected secret is never passed on."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import sys
from collections.abc import Mapping

from agentmesh.domain.ids import AgentId

AGENT_VARIABLE = "AGENTMESH_AGENT"
"""Set for every command: below it, our own programs refuse what only a person may do."""

_KEPT = frozenset(
    {
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TEMP",
        "TMP",
        "SSH_AUTH_SOCK",
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "JAVA_HOME",
        "GOPATH",
        "GOROOT",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "NVM_DIR",
        "NVM_BIN",
        "PYENV_ROOT",
        "RBENV_ROOT",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
    }
)
_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_PROXY_NAME = re.compile("(?:http|https|all|ftp)_proxy", re.IGNORECASE)
_CREDENTIALS_IN_URL = re.compile(r"://(?:[^/@]*@|[^/@:]*:[^@]*@)")
"""A user before the host, or a password with any characters, also ``/``."""
_SET = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    # Reading must not write, nor run a program that a repository's own configuration names.
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
}
_PR_SET_DUMPABLE = 4
_ENV_START, _ENV_END = 47, 48
"""Fields of /proc/self/stat, counted after the command's name."""


def command_environment(environ: Mapping[str, str], who: AgentId | str) -> dict[str, str]:
    """Return the environment for a command of an agent, or of another program that ``who`` names, from the worker's."""
    kept = {
        name: value
        for name, value in environ.items()
        if (name in _KEPT or name.startswith("LC_"))
        and not _SECRET_NAME.search(name)
        and not _has_credentials(name, value)
    }
    return {**kept, "PATH": absolute(environ.get("PATH", os.defpath)), **_SET, AGENT_VARIABLE: str(who)}


def _has_credentials(name: str, value: str) -> bool:
    """Whether a value may hold a user and a password. A proxy needs no scheme: curl takes ``user:password@proxy``."""
    if _PROXY_NAME.fullmatch(name) and "@" in value:
        return True
    return _CREDENTIALS_IN_URL.search(value) is not None


def absolute(path: str) -> str:
    """Return a list of folders without relative and empty entries, which mean the current directory."""
    return ":".join(part for part in path.split(":") if part.startswith("/"))


def conceal_process() -> None:
    """Hide this process's memory, environment and open files from the user's other processes; write no core dump.

    On Linux the kernel then lets only root read or trace it; that excludes debuggers and profilers too. Programs that
    it starts are not affected. Call it once at the start of a process that runs agents or holds keys of providers.
    """
    conceal_environment()
    _soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if sys.platform == "linux" and (libc := ctypes.CDLL(None, use_errno=True)).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl(PR_SET_DUMPABLE) failed: {libc}")


def conceal_environment() -> None:
    """Take this process's environment out of /proc, where commands of the same user could read its secrets.

    Call it once at the start of a process that runs agents, before it starts threads. ``os.environ`` and C's getenv
    keep working: every variable is first copied out of the area that the kernel shows.
    """
    if sys.platform != "linux":
        return
    for name, value in os.environ.items():
        os.putenv(name, value)
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    ctypes.memset(start, 0, end - start)
