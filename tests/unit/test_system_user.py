"""The system user of the embedded server is made by useradd; here a script in its place writes what it is asked."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentmesh.domain.errors import EmbeddedServerError
from agentmesh.store.embedded import account


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the script was asked, a line each; no user and no group of the server is known, and this is root."""

    def unknown(_name: str) -> None:
        raise KeyError

    script = tmp_path / "useradd"
    script.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\necho "useradd: it is locked.." >&2\nexit 9\n')
    script.chmod(0o755)
    monkeypatch.setattr(account, "_SYSTEM_PATH", str(tmp_path))
    monkeypatch.setattr(account, "_USERADD_SECONDS", 0.01)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwnam", unknown)
    monkeypatch.setattr(grp, "getgrnam", unknown)
    return tmp_path / "asked"


def test_the_user_gets_a_group_of_its_name(asked: Path):
    with pytest.raises(EmbeddedServerError, match=r"could not be made: useradd: it is locked\.$") as failed:
        account.server_account()
    first = asked.read_text().splitlines()[0]
    assert "--user-group" in first
    assert f"`useradd {first}`" in failed.value.hint


def test_a_group_that_is_left_over_is_taken(asked: Path, monkeypatch: pytest.MonkeyPatch):
    """useradd refuses to make a group that is there, and so did the command that was advised."""
    monkeypatch.setattr(grp, "getgrnam", lambda name: SimpleNamespace(gr_name=name, gr_gid=123))
    with pytest.raises(EmbeddedServerError) as failed:
        account.server_account()
    first = asked.read_text().splitlines()[0]
    assert "--gid agentmesh-pg" in first
    assert "--user-group" not in first
    assert f"`useradd {first}`" in failed.value.hint
