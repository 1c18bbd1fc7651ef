"""Benchmarks: figures of agentmesh against the same work done barely, on the same machine in the same run.

``python -m bench`` (or ``make bench``) runs everything; docs/benchmarks.md describes the method.
"""

from __future__ import annotations
