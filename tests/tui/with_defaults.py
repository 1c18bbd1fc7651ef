"""Functions of the screen with defaults for what most tests need not say."""

from __future__ import annotations

from agentmesh.tui.board import session_line, status
from agentmesh.tui.commands import complete
from agentmesh.tui.session.surroundings import Surroundings

NOTHING = Surroundings()


def status_line(board, agent, width, trouble=None, answers="", around=NOTHING):
    return session_line.status_line(board, agent, width, trouble, answers, around)


def status_lines(board, agent, width, trouble):
    return session_line.status_lines(board, agent, width, trouble, "", NOTHING)


def spinner(board, agent, now, key, shell=None, since=None):
    return status.spinner(board, agent, now, key, shell, "", now if since is None else since)


def completions(text, cursor, board, custom=None, types=dict):
    return complete.completions(text, cursor, board, custom or {}, types)
