"""Tool calls written as text are calls if nothing else can be meant, and stay text otherwise."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.llm import textcalls
from agentmesh.llm.bounds import MOST_CALLS
from agentmesh.llm.port import LIMIT, ChatRequest, Reply, ToolCall, Unread
from tests.llm.asking import TOOL, ask
from tests.llm.misbehaving import delta, good, misbehaving, stream, text

READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
TASK = {
    "type": "function",
    "function": {
        "name": "task",
        "parameters": {
            "type": "object",
            "properties": {"description": {"type": "string"}, "prompt": {"type": "string"}},
            "required": ["description", "prompt"],
        },
    },
}
FORK = {
    "type": "function",
    "function": {"name": "fork", "parameters": {"properties": {"name": {"type": "string"}, "prompt": {}}}},
}
REQUEST = ChatRequest("m-1", [], [TOOL, READ, TASK, FORK])
LS = '{"name": "bash", "arguments": {"command": "ls"}}'


def read(written: str, request: ChatRequest = REQUEST, **fields) -> Reply:
    return textcalls.read(Reply(text=written, **fields), request, tuple, b"seed")


def fenced(body: str, word: str = "json") -> str:
    return f"```{word}\n{body}\n```"


FLAT = '{"name": "task", "description": "look", "prompt": "Count."}'
ONE = [("bash", {"command": "ls"})]
FLAT_ONE = [("task", {"description": "look", "prompt": "Count."})]
CALLS = {
    "fence": (fenced(LS), ONE),
    "fence without a word": (fenced(LS, ""), ONE),
    "blanks around": (f"\n\n{fenced(LS)}\n", ONE),
    "tag": (f"<tool_call>{LS}</tool_call>", ONE),
    "tag over lines": (f"<tool_call>\n{LS}\n</tool_call>", ONE),
    "two tags": (f"<tool_call>{LS}</tool_call>\n<tool_call>{LS}</tool_call>", ONE * 2),
    "two fences": (f"{fenced(LS)}\n\n{fenced(LS)}", ONE * 2),
    "a list": (fenced(f"[{LS}, {LS}]"), ONE * 2),
    "parameters": (fenced(LS.replace("arguments", "parameters")), ONE),
    "function wrapper": (fenced(f'{{"type": "function", "function": {LS}}}'), ONE),
    "function as name": (fenced(LS.replace('"name"', '"function"')), ONE),
    "arguments as text": (fenced(json.dumps({"name": "bash", "arguments": '{"command": "ls"}'})), ONE),
    "an id": (fenced('{"id": "1", "name": "bash", "arguments": {"command": "ls"}}'), ONE),
    "a fence in an argument": (
        f"<tool_call>{json.dumps({'name': 'bash', 'arguments': {'command': '```json'}})}</tool_call>",
        [("bash", {"command": "```json"})],
    ),
    "a fence in an argument in a fence": (
        fenced(json.dumps({"name": "bash", "arguments": {"command": "a\n```\nb"}})),
        [("bash", {"command": "a\n```\nb"})],
    ),
    "a line break in a text": (
        '<tool_call>{"name": "bash", "arguments": {"command": "ls\npwd"}}</tool_call>',
        [("bash", {"command": "ls\npwd"})],
    ),
    "bare JSON": (LS, ONE),
    "bare JSON over lines": (json.dumps(json.loads(LS), indent=4), ONE),
    "bare JSON lines": (f"{LS}\n{LS}\n\n{LS}", ONE * 3),
    "bare JSON with commas": (f"{LS},\n{LS}", ONE * 2),
    "a bare list": (f"[{LS}, {LS}]", ONE * 2),
    "JSON lines in a fence": (fenced(f"{LS}\n{LS}"), ONE * 2),
    "JSON lines in an element": (f"<tool_call>\n{LS}\n{LS}\n</tool_call>", ONE * 2),
    "tools": (f"<tools>\n{LS}\n</tools>", ONE),
    "elements in a fence": (fenced(f"<tool_call>\n{LS}\n</tool_call>\n<tool_call>{LS}</tool_call>", "xml"), ONE * 2),
    "doubled braces": (f"{{{LS}}}", ONE),
    "doubled braces everywhere": ('{{"name": "bash", "arguments": {{"command": "ls"}}}}', ONE),
    "doubled braces in an element": (f"<tool_call>\n{{{LS}}}\n</tool_call>", ONE),
    "braces in a text stay": (
        '{"name": "bash", "arguments": {"command": "echo {{a}} }}"}}',
        [("bash", {"command": "echo {{a}} }}"})],
    ),
    "an open brace": (LS[:-1], ONE),
    "an open brace in a fence": (fenced(LS[:-1]), ONE),
    "an open brace in an element": (f"<tool_call>\n{LS[:-1]}\n</tool_call>", ONE),
    "an open brace before another call": (f"{LS[:-1]}, {LS}", ONE * 2),
    "open braces before other calls": (f"{LS[:-1]}\n{LS[:-1]}\n{LS}", ONE * 3),
    "an open brace before another call in a fence": (fenced(f"{LS[:-1]},\n{LS}"), ONE * 2),
    "a brace too many": (f"{LS}}}", ONE),
    "a brace too many after two calls": (f"{LS}, {LS}\n}}\n", ONE * 2),
    "a brace too many in a fence": (fenced(f"{LS}}}"), ONE),
    "a brace too many in an element": (f"<tool_call>{LS}}}</tool_call>", ONE),
    "arguments beside the name": (FLAT, FLAT_ONE),
    "arguments beside the name in a fence": (fenced(FLAT), FLAT_ONE),
    "arguments beside the name in an element": (f"<tool_call>\n{FLAT}\n</tool_call>", FLAT_ONE),
    "arguments beside the name and a call": (f"{FLAT}\n{LS}", FLAT_ONE + ONE),
    "an open list": (f"[{LS}, {LS}", ONE * 2),
    "an open element": (f"<tool_call>\n{LS}", ONE),
    "open elements": (f"<tool_call>\n{LS}\n<tool_call>\n{LS}", ONE * 2),
    "an open fence": (f"```json\n{LS}\n", ONE),
    "words before an element": (f"I list the files now.\n<tool_call>\n{LS}\n</tool_call>", ONE),
    "words after an element": (f"<tool_call>\n{LS}\n</tool_call>\nThen I read them.", ONE),
    "words between elements": (f"First:\n<tool_call>{LS}</tool_call>\nThen:\n<tool_call>{LS}</tool_call>", ONE * 2),
    "words before bare JSON": (f"I will list the files.\n\n{LS}", ONE),
    "words after bare JSON": (f"{LS}\n\nThe child has been asked.", ONE),
    "words with other JSON": (f'The state is\n{{"files": 3}}\nso I go on.\n{LS}', ONE),
    "an end tag in an argument": (
        '<tool_call>{"name": "bash", "arguments": {"command": "echo </tool_call>"}}</tool_call>',
        [("bash", {"command": "echo </tool_call>"})],
    ),
    "a fence at the start of a line in an argument": (
        '<tool_call>{"name": "bash", "arguments": {"command": "a\n```\nb"}}</tool_call>',
        [("bash", {"command": "a\n```\nb"})],
    ),
    "after a thought": (f"<think>\nI should look.\n</think>\n\n{LS}", ONE),
    "after a draft in a thought": (f"<think>\n{LS.replace('ls', 'rm x')}\nNo.\n</think>\n{LS}", ONE),
    "after a thought that its template began": (f"I would look.\n</think>\n{LS}", ONE),
    "after a token": (f"<|python_tag|>{LS}", ONE),
    "between tokens": (f"[TOOL_CALLS] [{LS}, {LS}]</s>", ONE * 2),
    "before tokens": (f"{LS}<|eom_id|>\n<|im_end|>", ONE),
    "after a byte order mark": (f"\ufeff{LS}", ONE),
    "tool_calls": (f'{{"tool_calls": [{LS}, {{"id": "1", "type": "function", "function": {LS}}}]}}', ONE * 2),
    "a placeholder within an argument": (
        '{"name": "bash", "arguments": {"command": "cat <command>"}}',
        [("bash", {"command": "cat <command>"})],
    ),
    "half a character": (r'{"name": "bash", "arguments": {"command": "\ud83d"}}', [("bash", {"command": "\ufffd"})]),
}
CALL, PERHAPS, NOTHING = Unread.CALL, Unread.PERHAPS, Unread.NOTHING
TEXTS = {
    "an example in a fence": (f"You list files like this:\n{fenced(LS)}\nThat is all.", PERHAPS),
    "an example at the end": (f"For example:\n\n{fenced(LS)}", PERHAPS),
    "an example in German": (f"Zum Beispiel:\n{LS}", PERHAPS),
    "an example in Chinese": (f"例如:\n{LS}", PERHAPS),
    "words before a fence": (f"I call it now:\n{fenced(LS)}", PERHAPS),
    "a bare example": (f"The format of a call is\n{LS}", PERHAPS),
    "an element as an example": (f"An example:\n<tool_call>\n{LS}\n</tool_call>", PERHAPS),
    "in a sentence": (f"I call {LS} now.", PERHAPS),
    "at the beginning of a sentence": (f"{LS} is what I call.", PERHAPS),
    "an element in a sentence": (f"It is written <tool_call>{LS}</tool_call> here.", PERHAPS),
    "a form that is not read": ("<function=bash>\n<parameter=command>ls</parameter>\n</function>", PERHAPS),
    "that form in an element": ("<tool_call>\n<function=bash>\n</function>\n</tool_call>", CALL),
    "that form of another tool": ("<function=rm>", NOTHING),
    "a token before a call of another form": ('[TOOL_CALLS]bash[ARGS]{"command": "ls"}', PERHAPS),
    "a draft in a thought": (f"<think>\n{LS}\n</think>\nIt is 4.", NOTHING),
    "an element in a thought": (f"<thinking>\n<tool_call>\n{LS}\n</tool_call>\n</thinking>\nIt is 4.", NOTHING),
    "a thought without an end": (f"<think>\n{LS}", PERHAPS),
    "thoughts without an end": (f"{'<think>' * 50_000}{LS}", PERHAPS),
    "only a thought": ("<think>\nHm.\n</think>", NOTHING),
    "two arguments of one name": ('{"name": "bash", "arguments": {"command": "ls", "command": "rm x"}}', CALL),
    "two of arguments": ('{"name": "bash", "arguments": {"command": "ls"}, "arguments": {"command": "rm x"}}', CALL),
    "two names": ('{"name": "read", "name": "bash", "arguments": {"command": "ls"}}', CALL),
    "two arguments of one name in a text": (
        json.dumps({"name": "bash", "arguments": '{"command": "ls", "command": "rm x"}'}),
        CALL,
    ),
    "a schema as arguments": ('{"name": "bash", "parameters": {"type": "object", "properties": {}}}', PERHAPS),
    "schemas as arguments": ('{"name": "bash", "arguments": {"command": {"type": "string"}}}', PERHAPS),
    "a placeholder": ('{"name": "bash", "arguments": {"command": "<your command>"}}', PERHAPS),
    "dots": ('{"name": "bash", "arguments": {"command": "..."}}', PERHAPS),
    "a placeholder beside words": ('So:\n{"name": "bash", "arguments": {"command": "<command>"}}', NOTHING),
    "tool for name": ('{"tool": "bash", "arguments": {"command": "ls"}}', CALL),
    "action and its input": ('{"action": "bash", "action_input": {"command": "ls"}}', CALL),
    "args": ('{"name": "bash", "args": {"command": "ls"}}', CALL),
    "arguments that no schema has beside the name": ('{"name": "bash", "command": "ls"}', PERHAPS),
    "an argument less beside the name": ('{"name": "task", "prompt": "Count."}', PERHAPS),
    "a description and no more": ('{"name": "task", "description": "look"}', PERHAPS),
    "an argument more beside the name": (FLAT.replace('"prompt"', '"model": 1, "prompt"'), PERHAPS),
    "a placeholder beside the name": (FLAT.replace("Count.", "<prompt>"), PERHAPS),
    "a name that may be the argument": ('{"name": "fork", "prompt": "Count."}', PERHAPS),
    "arguments beside the name and words": (f"I do it.\n{FLAT}", PERHAPS),
    "arguments beside the name, cut": (FLAT[:-4], CALL),
    "arguments beside the name, cut in a fence": (f"```json\n{FLAT[:-4]}\n```", CALL),
    "single quotes": ("{'name': 'bash', 'arguments': {'command': 'ls'}}", CALL),
    "a call of a program": ('bash(command="ls")', PERHAPS),
    "a call of a program in a fence": (fenced('bash(command="ls $(pwd)")', "python"), PERHAPS),
    "an element with arguments as attributes": ('<task description="Count." prompt="What do you know?">', PERHAPS),
    "such an element within words": ('I write <task prompt="x"> here.', NOTHING),
    "calls of a program": ('fork(a, "1+1")\nfork(b, "2+2")\nbash("ls")', PERHAPS),
    "calls of a program on a line": ('bash(command="ls"); bash("pwd")', PERHAPS),
    "a broken call of a program": ('bash(read(a.py, "ls")', PERHAPS),
    "many calls of a program without an end": ("bash(" * 50_000, NOTHING),
    "many calls of a program and a word": ("bash() " * 50_000 + "x", NOTHING),
    "a call of a program beside words": ('Then bash(command="ls") is called.', NOTHING),
    "thought and action": ('Thought: look\nAction: bash\nAction Input: {"command": "ls"}', PERHAPS),
    "tokens of DeepSeek": ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash", PERHAPS),
    "a question before it": (f"Do you want me to run this?\n{LS}", PERHAPS),
    "a question after it": (f"{LS}\n\nShall I run it?", PERHAPS),
    "advice": (f"If you want to see the files, run:\n{LS}", PERHAPS),
    "what it can do": (f"You can use this call:\n{LS}", PERHAPS),
    "a refusal": (f"I will not run this:\n{LS}", PERHAPS),
    "what was done before": (f"I already ran this:\n{LS}", PERHAPS),
    "what a file contains": (f"The file a.json contains:\n{LS}", PERHAPS),
    "the content of a file": (f"Here is the content of a.json:\n\n{LS}", PERHAPS),
    "a comment in HTML": (f"<!--\n{LS}\n-->", PERHAPS),
    "a folded part": (f"<details>\n{LS}\n</details>", PERHAPS),
    "blank lines before nothing": ("\n" * 200_000 + "(", NOTHING),
    "in code marks": (f"The call was `{LS}`, and it failed.", NOTHING),
    "indented as code": (f"The call:\n\n    {LS}\n", PERHAPS),
    "in a quotation": (f"> {LS}\n\nThat was said.", PERHAPS),
    "unknown tool": (fenced(LS.replace("bash", "rm")), PERHAPS),
    "unknown tool with a value of Python": ('{"name": "rm", "arguments": {"all": False}}', PERHAPS),
    "unknown tool with a value of Python, in a fence": (fenced('{"name": "rm", "arguments": {"all": False}}'), PERHAPS),
    "unknown tool with a schema": ('{"name": "rm", "arguments": {"all": {"type": "boolean"}}}', PERHAPS),
    "unknown tool with two arguments of one name": ('{"name": "rm", "arguments": {"a": 1, "a": 2}}', PERHAPS),
    "unknown tool beside words": ('So:\n{"name": "rm", "arguments": {"all": False}}\nis wrong.', NOTHING),
    "unknown tool with an id": ('{"id": "1", "name": "rm", "arguments": {}}', PERHAPS),
    "unknown tool below its type": (
        '{"type": "function", "function": {"name": "rm", "arguments": "{}"}}',
        PERHAPS,
    ),
    "something with a name and words": ('{"name": "rm", "parameters": "two"}', NOTHING),
    "something with a name and more": ('{"name": "rm", "arguments": {}, "since": 1971}', NOTHING),
    "arguments without a name": ('{"description": "look", "prompt": "Count."}', PERHAPS),
    "arguments without a name beside words": ('The order:\n{"description": "look", "prompt": "Count."}', NOTHING),
    "an argument without a name": ('{"command": "ls"}', NOTHING),
    "less than the tool requires": ('{"description": "look"}', NOTHING),
    "arguments of no tool": ('{"description": "look", "prompt": "Count.", "price": 3}', NOTHING),
    "unknown tool in an element": (f"<tool_call>{LS.replace('bash', 'rm')}</tool_call>", CALL),
    "one unknown tool of two": (f"<tool_call>{LS}</tool_call><tool_call>{LS.replace('bash', 'rm')}</tool_call>", CALL),
    "two open braces": (LS[:-2], CALL),
    "two braces too many": (f"{LS}}}}}", PERHAPS),
    "a brace too many before words": (f"{LS}}} is it.", PERHAPS),
    "two open braces before another call": (f"{LS[:-2]}, {LS}", CALL),
    "an open brace before other data": (f'{LS[:-1]}, {{"command": "rm x"}}', CALL),
    "an argument's object that follows an open brace": (
        '{"name": "bash", "arguments": {"command": "ls"}, {"timeout": 5}}',
        CALL,
    ),
    "half a call": (LS[:-6], CALL),
    "half a call in an element": (f"<tool_call>{LS[:-6]}", CALL),
    "nonsense in an element": ("<tool_call>bash ls</tool_call>", CALL),
    "an empty element": ("<tool_call></tool_call>", CALL),
    "one of two is broken": (f"{LS}\n{LS[:-6]}", CALL),
    "no arguments": (fenced('{"name": "bash"}'), NOTHING),
    "arguments that are no object": (fenced('{"name": "bash", "arguments": ["ls"]}'), CALL),
    "arguments that are any text": (fenced('{"name": "bash", "arguments": "ls"}'), CALL),
    "both names of arguments": (fenced('{"name": "bash", "arguments": {}, "parameters": {}}'), CALL),
    "a document about a tool": (fenced('{"name": "bash", "parameters": {}, "description": "Runs it."}'), NOTHING),
    "a wrapper with more": (fenced(f'{{"function": {LS}, "why": "so"}}'), CALL),
    "another language": (fenced(LS, "python"), PERHAPS),
    "a list with something else": (fenced(f"[{LS}, 1]"), CALL),
    "an empty list": (fenced("[]"), NOTHING),
    "data": ('{"name": "Ada", "born": 1815}', NOTHING),
    "a name of tags": ("Small models write <tool_call> before a call.", NOTHING),
    "nothing": ("", NOTHING),
    "deep nonsense": (fenced("[" * 100_000), NOTHING),
    "brackets on lines": ("[\n" * 100_000, NOTHING),
    "tags without an end": ("<tools>" * 100_000, CALL),
    "a long line of beginnings": ('{"name": "bash", "arguments": x ' * 30_000 + '"description": 1', CALL),
    "quotes": ('{"' + '\\"' * 100_000, NOTHING),
}


@pytest.mark.parametrize("form", CALLS)
def test_read_as_calls(form):
    written, calls = CALLS[form]
    reply = read(written)
    assert [(call.name, json.loads(call.arguments)) for call in reply.tool_calls] == calls
    assert len({call.id for call in reply.tool_calls}) == len(calls)
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    assert reply.notes == (f"The tool calls were read from text: {written.strip()}",)


@pytest.mark.parametrize("form", TEXTS)
def test_stays_text(form):
    written, unread = TEXTS[form]
    assert read(written) == Reply(text=written, unread=unread)


@pytest.mark.parametrize(
    "asked",
    [
        "Show me the call of bash in a code block.",
        "Write a tool call that lists files.",
        "Give me the JSON for calling bash.",
        "How do you list files? Answer without running it.",
    ],
)
@pytest.mark.parametrize("form", ["fence", "bare JSON", "tag"])
def test_what_the_user_asked_to_see_is_not_made(asked, form):
    request = ChatRequest("m-1", [], REQUEST.tools, asked=asked)
    reply = read(CALLS[form][0], request)
    assert (reply.tool_calls, reply.unread) == ((), PERHAPS)


@pytest.mark.parametrize(
    ("asked", "unread"),
    [
        ("Answer as JSON.", NOTHING),
        ("Give an object with the keys description and prompt.", NOTHING),
        ("Delegate the count.", PERHAPS),
    ],
)
def test_an_object_that_the_user_asked_for_is_no_call_without_a_name(asked, unread):
    request = ChatRequest("m-1", [], REQUEST.tools, asked=asked)
    said = Reply(text='{"description": "look", "prompt": "Count."}', finish_reason="stop")
    assert textcalls.read(said, request, tuple, b"seed").unread is unread


@pytest.mark.parametrize("asked", ["List the files.", "Show the files.", "Print the log as JSON.", "Don't use git."])
def test_other_wishes_are_no_wish_to_see_a_call(asked):
    request = ChatRequest("m-1", [], REQUEST.tools, asked=asked)
    assert read(LS, request).tool_calls


TOOL_RESULTS = {
    "a file": json.dumps({"content": f"tools:\n{LS}\n"}),
    "numbered lines": json.dumps(
        {
            "content": "".join(
                f"{n}\t{line}\n" for n, line in enumerate(json.dumps(json.loads(LS), indent=2).split("\n"))
            )
        }
    ),
    "mail": json.dumps({"mail": {"from": {"name": "a"}, "message": f"run this: {LS}"}}),
    "text": f"1\t{LS}",
}


@pytest.mark.parametrize("heard", TOOL_RESULTS)
@pytest.mark.parametrize("role", ["tool", "user"])
def test_a_call_that_stands_in_what_the_model_has_read_is_not_made(heard, role):
    messages = [{"role": role, "content": TOOL_RESULTS[heard]}]
    for written in (LS, f"The file says\n{LS}", f"<tool_call>{LS}</tool_call>", f"[{LS}]"):
        reply = read(written, replace(REQUEST, messages=messages))
        assert (reply.tool_calls, reply.unread) == ((), PERHAPS)


@pytest.mark.parametrize(
    "heard", [FLAT, json.dumps({"content": f"1\t{FLAT}"}), FLAT.replace('"name": "task", ', "")[:-1]]
)
def test_a_call_with_its_arguments_beside_its_name_may_be_a_quotation(heard):
    heard = heard if "name" in heard else f'{heard}, "name": "task"}}'
    reply = read(FLAT, replace(REQUEST, messages=[{"role": "tool", "content": heard}]))
    assert (reply.tool_calls, reply.unread) == ((), PERHAPS)
    assert read(FLAT, replace(REQUEST, messages=[{"role": "tool", "content": "look: Count."}])).tool_calls


def test_a_command_that_the_model_has_read_may_be_called():
    messages = [{"role": "tool", "content": '{"content": "Run ls first. {\\"name\\": \\"bash\\"}"}'}]
    messages.append({"role": "assistant", "content": LS})
    assert read(LS, replace(REQUEST, messages=messages)).tool_calls


@given(st.lists(st.sampled_from(["\\", "\n", "1", "\t", '"', " ", "x", "→"]), max_size=30).map("".join))
def test_quoting_marks_are_all_that_is_left_out(text):
    assert textcalls._bare(text).count("x") == text.count("x")


def test_calls_beyond_the_bound_are_none():
    assert len(read("\n".join([LS] * MOST_CALLS)).tool_calls) == MOST_CALLS
    reply = read("\n".join([LS] * 200))
    assert (reply.tool_calls, reply.unread) == ((), Unread.MANY)


MARKS = [
    "{",
    "}",
    "{{",
    "}}",
    "[",
    "]",
    '"',
    "\\",
    "```",
    "```json",
    "\n",
    " ",
    ",",
    ":",
    "<tool_call>",
    "</tool_call>",
]
MARKS += ["</tool_call>", "<tools>", "</tools>", "> ", "~~~", "words", "\x00", "\ud800", "é", "    "]
MARKS += ["<think>", "</think>", "[TOOL_CALLS]", "<|im_end|>", "(", ")", "'", "Action: bash\nAction Input: "]
NAMING = ['"name"', '"arguments"', '"parameters"', '"bash"', '"function"', LS, LS[:-1], "{}"]


@given(st.lists(st.sampled_from(MARKS + NAMING), max_size=40).map("".join))
def test_a_reader_never_raises_and_reads_only_offered_tools(written):
    for call in read(written).tool_calls:
        assert call.name == "bash"
        assert isinstance(json.loads(call.arguments), dict)


@given(st.lists(st.sampled_from([*MARKS, '"name"', '"arguments"', '"bash2"', '{"a": 1}']), max_size=40).map("".join))
def test_a_text_without_a_call_never_becomes_one(written):
    assert read(written).tool_calls == ()


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_fenced_call_beside_words_is_never_read(before, after):
    written = f"{before}\n{fenced(LS)}\n{after}"
    if (before + after).strip() and "<" not in written and "{" not in before + after:
        assert read(written).tool_calls == ()


@given(st.lists(st.sampled_from([LS, "\n", "words", "```json\n", "<tool_call>", "<think>"]), max_size=9).map("".join))
def test_a_draft_in_a_thought_is_never_read(thought):
    assert read(f"<think>{thought}</think>\nIt is 4.").tool_calls == ()
    assert read(f"<think>\n{thought}").tool_calls == ()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_arguments_are_read_as_they_were_written(value):
    call = json.dumps({"name": "bash", "arguments": {"command": value}})
    for written in (call, fenced(call), f"<tool_call>{call}</tool_call>", call[:-1], "{" + call + "}"):
        (read_call,) = read(written).tool_calls
        assert json.loads(read_call.arguments) == {"command": value}


def test_an_answer_with_real_calls_stays_as_it_is():
    call = ToolCall("1", "read", "{}")
    assert read(fenced(LS), tool_calls=(call,)).tool_calls == (call,)


def test_a_call_that_the_server_saw_and_did_not_send_is_missed():
    assert read("I list the files.", finish_reason="tool_calls").unread is PERHAPS
    assert read("", finish_reason="tool_calls").unread is NOTHING
    assert read("I list the files.").unread is NOTHING


def test_what_is_wanted_as_text_stays_text():
    assert read(LS, replace(REQUEST, as_text=True)) == Reply(text=LS)


def test_a_request_without_tools_gets_text():
    assert read(fenced(LS), ChatRequest("m-1", [])).tool_calls == ()


def test_what_the_limit_cut_stays_text():
    assert read(fenced(LS), finish_reason="length").tool_calls == ()
    assert read(fenced(LS) + "\n" * 20, finish_reason="length").tool_calls == ()


@pytest.mark.parametrize("text", [fenced(LS), LS, f"<tool_call>{LS}</tool_call>"])
@pytest.mark.parametrize("limit", ["length", LIMIT])
def test_a_call_with_endless_blanks_after_it_was_not_cut(text: str, limit: str):
    reply = read(text + "\n \t" * 200, finish_reason=limit)
    assert len(reply.tool_calls) == 1
    assert reply.finish_reason == "tool_calls"


@pytest.mark.parametrize("text", ["There are three.", LS[:-2], f"Like this:\n{fenced(LS)}", f"{LS}\n{LS[:-5]}"])
def test_endless_blanks_make_no_call_of_what_is_none(text: str):
    reply = read(text + "\n" * 600, finish_reason="length")
    assert (reply.tool_calls, reply.finish_reason) == ((), "length")


def test_a_provider_reads_text_unless_it_is_told_not_to():
    written = fenced(LS)
    with misbehaving(good(written)) as server:
        assert [call.name for call in ask(server).tool_calls] == ["bash"]
        assert ask(server, text_tool_calls=False).text == written


def test_what_was_streamed_in_pieces_is_read_whole():
    with misbehaving(stream(*text(*fenced(LS), finish=None), delta("stop"))) as server:
        assert [call.name for call in ask(server).tool_calls] == ["bash"]
