"""The embedded server with real servers, real processes and real signals; as root its own system user is used too."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

import agentmesh
from agentmesh.domain.errors import DatabaseUnreachable, EmbeddedServerError
from agentmesh.store.embedded import EmbeddedServer
from agentmesh.store.embedded.account import server_account
from agentmesh.store.embedded.programs import wheel_bin
from agentmesh.store.tx import Database

AS_ROOT = os.geteuid() == 0
OLD_BIN = Path("/usr/lib/postgresql/15/bin")
FAST = {"fsync": "off"}

CHECKOUT = str(Path(agentmesh.__file__).parents[1])

HOLDER = """
import sys
from pathlib import Path
from agentmesh.store.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]), settings={"fsync": "off"})
server.acquire()
print(server.status().pid, flush=True)
sys.stdin.read()
"""

NewServer = Callable[..., EmbeddedServer]


def one(connection: psycopg.Connection) -> int:
    row = connection.execute("select 1").fetchone()
    assert row is not None
    return int(row[0])


def roomy() -> str:
    # A cluster is a thousand files; in memory they cost a tenth of the time.
    memory = Path("/dev/shm")
    if not memory.is_dir() or not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < 1 << 30:
        return "/tmp"
    return "/tmp" if os.statvfs(memory).f_flag & os.ST_NOEXEC else str(memory)


@contextmanager
def open_folder(where: str) -> Iterator[Path]:
    # Not tmp_path: as root it lies in a folder that the server's user cannot enter.
    path = Path(tempfile.mkdtemp(prefix="am-", dir=where))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder(roomy()) as path:
        yield path


@pytest.fixture(scope="module")
def stopped() -> Iterator[Path]:
    # initdb is most of a test's time, so most tests begin with a copy of a server that ran once.
    with open_folder(roomy()) as path:
        with EmbeddedServer(path / "mesh", settings=FAST):
            pass
        yield path / "mesh"


@pytest.fixture
def made_before(stopped: Path, folder: Path) -> None:
    subprocess.run(["cp", "-a", stopped, folder / "mesh"], check=True)


@pytest.fixture
def new_server(folder: Path) -> Iterator[NewServer]:
    made: list[EmbeddedServer] = []

    def new(data_dir: Path = folder / "mesh", settings: dict[str, str] = FAST, **options: Any) -> EmbeddedServer:
        made.append(EmbeddedServer(data_dir, settings=settings, **options))
        return made[-1]

    yield new
    for server in made:
        server.release()
        server.stop(force=True)
        if server.status().socket_dir.parent == Path("/tmp"):
            shutil.rmtree(server.status().socket_dir, ignore_errors=True)


@pytest.fixture
def holder(folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    with ExitStack() as stack:

        def start(script: str = HOLDER, data_dir: Path = folder / "mesh", **options: Any) -> subprocess.Popen[str]:
            command = [sys.executable, "-W", "error", "-c", script, str(data_dir)]
            environ = options.pop("env", os.environ) | {"PYTHONPATH": os.pathsep.join([CHECKOUT, *sys.path])}
            process = subprocess.Popen(
                command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start


def ready(process: subprocess.Popen[str]) -> int:
    assert process.stdout
    return int(process.stdout.readline())


def leave(process: subprocess.Popen[str]) -> None:
    process.communicate()
    assert process.returncode == 0


def query(url: str, text: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(text.encode())
        row = cursor.fetchone() if cursor.description else None
        return row and row[0]


def pid_of(server: EmbeddedServer) -> int:
    pid = server.status().pid
    assert pid
    return pid


def gone(pid: int) -> bool:
    # Where the first process reaps late, a dead one keeps its number for a while.
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def kill_hard(pid: int) -> None:
    psutil.Process(pid).kill()
    while not gone(pid):
        time.sleep(0.001)


def in_home(server: EmbeddedServer, name: str) -> Path:
    return server.status().data_dir / "postgres" / name


def test_the_first_start_makes_a_private_postgresql_18_and_leaving_stops_it(new_server: NewServer) -> None:
    server = new_server()
    assert not server.running()
    assert server.status().holders == 0

    url = server.acquire()

    status = server.status()
    assert (status.running, status.holders, status.version.split(".")[0]) == (True, 1, "18")
    assert query(url, "select current_database() || current_setting('server_version')") == f"agentmesh{status.version}"
    assert query(url, "select rolsuper from pg_roles where rolname = current_user")
    shown = {
        name: query(url, f"show {name}")
        for name in ("listen_addresses", "unix_socket_permissions", "max_connections", "autovacuum_naptime", "fsync")
    }
    assert shown == {
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        "autovacuum_naptime": "10s",
        "fsync": "off",
    }
    assert status.log_file
    assert "ready to accept connections" in status.log_file.read_text()
    assert server.binary("psql").is_file()

    server.release()
    server.release()
    assert not server.running()
    assert status.pid
    assert gone(status.pid)


@pytest.mark.usefixtures("made_before")
def test_what_was_written_is_there_after_a_restart_and_alter_system_holds(new_server: NewServer) -> None:
    server = new_server()
    with server:
        query(server.url(), "create table kept (n int)")
        query(server.url(), "alter system set max_connections = 77")
    with server:
        assert query(server.url(), "select count(*) from kept") == 0
        assert query(server.url(), "show max_connections") == "77"


@pytest.mark.usefixtures("made_before")
def test_a_dropped_database_is_made_again(new_server: NewServer) -> None:
    server = new_server()
    url = server.acquire()
    query(url.replace("/agentmesh?", "/postgres?"), "drop database agentmesh")
    assert query(new_server().acquire(), "select 1") == 1


@pytest.mark.usefixtures("made_before")
def test_no_tcp_port_is_open(new_server: NewServer) -> None:
    server = new_server()
    server.acquire()
    family = psutil.Process(pid_of(server))
    found = []
    for each in (family, *family.children()):
        with suppress(psutil.NoSuchProcess):  # one that has done its work meanwhile
            found.append(each.net_connections("inet"))
    assert len(found) > 1
    assert not any(found)


@pytest.mark.usefixtures("made_before")
def test_the_last_process_that_leaves_stops_the_server(
    new_server: NewServer, holder: Callable[..., subprocess.Popen[str]]
) -> None:
    first, second = holder(), holder()
    assert ready(first) == ready(second)
    server = new_server()
    assert server.status().holders == 2
    leave(first)  # without release: leaving is enough
    assert server.running()
    leave(second)
    assert not server.running()


@pytest.mark.usefixtures("made_before")
def test_a_killed_holder_keeps_no_share(new_server: NewServer, holder: Callable[..., subprocess.Popen[str]]) -> None:
    killed = holder()
    pid = ready(killed)
    killed.kill()
    killed.wait()
    server = new_server()
    assert server.running()  # nobody was left to stop it
    server.acquire()
    assert (pid_of(server), server.status().holders) == (pid, 1)
    server.release()
    assert not server.running()


@pytest.mark.usefixtures("made_before")
def test_stop_is_refused_while_others_hold_the_server_unless_forced(
    new_server: NewServer, holder: Callable[..., subprocess.Popen[str]]
) -> None:
    other = holder()
    ready(other)
    server = new_server()
    server.acquire()
    with pytest.raises(EmbeddedServerError, match=r"^1 other process uses the embedded server") as refused:
        server.stop()
    assert "--force" in refused.value.hint
    assert server.running()
    assert server.status().holders == 2

    assert server.stop(force=True)
    assert not server.running()
    assert not server.stop()
    server.acquire()  # who still holds a share starts it again
    assert server.running()
    server.release()
    assert server.running()
    leave(other)
    assert not server.running()


@pytest.mark.usefixtures("made_before")
def test_a_server_without_a_free_connection_has_clients(new_server: NewServer) -> None:
    server = new_server()
    with server:
        query(server.url(), "alter system set max_connections = 6")
        query(server.url(), "alter system set superuser_reserved_connections = 1")
    server.acquire()
    taken: list[psycopg.Connection] = []
    try:
        with suppress(psycopg.OperationalError):
            while True:
                taken.append(psycopg.connect(server.url()))
        with pytest.raises(psycopg.OperationalError, match="too many clients already"):
            psycopg.connect(server.url())
        with pytest.raises(EmbeddedServerError, match=r"connected to the embedded server"):
            server.stop()
        server.release()
        assert server.running()
    finally:
        for each in taken:
            each.close()
        server.stop(force=True)


@pytest.mark.slow
def test_ten_processes_at_once_share_one_server(
    new_server: NewServer, holder: Callable[..., subprocess.Popen[str]]
) -> None:
    processes = [holder() for _ in range(10)]
    assert len({ready(each) for each in processes}) == 1
    server = new_server()
    assert server.status().holders == 10
    for each in processes:
        assert each.stdin
        each.stdin.close()
    for each in processes:
        assert each.wait() == 0
    assert not server.running()


@pytest.mark.usefixtures("made_before")
def test_a_killed_server_starts_again_with_its_data(new_server: NewServer) -> None:
    server = new_server()
    url = server.acquire()
    query(url, "create table kept (n int)")
    kill_hard(pid_of(server))
    assert not server.running()
    server.acquire()
    assert query(url, "select count(*) from kept") == 0
    assert server.status().holders == 1


@pytest.mark.slow
@pytest.mark.usefixtures("made_before")
def test_a_database_in_use_starts_its_killed_server_again(new_server: NewServer) -> None:
    server = new_server()
    with Database(server.acquire(), role="test", revive=server.revive) as database:
        assert database.run(one) == 1
        postmaster = server.status().pid
        assert postmaster is not None
        os.kill(postmaster, signal.SIGKILL)
        assert database.run(one, idempotent=True) == 1
        assert server.status().pid != postmaster


@pytest.mark.slow
@pytest.mark.usefixtures("made_before")
def test_a_backend_that_outlived_its_server_does_not_block_the_next(new_server: NewServer) -> None:
    server = new_server()
    url = server.acquire()
    connection = psycopg.connect(url)
    backend = psutil.Process(connection.info.backend_pid)
    backend.suspend()  # so that it cannot notice
    kill_hard(pid_of(server))
    server.acquire()
    connection.close()
    assert gone(backend.pid)
    assert query(url, "select 1") == 1


@pytest.mark.usefixtures("made_before")
def test_a_stale_pid_that_now_is_another_program_is_neither_trusted_nor_signalled(new_server: NewServer) -> None:
    server = new_server()
    server.acquire()
    account = server_account()
    switch: dict[str, Any] = {"user": account.uid, "group": account.gid, "extra_groups": []} if AS_ROOT else {}
    # Of the server's own user, whom PostgreSQL's check of the number believes.
    with subprocess.Popen(["sleep", "600"], **switch) as foreign:
        try:
            kill_hard(pid_of(server))
            for stale in (in_home(server, "data/postmaster.pid"), in_home(server, "run/.s.PGSQL.5432.lock")):
                lines = stale.read_text().split("\n")
                stale.write_text("\n".join([str(foreign.pid), *lines[1:]]))
            assert server.status().pid is None
            assert not server.running()
            assert not server.stop()
            server.acquire()
            assert query(server.url(), "select 1") == 1
            server.release()
            assert not server.running()
            assert foreign.poll() is None
        finally:
            foreign.kill()


@pytest.mark.usefixtures("made_before")
def test_a_stale_pid_that_now_is_the_server_of_another_folder_is_left_alone(
    new_server: NewServer, folder: Path, stopped: Path
) -> None:
    subprocess.run(["cp", "-a", stopped, folder / "other"], check=True)
    server, other = new_server(), new_server(folder / "other")
    other.acquire()
    pid = pid_of(other)
    in_home(server, "data/postmaster.pid").write_text(f"{pid}\n")
    assert server.status().pid is None
    assert not server.stop(force=True)
    with server:
        assert pid_of(server) != pid
    assert pid_of(other) == pid


@pytest.mark.usefixtures("made_before")
def test_a_killed_server_that_nobody_reaps_counts_as_gone(
    folder: Path, holder: Callable[..., subprocess.Popen[str]]
) -> None:
    # What a container sees whose first process is no init: dead orphans stay, and their numbers look alive.
    script = """
