"""How every command ends: a sentence on stderr about what failed, a hint below it, and an exit code."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import traceback
from collections.abc import Callable

from agentmesh.cli.talk import complain, debugging, start_logging
from agentmesh.domain.errors import AgentmeshError

DONE, FAILED, USAGE, LIMIT, INTERRUPTED = 0, 1, 2, 3, 130


def run(work: Callable[[], int]) -> int:
    """Do the work and return the exit code; no exception leaves this function."""
    _open_what_is_closed()
    _replace_what_has_no_bytes()
    start_logging()
    code = DONE
    try:
        code = _outcome(work)
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:  # `agentmesh ps | head`: the reader has what it wanted, so nothing failed
        _leave_quietly()
    except OSError as error:  # a full disk
        code = failed(f"the output cannot be written: {error.strerror}", "", code or FAILED)
        _leave_quietly()
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def failed(sentence: str, hint: str, code: int) -> int:
    """Print what went wrong, a hint, and while debugging the traceback; return the code."""
    if debugging():
        traceback.print_exc()
    complain(sentence, hint)
    return code


def _outcome(work: Callable[[], int]) -> int:
    try:
        return work()
    except KeyboardInterrupt:
        return INTERRUPTED
    except AgentmeshError as error:
        return failed(error.message, error.advice, error.exit_code)
    except BrokenPipeError:
        raise
    except OSError as error:
        return failed(_about(error), "", FAILED)
    except Exception as error:  # noqa: BLE001  top frame of the program: a person sees a sentence, never a traceback
        hint = "This is a bug in agentmesh. AGENTMESH_DEBUG=1 shows where; please report it."
        return failed(f"unexpected {type(error).__name__}: {error}", hint, FAILED)


def _about(error: OSError) -> str:
    if error.errno == errno.ENOSPC and not error.filename:
        return f"the output, or a file, cannot be written: {error.strerror}"
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def _open_what_is_closed() -> None:
    """Open each standard stream that was closed at the start on /dev/null, as the shell's `</dev/null` does."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            flag, mode = (os.O_RDONLY, "r") if name == "stdin" else (os.O_WRONLY, "w")
            nothing = os.open(os.devnull, flag)
            if nothing != descriptor:  # no file of ours may get this number: others would read it, or write into it
                os.dup2(nothing, descriptor)
                os.close(nothing)
            os.set_inheritable(descriptor, True)  # otherwise a program that is started has it closed
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))


def _replace_what_has_no_bytes() -> None:
    """Let stdout write characters that its encoding lacks as escapes, as stderr does, so that no answer is lost."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _leave_quietly() -> None:
    """Redirect the broken streams to nothing, so that the interpreter's last flush does not complain."""
    with open(os.devnull, "wb") as nothing:
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):
                if not os.isatty(descriptor):
                    os.dup2(nothing.fileno(), descriptor)
