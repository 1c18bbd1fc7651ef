from __future__ import annotations

import io
import sys

import pytest

from agentmesh.cli.render.files import print_patch

PATCH = "+caf\udce9 \x1b[2J\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_what_it_would_obey(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdout", shown := Terminal())
    print_patch(PATCH)
    assert shown.getvalue() == "+caf\ufffd \\u001b[2J\n"


def test_a_pipe_gets_every_byte(capsysbinary: pytest.CaptureFixture[bytes]):
    print_patch(PATCH)
    assert capsysbinary.readouterr().out == b"+caf\xe9 \x1b[2J\n"