import ctypes, os, signal, sys
import psutil
from pathlib import Path
from agentmesh.store.embedded import EmbeddedServer
if ctypes.CDLL(None).prctl(36, 1, 0, 0, 0):  # PR_SET_CHILD_SUBREAPER
    sys.exit("no subreaper")
with EmbeddedServer(Path(sys.argv[1]), settings={"fsync": "off"}) as server:
    dead = psutil.Process(server.status().pid)
    dead.kill()
    while dead.status() != psutil.STATUS_ZOMBIE:
        pass
    assert server.status().pid is None
    server.acquire()
    assert server.running()
    assert dead.status() == psutil.STATUS_ZOMBIE
assert not server.running()
"""
    if sys.platform != "linux":
        pytest.skip("only Linux has subreapers")
    leave(holder(script, folder / "mesh"))


@pytest.mark.slow
def test_initdb_killed_half_way_leaves_nothing_in_the_way(
    new_server: NewServer, holder: Callable[..., subprocess.Popen[str]]
) -> None:
    server = new_server()
    process = holder()
    half_made = in_home(server, "data.new/PG_VERSION")
    while not half_made.exists():
        assert process.poll() is None
        time.sleep(0.001)
    for each in psutil.Process(process.pid).children(recursive=True):
        each.suspend()
    assert half_made.exists()
    assert not in_home(server, "data").exists()
    victims = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for each in victims:
        each.kill()
    process.wait()
    assert query(server.acquire(), "select 1") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("made_before")
def test_a_folder_deleted_under_its_server_gives_a_new_one(new_server: NewServer, folder: Path) -> None:
    lost = new_server()
    lost.acquire()
    pid = pid_of(lost)
    while (folder / "mesh").exists():  # the server may write a file while it is deleted
        shutil.rmtree(folder / "mesh", ignore_errors=True)
    server = new_server()
    server.acquire()
    assert gone(pid)
    lost.release()  # holds a share in what is gone
    assert query(server.url(), "select 1") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ['we ird $HOME `id` "q" \'ü\\n', "x" * 150, "a,b"], ids=["shell characters", "too long", "comma"]
)
def test_a_hostile_environment_changes_nothing(
    folder: Path, name: str, new_server: NewServer, holder: Callable[..., subprocess.Popen[str]]
) -> None:
    environ = {"LANG": "xx_XX.UTF-8", "LC_ALL": "bogus", "PGPORT": "1", "PGDATA": "/nonexistent", "PGHOST": "nowhere"}
    process = holder(data_dir=folder / "below" / name, env=environ, umask=0o077, cwd="/")
    pid = ready(process)
    server = new_server(folder / "below" / name)
    status = server.status()
    assert (status.pid, status.running, status.holders) == (pid, True, 1)
    assert query(server.url(), "select lower('É') || current_setting('port')") == "é5432"
    assert len(os.fsencode(status.socket_dir / ".s.PGSQL.5432")) <= 107
    assert stat.S_IMODE(status.socket_dir.stat().st_mode) == 0o700
    leave(process)
    assert not server.running()


@pytest.mark.slow
def test_two_folders_have_two_servers(new_server: NewServer, folder: Path) -> None:
    # Both with paths too long for a socket.
    one, two = new_server(folder / ("x" * 120) / "one"), new_server(folder / ("x" * 120) / "two")
    query(one.acquire(), "create table only_here (n int)")
    assert query(two.acquire(), "select to_regclass('only_here')") is None
    one.release()
    assert (one.running(), two.running()) == (False, True)


def test_a_planted_socket_folder_is_refused(new_server: NewServer, folder: Path) -> None:
    server = new_server(folder / ("x" * 120))
    planted = server.status().socket_dir
    (folder / "trap").mkdir()
    planted.symlink_to(folder / "trap")
    try:
        with pytest.raises(EmbeddedServerError, match="does not trust it"):
            server.acquire()
        assert not list((folder / "trap").iterdir())
        assert server.status().holders == 0
    finally:
        planted.unlink()


@pytest.mark.usefixtures("made_before")
def test_a_setting_that_postgresql_refuses_is_told_with_its_own_words(new_server: NewServer) -> None:
    server = new_server(settings={**FAST, "shared_buffers": "plenty"})
    with pytest.raises(EmbeddedServerError, match="does not start") as failed:
        server.acquire()
    assert 'invalid value for parameter "shared_buffers": "plenty"' in failed.value.hint
    assert server.status().holders == 0


@pytest.mark.usefixtures("made_before")
def test_a_start_that_fails_on_a_full_disk_names_the_disk(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = new_server(settings={**FAST, "shared_buffers": "plenty"})
    usage = shutil.disk_usage(server.status().socket_dir.anchor)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4096))
    with pytest.raises(EmbeddedServerError, match="does not start") as failed:
        server.acquire()
    assert failed.value.hint.endswith(" is full: 0 MiB are free. Make room.")


@pytest.mark.usefixtures("made_before")
def test_data_that_were_deleted_under_a_program_are_not_made_anew(new_server: NewServer) -> None:
    server = new_server()
    with Database(server.acquire(), role="test", revive=server.revive) as database:
        kill_hard(pid_of(server))
        shutil.rmtree(server.home)
        with pytest.raises(DatabaseUnreachable, match="was deleted under this program"):
            database.run(one, idempotent=True)
    assert not server.home.exists()


@pytest.mark.usefixtures("made_before")
def test_a_database_whose_killed_server_cannot_start_is_away(new_server: NewServer) -> None:
    server = new_server()
    cannot = EmbeddedServerError("It does not start.", hint="Make room.")

    def revive() -> None:
        raise cannot

    with Database(server.acquire(), role="test", revive=revive) as database:
        kill_hard(pid_of(server))
        with pytest.raises(DatabaseUnreachable, match=r"^It does not start\.$") as away:
            database.run(one, idempotent=True)
    assert away.value.hint == "Make room."


@pytest.mark.usefixtures("made_before")
def test_data_of_another_major_version_are_refused(new_server: NewServer) -> None:
    server = new_server()
    server.acquire()
    server.release()
    in_home(server, "data/PG_VERSION").write_text("15\n")
    with pytest.raises(EmbeddedServerError, match=r"PostgreSQL 15's, the programs are 18\.") as refused:
        server.acquire()
    assert "pg_dump" in refused.value.hint


@pytest.mark.skipif(not OLD_BIN.is_dir(), reason="no PostgreSQL 15 on this machine")
def test_other_programs_can_be_named(new_server: NewServer) -> None:
    server = new_server(bin_dir=OLD_BIN)
    assert query(server.acquire(), "show server_version").startswith("15.")
    assert query(server.url(), "select lower('É')") == "é"


@pytest.mark.usefixtures("made_before")
def test_children_keep_no_share(
    folder: Path, new_server: NewServer, holder: Callable[..., subprocess.Popen[str]]
) -> None:
    script = """
