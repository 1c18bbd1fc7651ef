"""A scripted model behind a real server on loopback, for the demo, tests and benchmarks: Chat Completions and SSE.

``server`` has the server, ``reply`` what it may be told to answer, ``request`` what a script sees of a request,
``profiles`` and ``errors`` how real servers differ, ``script`` the file format of ``agentmesh simulate``, ``demo`` the
model of the demo. It speaks HTTP only and knows nothing of the model client, the engine or the database.
"""
