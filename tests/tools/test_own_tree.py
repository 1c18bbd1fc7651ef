"""Tools of an agent with its own tree: what they refuse, and what their commands can reach."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agentmesh.config.schema import Sandbox
from agentmesh.domain.permissions import Decision
from agentmesh.domain.rows import Allowance
from agentmesh.domain.states import PermissionMode
from agentmesh.engine.tool import Rights, ToolContext, ToolError
from agentmesh.store.tx import Database
from agentmesh.tools.bash import Bash
from agentmesh.tools.edit import Edit
from agentmesh.tools.gate import ToolGate
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.ledger import FileLedger
from agentmesh.tools.read import Read
from agentmesh.tools.shell import repository
from agentmesh.tools.shell.judge import read_shell
from agentmesh.tools.wall import bubblewrap, landlock
from agentmesh.tools.wall.view import approved_view
from agentmesh.tools.wall.walls import Walls
from agentmesh.tools.write import Write
from agentmesh.workspace.roots import OwnTree
from tests.fixtures.repositories import git
from tests.fixtures.repositories import repository as made_repository
from tests.tools.calling import call, context

WORKSPACE = "eeeeeeee-0000-4000-8000-000000000005"


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The user's checkout."""
    return made_repository(tmp_path / "repo")


@pytest.fixture
def own(tmp_path: Path, user: Path) -> OwnTree:
    """A tree that stands for the checkout, as ``make_tree`` makes it."""
    top = tmp_path / "data" / "trees" / WORKSPACE / "tree"
    top.mkdir(parents=True)
    git(top, "init", "-q", "-b", "main")
    (top / ".git" / "hooks").exists()
    (top / "a.txt").write_text("own\n")
    (top / "src").mkdir()
    (top / "src" / "b.py").write_text("own = 1\n")
    (top / ".git" / "objects" / "info" / "alternates").write_text(f"{user}/.git/objects\n")
    marker = {"workspace": WORKSPACE, "repository": f"{user}/.git", "objects": f"{user}/.git/objects"}
    (top.parent / "workspace.json").write_text(json.dumps(marker))
    return OwnTree(top, top, user, user, user / ".git")


@pytest.fixture
def there(own: OwnTree) -> ToolContext:
    """A call that may do everything that anybody can approve."""
    return context(own.root, own=own, outside=True, approved=True)


@pytest.mark.parametrize("given", ["{user}/a.txt", "{user}/src/../a.txt", "../../../../repo/a.txt"])
def test_a_file_of_the_user_is_never_written_and_the_right_path_is_named(
    db: Database, there: ToolContext, own: OwnTree, user: Path, given: str
):
    path = given.format(user=user)
    with pytest.raises(ToolError) as refused:
        call(Write(FileLedger(db)), there, path=path, content="x")
    assert (str(refused.value), refused.value.hint) == (
        f"{path} is not in your own tree {own.root}.",
        "You probably mean a.txt.",
    )
    with pytest.raises(ToolError):
        call(Edit(FileLedger(db)), there, path=path, old="not", new="x")
    assert (user / "a.txt").read_text() == "not committed\n"


def test_nothing_else_outside_is_written_either(db: Database, there: ToolContext, tmp_path: Path):
    with pytest.raises(ToolError, match="is not in your own tree"):
        call(Write(FileLedger(db)), there, path=f"{tmp_path}/elsewhere", content="x")
    assert not (tmp_path / "elsewhere").exists()


def test_what_the_tree_has_is_not_read_in_the_user_s_checkout(there: ToolContext, user: Path):
    with pytest.raises(ToolError) as refused:
        call(Read(), there, path=f"{user}/src/b.py")
    assert refused.value.hint == "You probably mean src/b.py."


def test_what_only_the_user_has_may_be_read_if_that_is_allowed(there: ToolContext, user: Path):
    assert "SECRET" in call(Read(), there, path=f"{user}/.env")["content"]
    with pytest.raises(ToolError, match="outside the working directory"):
        call(Read(), replace(there, outside=False), path=f"{user}/.env")


