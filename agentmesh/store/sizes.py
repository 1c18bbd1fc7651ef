"""How many connections a process keeps; apart from the pool, because commands name it before they load psycopg."""

from __future__ import annotations

import os
from typing import Final

POOL_SIZE: Final = min(8, max(4, 2 * (os.cpu_count() or 1)))
"""The pool of a process that runs agents. Each connection costs the server 30 ms for its plans (decision 0034)."""