import os, subprocess, sys
from pathlib import Path
from agentmesh.store.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]), settings={"fsync": "off"})
server.acquire()
forked = os.fork()
if not forked:
    server.release()  # the parent's, so nothing happens
    os._exit(0)
os.waitpid(forked, 0)
assert server.running() and server.status().holders == 1
child = subprocess.Popen(["sleep", "600"], close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.read()
"""
    process = holder(script)
    child = psutil.Process(ready(process))
    try:
        process.kill()
        process.wait()
        with new_server() as server:
            assert server.status().holders == 1
        assert not server.running()
        assert child.is_running()
    finally:
        child.kill()


@pytest.mark.usefixtures("made_before")
def test_nobody_else_can_enter(new_server: NewServer) -> None:
    server = new_server()
    server.acquire()
    status = server.status()
    owner = server_account()
    for private in (status.socket_dir, in_home(server, "data"), in_home(server, "")):
        facts = private.stat()
        assert (facts.st_uid, stat.S_IMODE(facts.st_mode)) == (owner.uid, 0o700)
    socket = status.socket_dir / ".s.PGSQL.5432"
    assert (socket.stat().st_uid, stat.S_IMODE(socket.stat().st_mode)) == (owner.uid, 0o700)


@pytest.mark.usefixtures("made_before")
@pytest.mark.skipif(not AS_ROOT, reason="becomes another user")
def test_another_user_is_kept_out_by_folder_and_by_socket(new_server: NewServer) -> None:
    server = new_server()
    server.acquire()
    connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    command = ["/usr/bin/env", "python3", "-c", connect, str(server.status().socket_dir / ".s.PGSQL.5432")]
    environ = {"PATH": "/usr/bin:/bin"}

    def denied() -> bool:
        done = subprocess.run(
            command, check=False, user=65534, group=65534, extra_groups=[], env=environ, capture_output=True, text=True
        )
        return done.returncode != 0 and "PermissionError" in done.stderr

    assert denied()
    opened = (server.status().data_dir, in_home(server, ""), server.status().socket_dir)
    for each in opened:
        each.chmod(0o755)
    assert denied()


@pytest.mark.slow
@pytest.mark.usefixtures("made_before")
@pytest.mark.skipif(not AS_ROOT, reason="needs a wheel that the server's user cannot read")
def test_programs_in_a_closed_folder_are_copied_and_the_folder_stays_closed(
    new_server: NewServer, folder: Path
) -> None:
    closed = folder / "home"
    package = wheel_bin().parents[1]
    shutil.copytree(wheel_bin().parent, closed / package.name / wheel_bin().parent.name, symlinks=True)
    shutil.copytree(package.with_name(f"{package.name}.libs"), closed / f"{package.name}.libs")
    closed.chmod(0o700)
    bin_dir = closed / package.name / wheel_bin().parent.name / "bin"

    # The copy lies where a shell would see more than a name.
    server = new_server((folder / "mesh").rename(folder / 'm$h "`\\'), bin_dir=bin_dir)
    server.acquire()
    assert query(server.url(), "select 1") == 1
    running = Path(psutil.Process(pid_of(server)).exe())
    assert running.is_relative_to(in_home(server, "programs"))
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    server.release()

    copied = running.stat().st_ino
    server.acquire()
    assert running.stat().st_ino == copied  # once is enough
    server.release()
    (running.parent / "pg_ctl").write_bytes(b"")  # as a power cut leaves it
    server.acquire()
    assert server.running()


@pytest.mark.skipif(not AS_ROOT, reason="an ordinary user enters their own folders")
def test_a_folder_that_the_server_user_cannot_reach_is_refused_and_not_opened(
    new_server: NewServer, folder: Path
) -> None:
    closed = folder / "home"
    closed.mkdir(mode=0o700)
    server = new_server(closed / "data" / "mesh")
    with pytest.raises(EmbeddedServerError, match=f"cannot enter {closed}") as refused:
        server.acquire()
    assert "AGENTMESH_DATA_DIR" in refused.value.hint
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert not list(closed.iterdir())


def test_a_folder_with_other_things_in_it_keeps_its_owner(new_server: NewServer, folder: Path) -> None:
    (folder / "mesh").mkdir(mode=0o755)
    (folder / "mesh" / "other").touch()
    server = new_server()
    server.acquire()
    facts = (folder / "mesh").stat()
    assert (facts.st_uid, stat.S_IMODE(facts.st_mode)) == (os.geteuid(), 0o755)


def test_a_server_that_is_not_installed_is_told(folder: Path) -> None:
    server = EmbeddedServer(folder / "mesh", bin_dir=folder)
    with pytest.raises(EmbeddedServerError, match=r"cannot run|does not run") as failed:
        server.acquire()
    assert "AGENTMESH_DATABASE_URL" in failed.value.hint
    with pytest.raises(EmbeddedServerError, match="has no program psql"):
        server.binary("psql")