def test_a_linked_file_is_read_and_not_written(db: Database, there: ToolContext, own: OwnTree, user: Path):
    (own.root / "ignored").symlink_to(user / "ignored")
    assert call(Read(), there, path="ignored/big")["lines"] == 1
    with pytest.raises(ToolError) as refused:
        call(Write(FileLedger(db)), there, path="ignored/big", content="y")
    assert refused.value.hint == "Use a path inside it."


def test_nobody_is_asked_about_a_path_that_no_approval_could_allow(own: OwnTree, user: Path):
    gate = ToolGate(walls=Walls(Sandbox(), trees=own.top.parents[1]))
    assert gate.misplaced("write", {"path": f"{user}/a.txt"}, own)
    assert gate.misplaced("read", {"path": f"{user}/a.txt"}, own)
    assert gate.misplaced("read", {"path": f"{user}/.env"}, own) is None
    assert gate.misplaced("read", {"path": "a.txt"}, own) is None
    assert gate.misplaced("bash", {"command": f"cat {user}/a.txt"}, own) is None


def test_rules_with_the_session_s_paths_hold_in_the_tree(own: OwnTree, user: Path):
    rules = [[{"effect": "deny", "tool": "read", "pattern": f"{user}/src/**"}]]
    gate, rights = ToolGate(), Rights(rules, Allowance(PermissionMode.ALL))
    judged = gate.judge("read", {"path": "src/b.py"}, rights, own.root, own.project)
    assert judged.decision is Decision.DENY
    assert gate.judge("read", {"path": "a.txt"}, rights, own.root, own.project).decision is Decision.ALLOW


@pytest.mark.parametrize("command", ["git status", "git log --oneline", "git diff HEAD", "git show HEAD:a.txt"])
def test_git_reads_in_an_own_tree_without_approval(own: OwnTree, command: str):
    parts = read_shell(command, own.root, own.top.parents[1]).parts
    assert [part.reason for part in parts] == [""]


def test_the_wall_of_such_a_command_shows_the_objects_and_nothing_can_write_them(own: OwnTree, user: Path):
    where = context(own.root, own=own, approved=False)
    bash = Bash(Spawner(), Walls(Sandbox(), trees=own.top.parents[1]))
    assert call(bash, where, command=f"ls {user}/.git/objects | head -1")["exit_code"] == 0
    assert "Read-only" in call(bash, where, command=f"touch {user}/.git/objects/x")["output"]
    assert call(bash, where, command=f"cat {user}/a.txt")["exit_code"] != 0


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_git_works_in_an_own_tree_for_an_approved_command(own: OwnTree, user: Path, kind: str):
    git(own.top, "read-tree", git(user, "rev-parse", "HEAD^{tree}"))
    git(own.top, "update-ref", "refs/heads/main", git(user, "rev-parse", "HEAD"))
    walls = Walls(Sandbox(wall=kind), trees=own.top.parents[1])  # type: ignore[arg-type]
    if walls.problem():
        pytest.skip(walls.problem())
    who = "-c user.name=a -c user.email=a@b"
    result = call(
        Bash(Spawner(), walls), context(own.root, own=own), command=f"git {who} commit -qam mine; git log --format=%s"
    )
    assert result["output"].splitlines() == ["mine", "second", "first"]
    assert git(user, "log", "--all", "--format=%s").splitlines() == ["second", "first"]


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_what_rules_withhold_in_the_checkout_is_hidden_from_approved_commands(own: OwnTree, user: Path, kind: str):
    walls = Walls(Sandbox(wall=kind, writable=[str(user.parent)]), trees=own.top.parents[1])  # type: ignore[arg-type]
    if walls.problem():
        pytest.skip(walls.problem())
    where = context(own.root, own=own, withheld=lambda path: path.endswith(".env"))
    output = call(Bash(Spawner(), walls), where, command=f"cat {user}/a.txt {user}/.en?")["output"]
    assert "not committed" in output
    assert "SECRET" not in output


