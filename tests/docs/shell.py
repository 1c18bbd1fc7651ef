"""A reader's terminal: one bash for all commands of a page, in a project and a home of its own."""

from __future__ import annotations

import base64
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from tests.docs.blocks import ROOT
from tests.fixtures.terminal import Terminal

PATIENCE = 150
"""Seconds for one command, also on a machine that is busy."""

_END = "\x01end of command\x01"
_WATCH = """set -o errtrace
trap 'if [ "$BASH_SUBSHELL" -gt 0 ]; then echo "$BASH_COMMAND" >> {}; fi' ERR"""
"""Bash forgets how ``$(...)`` ended when it is an argument of another command."""


class Reader:
    """Who does what a page says, from its first block to its last."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.home, self.project = folder / "home", folder / "home" / "project"
        self.project.mkdir(parents=True)
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        self.environ = {
            **kept,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),  # the same place on every system
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "XDG_RUNTIME_DIR": str(folder),
            "TERM": "xterm-256color",
            "COLUMNS": "120",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **environ,
        }
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=self.project,
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._failed = folder / "failed"
        """What failed inside ``$(...)``, where the command around it goes on with an empty text."""
        self._told = threading.Condition()
        self._lines: list[str] = []
        self._ended = False
        self._thread = threading.Thread(target=self._listen, name="reader", daemon=True)
        self._thread.start()
        self.run(_WATCH.format(shlex.quote(str(self._failed))))

    def _listen(self) -> None:
        assert self._bash.stdout
        for line in self._bash.stdout:
            with self._told:
                self._lines.append(line)
                self._told.notify_all()
        with self._told:
            self._ended = True
            self._told.notify_all()

    def run(self, command: str) -> tuple[int, str]:
        """Run a command; return its exit code and what it printed. What fails inside ``$(...)`` is an assertion."""
        with self._told:
            self._lines.clear()
        self._failed.unlink(missing_ok=True)
        assert self._bash.stdin
        self._bash.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n{_END}%s\\n' $?\n")
        self._bash.stdin.flush()
        output = "".join(self._wait_for(lambda text: _END in text and text.endswith("\n"), f"the end of {command}"))
        printed, _, code = output.rpartition(_END)
        failed = self._failed.read_text(encoding="utf-8") if self._failed.exists() else ""
        assert not failed, f"in {command}\nthis failed inside $(...):\n{failed}{printed}"
        return int(code), printed.removesuffix("\n")

    def run_until(self, command: str, wanted: str) -> str:
        """Start a command that goes on, wait until it has printed something, and end it by Ctrl+C."""
        cwd, environ = self._surroundings()
        started = ["bash", "-c", f"exec {command}"]
        with subprocess.Popen(
            started, cwd=cwd, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            killer = threading.Timer(PATIENCE, process.kill)
            killer.start()
            try:
                printed = ""
                assert process.stdout
                for line in process.stdout:
                    printed += line
                    if wanted in line:
                        process.send_signal(signal.SIGINT)
                assert wanted in printed, f"{wanted!r} is not in what {command} printed:\n{printed}"
            finally:
                killer.cancel()
        assert process.returncode in (0, 130), f"{command} ended with {process.returncode}:\n{printed}"
        return printed

    def look(self, command: str, wanted: str) -> None:
        """Open the terminal UI, wait until something is on the screen, and leave it."""
        cwd, environ = self._surroundings()
        screen = Terminal(["bash", "-c", f"exec {command}"], cwd=cwd, environ=environ, columns=120, rows=40)
        try:
            screen.until(wanted, timeout=PATIENCE)
            screen.leave()
        finally:
            screen.close()

    def _surroundings(self) -> tuple[Path, dict[str, str]]:
        """Return the shell's directory and environment as they are now."""
        code, printed = self.run("pwd; env -0 | base64 --wrap=0")
        assert code == 0
        cwd, environ = printed.splitlines()
        pairs = (each.partition("=") for each in base64.b64decode(environ).decode().split("\0") if each)
        return Path(cwd), {name: value for name, _, value in pairs}

    def _wait_for(self, wanted: Callable[[str], bool], what: str) -> list[str]:
        with self._told:
            self._told.wait_for(lambda: wanted("".join(self._lines)) or self._ended, PATIENCE)
            printed = "".join(self._lines)
            assert wanted(printed), (
                f"waited for {what}, and the shell {'ended' if self._ended else 'is silent'}:\n{printed}"
            )
            return list(self._lines)

    def write(self, path: str, text: str) -> Path:
        """Write one of the page's files."""
        file = self.home / path[2:] if path.startswith("~/") else self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def close(self) -> None:
        """End the shell, and every process that was started in its folders."""
        for process in self._left():
            with suppress(psutil.Error):
                process.kill()
        self._bash.kill()
        self._bash.wait()
        self._thread.join(PATIENCE)
        for stream in (self._bash.stdin, self._bash.stdout):
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def _left(self) -> Iterator[psutil.Process]:
        """Yield what was started in the reader's folders: by its directory, since a worker hides its environment."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if Path(process.cwd()).is_relative_to(self.home) and process.pid != self._bash.pid:
                    yield process


def commands(text: str) -> list[tuple[str, str | None]]:
    """Return the commands of a console block, each with what it prints; None where the page shows nothing."""
    found: list[tuple[list[str], list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        else:
            assert found, f"a console block begins with a command, not with {line!r}"
            found[-1][1].append(line)
    return [("\n".join(command), "\n".join(printed).rstrip() or None) for command, printed in found]
