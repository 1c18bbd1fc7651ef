"""The Python API: ``import agentmesh`` exports its public names; docs/how-to/python.md shows how to use it.

It has handles to a mesh, its sessions and agents; every method is one of the verbs or a read. The command line waits
and follows with the same code. Synchronous: any thread may use any handle; asyncio uses ``asyncio.to_thread``.
"""