def forged(folder: Path, objects: Path) -> Path:
    """Make what an agent could make: a tree with a marker beside it, in a directory that it may write."""
    tree = folder / "trees" / WORKSPACE / "tree"
    tree.mkdir(parents=True)
    git(tree, "init", "-q")
    (tree / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    (tree.parent / "workspace.json").write_text(json.dumps({"workspace": WORKSPACE, "objects": str(objects)}))
    return tree


def test_a_marker_that_an_agent_made_opens_nothing(tmp_path: Path, own: OwnTree, user: Path):
    trees_folder = own.top.parents[1]
    secret = tmp_path / "secret"
    secret.mkdir()
    for place in (own.root, user):
        tree = forged(place, secret)
        for workdir, command in ((place, f"git -C {tree.relative_to(place)} status"), (tree, "git status")):
            (part,) = read_shell(command, workdir, trees_folder).parts
            assert "objects from another repository" in part.reason
            assert repository.own_objects(workdir, trees_folder) in ("", f"{user}/.git/objects")


def test_other_alternates_than_the_marker_s_are_an_objection(tmp_path: Path, own: OwnTree):
    (own.top / ".git" / "objects" / "info" / "alternates").write_text(f"{tmp_path}\n")
    (part,) = read_shell("git status", own.root, own.top.parents[1]).parts
    assert "objects from another repository" in part.reason


def test_alternates_of_the_user_s_own_repository_are_an_objection(tmp_path: Path, own: OwnTree, user: Path):
    (user / ".git" / "objects" / "info" / "alternates").write_text(f"{tmp_path}\n")
    (part,) = read_shell("git status", own.root, own.top.parents[1]).parts
    assert "objects from another repository" in part.reason


def test_a_marker_of_another_workspace_opens_nothing(own: OwnTree, user: Path):
    (own.top.parent / "workspace.json").write_text(json.dumps({"workspace": "other", "objects": f"{user}/.git"}))
    assert repository.own_objects(own.root, own.top.parents[1]) == ""


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_an_approved_command_cannot_write_to_the_checkout_even_if_a_setting_covers_it(
    own: OwnTree, user: Path, tmp_path: Path, kind: str
):
    walls = Walls(Sandbox(wall=kind, writable=(str(tmp_path),)), trees=own.top.parents[1])  # type: ignore[arg-type]
    if walls.problem():
        pytest.skip(walls.problem())
    bash, where = Bash(Spawner(), walls), context(own.root, own=own)
    tried = f"echo x > {user}/a.txt; echo x > {user}/.git/config; rm -rf {user}/src; echo mine > a.txt"
    result = call(bash, where, command=tried)
    assert f"{user} is not your tree" in result["note"]
    assert (user / "a.txt").read_text() == "not committed\n"
    assert (user / "src" / "b.py").exists()
    assert "core" in (user / ".git" / "config").read_text()
    assert (own.root / "a.txt").read_text() == "mine\n"


def test_a_shared_directory_is_writable_as_before(user: Path, tmp_path: Path):
    seen = approved_view(user, writable=[str(tmp_path)], hidden=[], withheld=[], network=True, temporary="")
    assert seen.read_only == ()
    assert "--ro-bind" not in bubblewrap.arguments("bwrap", seen)[bubblewrap.arguments("bwrap", seen).index("--bind") :]


def test_only_what_a_writable_folder_holds_must_be_closed(own: OwnTree, user: Path, tmp_path: Path):
    closed = own.read_only
    outside = approved_view(own.root, writable=[], hidden=[], withheld=[], network=True, temporary="", read_only=closed)
    assert outside.read_only == ()
    inside = approved_view(
        own.root,
        writable=[str(tmp_path), str(user / "src")],
        hidden=[],
        withheld=[],
        network=True,
        temporary="",
        read_only=closed,
    )
    assert inside.writable == (str(tmp_path),)
    rules = landlock.ruleset(inside, 3)["rules"]
    writes = 1 << 1
    assert not [path for path, allowed in rules if path.startswith(str(user)) and allowed & writes]
