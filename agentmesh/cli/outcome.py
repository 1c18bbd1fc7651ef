"""How every command ends: what failed in one sentence on stderr, what to do about it below, and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from agentmesh.cli.commands import cli
from agentmesh.cli.talk import complain, debugging, say, start_logging
from agentmesh.domain.errors import AgentmeshError

FAILED, USAGE, LIMIT, INTERRUPTED = 1, 2, 3, 130


def run(args: Sequence[str]) -> int:
    """Run the command line and return its exit code; nothing but that leaves this function."""
    start_logging()
    if "_AGENTMESH_COMPLETE" in os.environ:
        cli.main(list(args), prog_name="agentmesh", complete_var="_AGENTMESH_COMPLETE")
    try:
        code = _outcome(args)
        sys.stdout.flush()
    except BrokenPipeError:  # `agentmesh ps | head`: the reader has what it wanted
        return _leave_quietly()
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _outcome(args: Sequence[str]) -> int:
    try:
        with cli.make_context("agentmesh", list(args)) as context:
            code = cli.invoke(context)
            return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return USAGE
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "agentmesh"
        return _failed(error.format_message(), f"See `{path} --help`.", USAGE)
    except click.ClickException as error:
        return _failed(error.format_message(), "", USAGE)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except AgentmeshError as error:
        return _failed(error.message, error.hint, error.exit_code)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _failed(_about(error), "", FAILED)
    except Exception as error:  # noqa: BLE001  top frame of the program: a person sees a sentence, never a traceback
        hint = "This is a bug in agentmesh. AGENTMESH_DEBUG=1 shows where; please report it."
        return _failed(f"unexpected {type(error).__name__}: {error}", hint, FAILED)


def _failed(sentence: str, hint: str, code: int) -> int:
    if debugging():
        traceback.print_exc()
    complain(sentence, hint)
    return code


def _about(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def _leave_quietly() -> int:
    """Point the broken streams at nothing, so that the interpreter's last flush does not complain either."""
    with open(os.devnull, "wb") as nothing:
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):
                if not os.isatty(descriptor):
                    os.dup2(nothing.fileno(), descriptor)
    return FAILED
