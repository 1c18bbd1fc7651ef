"""Frameworks that run agents in memory, each doing the orchestration of ``bench.orchestration`` in its own way."""
