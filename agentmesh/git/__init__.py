"""Files of workspaces as Git trees: snapshots, working trees, merges, diffs. Only this package knows pygit2.

It knows files and objects, no database. What to import:

- ``place``: ``Place``, ``find`` a repository, ``own_place`` of a tree that we made;
- ``facts``: what the functions return: ``TreeSnapshot``, ``FileChange``, ``Restored``, ``Merged``, ``Conflict``, ...
- ``store``: ``Store``, a workspace's snapshots and the way back to them;
- ``trees``: ``make_tree``, ``is_made``, ``remove_tree``;
- ``merging``: ``merge``, ``conflicts``;
- ``comparing``: ``diff``, ``changes``, ``changed_paths``;
- ``blaming``: ``blame``.

Rules: git, hooks, filters and other programs that a repository names never run. Nothing of the user's repository is
written but objects and refs below ``refs/agentmesh/``. Nothing is written through a symbolic link.

Paths in and out are relative to the workspace's root, with ``/``. If the root is a folder of its repository, a path
outside that folder begins with ``../``. A name that is not UTF-8 is surrogate-escaped.

Modules that need pygit2 import it at their top, so import them where they are used. ``place`` and ``facts`` are light.
"""
