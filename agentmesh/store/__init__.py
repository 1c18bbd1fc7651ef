"""The way to the database. Only this package (and ``migrations``) knows psycopg, and every change is one SQL function.

All functions in the database, and every statement here that locks, follow this protocol:

 1. Every commit of the engine is one statement, ``select agentmesh.<function>(...)``, in autocommit at READ COMMITTED.
 2. Lock order: the session's row (``lock_session``); then the rows of all agents that will be touched, once, by id
    (``lock_agents``); then workspaces, by id (``lock_workspaces``); then requests; then mail, waits, calls and
    transcripts of locked agents. The session's row in session_usage comes last (``reserve``, called by begin_step
    alone). After it come only reservations, by id. NOTIFY is sent at commit.
 3. The session's row is taken by fork, kill, rename, reap, end, delete, halt and by a wait that registers for listed
    agents.
 4. Agents: send {sender, recipient}; fork {parent, as a tool}; kill {subtree, killer}; halt {subtree of the
    top of the work}; wait_begin {waiter, targets};
    the end of a turn {agent, parent}, after the session if the agent works on an item of a batch; a merge {who asked,
    source's, target's}, then both workspaces; everything else {the agent}; release of a worker {its agents}.
 5. Lock, then look in a new statement, then write. Facts about a locked row come from the locking statement.
 6. Never FOR UPDATE or FOR SHARE on agents, sessions, workers. Only what looks again later skips locked rows: claim,
    timers, sweeps.
 7. A caller that runs an agent proves it by worker and epoch (``fence``); claim and release raise the epoch.
"""
