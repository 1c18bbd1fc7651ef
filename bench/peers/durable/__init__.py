"""Durable peers: each module here installs its schema, receives and sends, through its library's public interface.

They run in their own environments, each role as a process; `bench.durable` asks them. See `bench.peers.durable.roles`.
"""
