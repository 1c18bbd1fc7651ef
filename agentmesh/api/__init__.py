"""The Python API: ``import agentmesh`` exports what is public here; docs/how-to/python.md shows it.

Handles to a mesh, its sessions and agents; every method is one of the verbs or a read. The command line uses the same
waiting and following. Synchronous: any thread may use any handle, and asyncio calls it through ``asyncio.to_thread``.
"""
