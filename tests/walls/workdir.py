"""What a working directory holds on which attacks are made: ordinary files, and all that attacks need beside them."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

_TOOLS = Path(__file__).parent / "tools"
_TEXTS = {
    "a": "x\ny\nz\n",
    "b.py": "y\n",
    "changed": "as it was\n",
    "src/c.py": "print('x')\n",
    "ab1": "x\n",
    "ab2": "y\n",
    "x.bin": "\0\1",
    "big": "".join(f"{n * 7919 % 100_003}\n" for n in range(20_000)),
    # Names that a shell's pattern turns into options.
    "-delete": "",
    "-omade-by-glob": "",
    "-fprintmade-by-glob": "",
    "--output=made-by-glob": "",
    "@arguments": "",
    # What lines hand to programs.
    "paths": "leak\n",
    "paths0": "leak\0",
    "script.sh": 'touch "$1"\n',
    "script-env.sh": "touch made-by-env-script\n",
    "script.awk": 'BEGIN { print "x" > out }\n',
    "script.sed": "w made-by-sed-script\n",
    "script.mk": "x:\n\ttouch $(OUT)\n",
    "script.py": "import sys; open(sys.argv[1] if len(sys.argv) > 1 else 'made-by-python', 'w')\n",
    "script.vim": "\n",
    "script.js": "require('fs').writeFileSync('made-by-node', '')\n",
    "script.man": ".TH X 1\n.SH NAME\nx\n",
    "script.patch": "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-y\n+z\n",
    "ssh-config": "Host *\n  ProxyCommand touch made-by-ssh\n",
    "curlrc": 'url = "file:///dev/null"\noutput = "made-by-curl"\n',
    "magic": "0 string x x\n",
    "attributes": "*.bin diff=x filter=x\n*.py diff=x filter=x\na diff=x filter=x\n",
    ".inputrc": "\n",
    ".ripgreprc": "--pre=./planted\n",
    "hooks/post-commit": "#!/bin/sh\ntouch made-by-hook\n",
    "planted": "#!/bin/sh\ntouch made-by-planted\necho planted ran\n",
    "planted-gpg": "#!/bin/sh\ntouch made-by-gpg\n",
    "git-planted": "#!/bin/sh\ntouch made-by-git-planted\n",
}
_PROGRAMS = ("script.sh", "planted", "planted-gpg", "git-planted", "hooks/post-commit")


def fill(work: Path, home: Path) -> None:
    """Make the working directory."""
    for name, text in _TEXTS.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in _PROGRAMS:
        (work / name).chmod(0o755)
    for tool in _TOOLS.glob("*.py"):
        shutil.copy(tool, work)
    (work / "empty").mkdir()
    _history(work, home)
    (work / "changed").write_text("as it is\n")
    _links(work)
    _archives(work)


def _links(work: Path) -> None:
    for name, target in (
        ("leak", "../../secret.txt"),
        ("out", "../.."),
        ("src/up", "../../.."),
        ("deep", "src/up"),
        ("src/deeper", "../.."),
        ("loop", "loop"),
    ):
        (work / name).symlink_to(target)


def _archives(work: Path) -> None:
    for archive, member in (("archive.tar", "made-by-archive"), ("outside.tar", f"{work.parent}/made-by-archive")):
        with tarfile.open(work / archive, "w") as file:
            info = tarfile.TarInfo(member)
            info.size = 2
            file.addfile(info, io.BytesIO(b"x\n"))


def _history(work: Path, home: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=work, env=environ, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", "a", "changed", "src", "x.bin")
    git("commit", "-qm", "first")
    git("add", "b.py")
    git("commit", "-qm", "second")
    git("tag", "v1")
    git("branch", "side", "HEAD~1")
    git("remote", "add", "origin", "https://127.0.0.1:9/x")
