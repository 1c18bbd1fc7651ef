"""What each kind of wall is told to build, as plain data: these hold on machines that cannot build it too."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from agentmesh.tools.wall import bubblewrap, landlock, seatbelt, seccomp
from agentmesh.tools.wall.view import View, approved_view, reading_view, withheld_paths


def test_only_the_working_directory_caches_and_tmp_are_bound_for_writing(tmp_path: Path):
    cache, temporary = tmp_path / "cache", tmp_path / "t"
    for folder in (cache, temporary):
        folder.mkdir()
    seen = approved_view(
        tmp_path, writable=[str(cache)], hidden=[], withheld=[], network=True, temporary=str(temporary)
    )
    argv = bubblewrap.arguments("bwrap", seen)
    bound = [argv[at + 2] for at, word in enumerate(argv) if word == "--bind"]
    assert bound == ["/tmp", str(cache), str(tmp_path)]


def test_nothing_is_bound_for_writing_for_a_command_that_nobody_approved(tmp_path: Path):
    argv = bubblewrap.arguments("bwrap", reading_view(tmp_path, {"PATH": "/usr/bin"}, hidden=[], withheld=[]))
    assert "--bind" not in argv
    assert "--unshare-all" in argv
    assert argv[-3:] == ["--chdir", str(tmp_path), "--"]


def test_a_hidden_folder_in_a_cache_and_a_cache_in_a_hidden_folder(tmp_path: Path):
    for folder in ("cache/hidden", "hidden/cache", "work"):
        (tmp_path / folder).mkdir(parents=True)
    seen = approved_view(
        tmp_path / "work",
        writable=[f"{tmp_path}/cache", f"{tmp_path}/hidden/cache"],
        hidden=[f"{tmp_path}/cache/hidden", f"{tmp_path}/hidden"],
        withheld=[],
        network=True,
        temporary="",
    )
    argv = bubblewrap.arguments("bwrap", seen)
    order = [argv[at + 1] for at, word in enumerate(argv) if word in ("--bind", "--tmpfs")]
    assert order.index(f"{tmp_path}/cache") < order.index(f"{tmp_path}/cache/hidden")
    assert order.index(f"{tmp_path}/hidden") < order.index(f"{tmp_path}/hidden/cache")


def test_a_link_to_the_working_directory_is_followed(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert reading_view(tmp_path / "link", {}, hidden=[], withheld=[]).workdir == str(tmp_path.resolve() / "real")


def test_folders_of_programs_are_shown_and_homes_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / "home"
    for folder in ("bin", ".cargo/bin", "project"):
        (home / folder).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    path = f"/usr/bin:{home}/bin:{home}:{home}/.cargo/bin:/:{tmp_path}/absent"
    seen = reading_view(home / "project", {"PATH": path}, hidden=[], withheld=[])
    assert [each for each in seen.readable if each.startswith(str(tmp_path))] == [f"{home}/bin", f"{home}/.cargo/bin"]
    assert "/" not in seen.readable


def test_withheld_directories_are_found_as_a_whole_and_links_are_not_followed(tmp_path: Path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").touch()
    (tmp_path / "loop").symlink_to(".")
    assert withheld_paths(tmp_path, lambda path: path == "a/b") == [str(tmp_path.resolve() / "a" / "b")]


def test_a_profile_for_macos_denies_first():
    text = seatbelt.profile(View("/w", reading=True, readable=("/usr",), hidden=('/w/"x',), withheld=("/w/key",)))
    lines = text.splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert "network" not in text, "what is not allowed is denied"
    assert not any(line.startswith("(allow file-write*") for line in lines)
    assert r'(deny file-read* file-write* (subpath "/w/\"x"))' in lines
    assert lines.index(r'(deny file-read* file-write* (subpath "/w/\"x"))') > lines.index("(allow file-read-metadata)")
    assert text.count("(") == text.count(")")


def test_a_profile_for_macos_confines_writing_of_approved_commands():
    text = seatbelt.profile(View("/w", reading=False, writable=("/c",), network=False, temporary="/t"))
    assert '(allow file-write* (subpath "/c") (subpath "/w") (subpath "/t"))' in text
    assert text.index("(deny file-write*)") < text.index("(allow file-write*")
    assert "(deny network*)" in text
    assert text.count("(") == text.count(")")


def test_the_numbers_of_system_calls_are_those_of_the_kernels_headers():
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("the kernel's headers are not installed")
    known = dict(line.split()[1:3] for line in header.read_text().splitlines() if line.startswith("#define __NR_"))
    generic = dict(
        line.split()[1:3]
        for line in Path("/usr/include/asm-generic/unistd.h").read_text().splitlines()
        if line.startswith(("#define __NR_", "#define __NR3264_")) and len(line.split()) == 3
    )
    for name, (x86, arm) in seccomp._NUMBERS.items():
        assert known.get(f"__NR_{name}", str(x86)) == str(x86)
        there = generic.get(f"__NR3264_{name}", generic.get(f"__NR_{name}", str(arm)))
        assert there in (str(arm), f"__NR3264_{name}")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("is_reading", [False, True])
@pytest.mark.parametrize("namespaces", [False, True])
def test_a_filter_is_a_program_whose_every_path_ends(machine: str, is_reading: bool, namespaces: bool):
    code = seccomp.program(seccomp.Filter(reading=is_reading, namespaces=namespaces), machine)
    instructions = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    assert len(instructions) < 4096
    for at, (kind, if_true, if_false, _value) in enumerate(instructions):
        if kind & 7 == 5:
            assert at + 1 + max(if_true, if_false) < len(instructions)
    assert instructions[-1][0] == 6


def test_a_ruleset_for_an_old_kernel_has_nothing_that_it_does_not_know(tmp_path: Path):
    seen = reading_view(tmp_path, {}, hidden=[], withheld=[])
    old, new = landlock.ruleset(seen, 1), landlock.ruleset(seen, 7)
    assert (old["size"], old["files"], old["scoped"]) == (8, (1 << 13) - 1, 0)
    assert (new["size"], new["files"], new["scoped"]) == (24, (1 << 15) - 1, 3)
    assert all(allowed & ~old["files"] == 0 for _path, allowed in old["rules"])
