"""The work of the demo's children: four jobs with real tools in the current directory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentmesh.domain.text import one_line
from agentmesh.llm.simulator import findings
from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView, Exchange, Fork, Mail

_FILES = "find . -name '.?*' -prune -o -type f"
_COUNT = f"{_FILES} -print | head -n {findings.CAP} | wc -l"
_LARGEST = f"{_FILES} -ls | head -n {findings.CAP} | sort -k7,7 -rn | head -n 3"
_COMMITS = 200
_HISTORY = f"git log --oneline -n {_COMMITS}"
_ENTRIES = "ls -A | wc -l"
_MORE = "One thing more:"


@dataclass(frozen=True, slots=True)
class Job:
    """One child of the demo: its name, its prompt, how it begins, and how it reports the results."""

    name: str
    prompt: str
    intro: str
    calls: tuple[ScriptedCall, ...]
    report: Callable[[Sequence[Exchange]], str]
    sends: bool = True
    """Whether it sends its report to its parent; otherwise its last answer is the report."""
    instead: ScriptedCall | None = None
    """The call that it makes if its first call is refused."""


def _count_files(done: Sequence[Exchange]) -> str:
    counted, sizes = done[0], done[-1]
    number = None if findings.failed(counted) else findings.number_in(findings.output(counted))
    if number is None:
        return f"the files could not be counted: {one_line(counted.error or counted.text, 120)}"
    count = findings.count_of(number, "file", more=number >= findings.CAP)
    names = findings.largest(findings.output(sizes)) if not sizes.error else []
    return f"{count} (hidden ones aside)" + (f"; the largest: {', '.join(names)}" if names else "")


def _look_at_code(done: Sequence[Exchange]) -> str:
    grep, log = done[0], done[-1]
    if log.error:
        history = f"git log was refused: {one_line(log.error, 100)}"
    elif findings.failed(log):
        history = "no git history here"
    else:
        lines = findings.output(log).splitlines()
        newest = f', the newest "{one_line(lines[0].partition(" ")[2], 60)}"' if lines else ""
        history = findings.count_of(len(lines), "commit", more=len(lines) >= _COMMITS) + newest
    return f"{findings.matches(grep)}; {history}"


def _find_tests(done: Sequence[Exchange]) -> str:
    found = findings.listing(done[0])
    example = f", {one_line(found.files[0], 60)} for example" if found.files else ""
    return f"{found.count} with the name of a test{example}; none was run"


def _slept(_done: Sequence[Exchange]) -> str:
    return "nobody stopped me"


JOBS: Mapping[str, Job] = {
    job.name: job
    for job in (
        Job(
            "file-reader",
            "Count the files below the current directory and find the three largest. Send your parent a report of one "
            "sentence, then end your turn; further work may reach you by mail.",
            "I count the files here and look for the largest.",
            (ScriptedCall("bash", {"command": _COUNT}), ScriptedCall("bash", {"command": _LARGEST})),
            _count_files,
        ),
        Job(
            "code-analyzer",
            "Count the lines with TODO or FIXME below the current directory and look at its git history. Send your "
            "parent a report of one sentence, then end your turn.",
            "I look for TODO and FIXME and at the git history.",
            (ScriptedCall("grep", {"pattern": "TODO|FIXME"}), ScriptedCall("bash", {"command": _HISTORY})),
            _look_at_code,
        ),
        Job(
            "test-runner",
            "Look for test files below the current directory and say at the end of your turn what you found. Send "
            "nothing: your parent should see you end your turn without a message.",
            "I look for test files.",
            (ScriptedCall("glob", {"pattern": "**/{test*,*_test.*,*.test.*}"}),),
            _find_tests,
            sends=False,
        ),
        Job(
            "slow-poke",
            "Run `sleep 600` with bash. You are here to be killed while you do it.",
            "I sleep for ten minutes, unless somebody kills me.",
            (ScriptedCall("bash", {"command": "sleep 600"}),),
            _slept,
            sends=False,
            instead=ScriptedCall("wait", {"timeout": 600}),
        ),
    )
}


def more_work(path: str) -> str:
    """Return the mail in which the root gives the file-reader more work; ``path`` may be empty."""
    if not path:
        return f"{_MORE} count the names in the current directory itself, hidden ones too, and send me the number."
    return f"{_MORE} read the file {json.dumps(path, ensure_ascii=False)} and send me how many lines it has."


def job_of(fork: Fork) -> Job | None:
    """Return the job with the prompt of the fork message."""
    return next((job for job in JOBS.values() if job.prompt == fork.prompt.strip()), None)


def play_job(job: Job, view: ChatRequestView, fork: Fork, mail: Sequence[Mail]) -> ScriptedReply:
    """Return the child's next step, on its first job or on mail from its parent."""
    if not mail:
        return _step(job, view, fork.index, "parent")
    message = mail[-1].message
    if not message.startswith(_MORE):
        return ScriptedReply(text=f"Noted: {one_line(message, 120)}")
    return _step(_further_job(message), view, view.last_input, mail[-1].sender_id or "parent")


def _further_job(message: str) -> Job:
    found = re.search(r'read the file ("(?:[^"\\]|\\.)*")', message)
    if not found:
        call = ScriptedCall("bash", {"command": _ENTRIES})
        return Job("file-reader", message, "More work: I count the names.", (call,), _count_names)
    path = str(json.loads(found[1]))
    call = ScriptedCall("read", {"path": path, "limit": 20})
    return Job(
        "file-reader", message, f"More work: I read {path}.", (call,), lambda done: findings.about_file(path, done[0])
    )


def _count_names(done: Sequence[Exchange]) -> str:
    number = findings.number_in(findings.output(done[0])) if not findings.failed(done[0]) else None
    if number is None:
        return f"the names could not be counted: {one_line(done[0].error or done[0].text, 120)}"
    return f"{findings.count_of(number, 'name')} in the directory itself, hidden ones too"


def _step(job: Job, view: ChatRequestView, since: int, to: str) -> ScriptedReply:
    """Call the tools, then send the report, then end the turn; a job that does not send ends with its report."""
    done = view.exchanges(since)
    found = [exchange for exchange in done if exchange.name != "send"]
    if len(found) < len(job.calls):
        return ScriptedReply(text=job.intro, tool_calls=job.calls)
    if job.instead and found[0].error and len(found) == len(job.calls):
        return ScriptedReply(tool_calls=(job.instead,))
    if not job.sends:
        return ScriptedReply(text=f"Found: {job.report(found)}.")
    sent = next((exchange for exchange in done if exchange.name == "send"), None)
    if sent is None:
        return ScriptedReply(tool_calls=(ScriptedCall("send", {"to": to, "message": job.report(found)}),))
    if sent.error:
        return ScriptedReply(text=f"My report could not be sent ({one_line(sent.error, 100)}): {job.report(found)}.")
    return ScriptedReply(text="I have sent my report.")
