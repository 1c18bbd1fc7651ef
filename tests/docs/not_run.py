"""The blocks of the documentation that no test runs: each by its page and the beginning of its first line.

Whoever marks a block as not run lists it here, with the same reason that stands in the page.
"""

from __future__ import annotations

NOT_RUN: dict[tuple[str, str], str] = {
    (
        "docs/how-to/headless.md",
        "Ended with the run: 1 command in the background (r",
    ): "an example; tests/cli/test_run_background.py has the words",
    (
        "docs/how-to/own-server.md",
        "$ export AGENTMESH_DATABASE_URL='postgresql://w2@d",
    ): "needs two servers; tests/faults/test_failover.py has them",
    (
        "docs/how-to/several-databases.md",
        "[databases.local]                 # without a url:",
    ): "these servers exist nowhere",
    (
        "docs/how-to/several-databases.md",
        "agentmesh sessions move 1234abcd team",
    ): "it needs two databases",
    (
        "docs/how-to/several-databases.md",
        "with agentmesh.open() as mesh, mesh.worker():     ",
    ): "these servers exist nowhere; tests/api/test_several_databases.py has some",
    ("docs/how-to/own-server.md", "The server at db1.example:5432 is not the one that"): "a line of the log",
    ("docs/reference/calls-in-text.md", '{"name": "bash", "arguments": {"command": "ls"}}'): "the form of a call",
    ("docs/how-to/images.md", 'agentmesh run "what is wrong on @shot.png?"'): "needs a model that can see",
    ("docs/how-to/images.md", 'session.run("what is wrong here?", images=["shot.p'): "needs a model that can see",
    ("docs/how-to/images.md", "pip install '.[pdf]'"): "installs a package",
    (
        "README.md",
        "$ make demo     # in a checkout: a scripted model ",
    ): "it makes an environment of its own, which takes minutes",
    ("README.md", "$ export OPENAI_API_KEY=...                       "): "needs a model server and a key",
    ("README.md", '$ claude mcp add agentmesh --env OPENAI_API_KEY="$'): "other makers' programs",
    (
        "docs/benchmarks.md",
        "$ python -m bench                   # the ordinary",
    ): "it measures for minutes; bench/ has tests of its own",
    ("docs/how-to/metrics.md", "scrape_configs:"): "another program's configuration",
    ("docs/explanation/architecture.md", "domain → config → sql → store, llm, git → workspac"): "a picture",
    ("docs/explanation/architecture.md", "sender's process               PostgreSQL, one tra"): "a picture",
    (
        "docs/explanation/state-machine.md",
        "stateDiagram-v2",
    ): "a picture; tests/store/test_state_machine.py tries every verb in every state",
    (
        "docs/how-to/connect-mcp-client.md",
        '$ claude mcp add agentmesh --env OPENAI_API_KEY="$',
    ): "another maker's program",
    ("docs/how-to/connect-mcp-client.md", "[mcp_servers.agentmesh]"): "another maker's configuration",
    (
        "docs/how-to/connect-mcp-client.md",
        "$ vibe mcp add agentmesh --transport stdio --comma",
    ): "another maker's program",
    (
        "docs/how-to/own-server.md",
        "create database mesh owner mesh_owner;            ",
    ): "roles are a server's, and the tests share one; tests/cli/test_roles_of_a_server.py makes them",
    (
        "docs/how-to/own-server.md",
        "$ export AGENTMESH_DATABASE_URL='postgresql://w1@d",
    ): "needs a server with a certificate; tests/cli/test_tls.py has one",
    ("docs/how-to/own-server.md", "$ POSTGRES_PASSWORD=... WORKER_PASSWORD=... OPENAI"): "needs Docker",
    ("docs/how-to/own-server.md", "$ printf 'services:\\n  worker:\\n    hostname: agen"): "needs Docker",
    ("docs/how-to/models.md", "$ agentmesh setup"): "it asks questions, and needs a model server and a key",
    ("docs/how-to/models.md", "$ export OPENAI_BASE_URL=http://localhost:11434/v1"): "needs a model server and a key",
    ("docs/reference/export.md", "╷09:00:00              ╷09:00:30           ╷11:00:"): "a picture",
    ("docs/reference/screen.md", "Board my session · 5 agents  1 asks  1 failed  1 d"): "a picture of the screen",
    ("docs/reference/screen.md", "▌ you"): "a picture of the screen",
    ("docs/reference/screen.md", "▸ task  look at the tests  ◐ running · 14 s"): "a picture of the screen",
    ("docs/tutorial/first-team.md", "$ python3 -m venv .venv && . .venv/bin/activate"): "the tests have it installed",
    (
        "docs/tutorial/first-team.md",
        "$ export OPENAI_API_KEY=...          # or OPENAI_B",
    ): "needs a model server and a key",
}
