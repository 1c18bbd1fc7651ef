"""Reads a terminal so that nothing it sends ends the screen, and no paste acts as keys."""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Iterator

from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from agentmesh.tui.terminal import PasteParser

_WAIT = 0.1
"""Seconds between two looks whether the screen is left, and whether an Esc was a key of its own."""
_PIECE = 4096


class TerminalDriver(LinuxDriver):
    """Reads as Textual 8.2 does, but for the parser and for what makes no sense: Textual would fail at that."""

    def run_input_thread(self) -> None:
        """Send what a person does to the app, until the screen is left."""
        reading = Reading(debug=self._debug)
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                sent = os.read(self.fileno, _PIECE) if selector.select(_WAIT) else b""
                for message in reading.messages(sent):
                    self.process_message(message)


class Reading:
    """Makes messages of the bytes that a terminal sends."""

    def __init__(self, *, debug: bool = False) -> None:
        self._debug = debug
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._parser = PasteParser(debug)

    def messages(self, sent: bytes) -> Iterator[Message]:
        """Yield what these bytes complete, and an Esc that nothing followed in time.

        Bytes that are no UTF-8 come from a Latin-1 terminal, from Alt as an eighth bit, or from noise on a line. A
        report without numbers, or with impossible ones, is dropped. It is never part of a paste, which has no ESC.
        """
        try:
            if text := self._decoder.decode(sent):
                yield from self._parser.feed(text)
            yield from self._parser.tick()
        except (ValueError, ArithmeticError):  # a parser that has failed takes nothing more
            self._parser = PasteParser(self._debug)
