"""Read a repository's configuration, and find lines that may make git run a program.

Git runs programs that its configuration names (``diff.external``, ``filter.*.clean``, ``gpg.program``, ...). This is a
list of harmless keys; any key that is not in it, or not written in plain form, is an objection.
"""

from __future__ import annotations

import re
from pathlib import Path

from agentmesh.git.rule_files import read_regular

_MAX_SIZE = 256 * 1024
_SECTION = re.compile(r'[ \t]*\[([A-Za-z0-9-]+)(?:[ \t]+"((?:[^"\\]|\\["\\])*)")?\][ \t]*(?:[#;].*)?')
_KEY = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?")
_NOTHING = re.compile(r"[ \t]*(?:[#;].*)?")

_PLAIN = {
    "core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf "
    "safecrlf eol abbrev quotepath compression loosecompression bigfilethreshold commentchar whitespace untrackedcache "
    "preloadindex fscache longpaths protecthfs protectntfs sharedrepository checkstat trustctime sparsecheckout "
    "sparsecheckoutcone commitgraph multipackindex hookspath fsmonitor",
    "user": "*",
    "author": "*",
    "committer": "*",
    "init": "defaultbranch",
    "extensions": "objectformat worktreeconfig noop",
    "pull": "rebase ff",
    "push": "default autosetupremote followtags",
    "fetch": "prune prunetags parallel output all",
    "merge": "conflictstyle ff renames renamelimit stat log",
    "rebase": "autostash autosquash updaterefs stat",
    "commit": "gpgsign verbose cleanup status",
    "tag": "gpgsign sort",
    "color": "*",
    "column": "*",
    "advice": "*",
    "log": "date decorate follow abbrevcommit mailmap",
    "diff": "renames renamelimit algorithm colormoved colormovedws mnemonicprefix noprefix context interhunkcontext "
    "indentheuristic statgraphwidth wserrorhighlight ignoresubmodules",
    "status": "showuntrackedfiles branch short relativepaths showstash aheadbehind",
    "index": "version threads",
    "gc": "*",
    "pack": "threads windowmemory deltacachesize packsizelimit usebitmaps",
    "feature": "manyfiles",
    "rerere": "enabled autoupdate",
    "grep": "linenumber column patterntype extendedregexp fullname",
    "blame": "coloring date showemail showroot",
    "transfer": "fsckobjects",
    "maintenance": "auto strategy",
    "worktree": "guessremote",
    "checkout": "defaultremote guess workers",
    "lfs": "repositoryformatversion",
    "gui": "*",
}
"""Keys of sections without a subsection; ``*`` for all."""
_NAMED = {
    "remote": "url pushurl fetch push tagopt prune prunetags mirror skipdefaultupdate gh-resolved",
    "branch": "*",
    "submodule": "url active",
    "lfs": "access locksverify",
    "http": "extraheader",
    "color": "*",
}
_OLD_COMMANDS = frozenset({"whatchanged", "pack-redundant"})
"""Newer versions of git let an alias replace them."""
_FALSE = frozenset({"false", "no", "off", "0"})


def config_objection(path: Path) -> str:
    """Return why a configuration file might make git run a program, or an empty string."""
    try:
        data = read_regular(path) if path.stat().st_size <= _MAX_SIZE else None
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"the configuration of the repository cannot be read ({error.strerror})"
    if data is None or b"\0" in data:
        return "the configuration of the repository cannot be read"
    section, name = "", None
    for line in data.decode("latin-1").replace("\r\n", "\n").split("\n"):
        if _NOTHING.fullmatch(line):
            continue
        if found := _SECTION.fullmatch(line):
            section, name = found[1].lower(), found[2]
            continue
        key = _KEY.fullmatch(line)
        if key is None or line.endswith("\\") or not _harmless(section, name, key[1].lower(), (key[2] or "").strip()):
            shown = ".".join(part for part in (section, name, key[1] if key else line.strip()[:40]) if part)
            return f"its configuration sets {shown}, by which git may run a program"
    return ""


def hooks_path(path: Path) -> str | None:
    """Return the hooks folder that a file names; call it only if :func:`config_objection` found nothing there."""
    if not path.is_file():
        return None
    found = re.findall(r"(?im)^[ \t]*hookspath[ \t]*=[ \t]*(.*?)[ \t\r]*$", path.read_bytes().decode("latin-1"))
    return str(found[-1]) if found else None


def _harmless(section: str, name: str | None, key: str, value: str) -> bool:
    if section == "alias":
        return key not in _OLD_COMMANDS and name is None
    if section == "core" and key == "fsmonitor":
        return value.lower() in _FALSE
    if section == "core" and key == "hookspath":
        return re.fullmatch(r"[\w/.][\w/.@+-]*", value, re.ASCII) is not None
    if section == "remote" and key in ("url", "pushurl") and "::" in value:
        return False
    allowed = (_PLAIN if name is None else _NAMED).get(section, "")
    return allowed == "*" or key in allowed.split()
