"""A scripted model behind a real server on loopback, for the demo, tests and benchmarks: Chat Completions and SSE.

- ``server``: the server;
- ``reply``: the answers that a script may give;
- ``request``: a script's view of a request;
- ``profiles`` and ``errors``: how real servers differ;
- ``script``: the file format of ``agentmesh simulate``;
- ``demo``: the model of the demo.

It speaks only HTTP, and imports nothing of the model client, the engine or the database.
"""
