"""The host and user of this process."""

from __future__ import annotations

import getpass
import os
import socket
from typing import NamedTuple


class HostAndUser(NamedTuple):
    """The host and user of this process: workers serve sessions of their own host and user."""

    host: str
    os_user: str

    @classmethod
    def here(cls) -> HostAndUser:
        """Return this host and user."""
        try:
            os_user = getpass.getuser()
        except (KeyError, OSError):  # a container's user may have no name
            os_user = f"uid {os.getuid()}"
        return cls(socket.gethostname(), os_user)
