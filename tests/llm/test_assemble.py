"""Answers from chunks, in every dialect that servers speak."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentmesh.llm.assemble import Assembly, ErrorInStream
from agentmesh.llm.port import Reply, ToolCall, Usage, Watch
from agentmesh.llm.toolcalls import OpenCall
from agentmesh.llm.usage import estimate, read_cost, read_usage
from tests.llm.asking import Log
from tests.llm.misbehaving import delta

LS = '{"command": "ls"}'
PWD = '{"command": "pwd"}'


def assembled(*chunks, watch: Watch | None = None) -> Reply:
    assembly = Assembly(watch or Watch())
    for chunk in chunks:
        assembly.add(chunk)
    assembly.settle()
    return assembly.reply(assembly.usage or Usage(), assembly.cost_usd, tuple, b"seed")


def calls(*fragments, one_chunk: bool = False) -> list[tuple[str, str]]:
    """Return name and arguments of the calls that come of fragments."""
    groups = [list(fragments)] if one_chunk else [[fragment] for fragment in fragments]
    reply = assembled(*(delta(tool_calls=group) for group in groups), delta("tool_calls"))
    assert len({call.id for call in reply.tool_calls}) == len(reply.tool_calls)
    assert all(call.id for call in reply.tool_calls)
    return [(call.name, call.arguments) for call in reply.tool_calls]


def part(name=None, arguments=None, **fields):
    return {
        **fields,
        "function": {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None},
    }


TWO = [("bash", LS), ("read", PWD)]
LS_1, LS_2, PWD_1, PWD_2 = LS[:9], LS[9:], PWD[:9], PWD[9:]
A, B = {"id": "a"}, {"id": "b"}
I0, I1 = {"index": 0}, {"index": 1}
STREAMED = {
    "index, id and name once": [
        part("bash", "", **I0, **A),
        part(None, LS_1, **I0),
        part(None, LS_2, **I0),
        part("read", "", **I1, **B),
        part(None, PWD_1, **I1),
        part(None, PWD_2, **I1),
    ],
    "interleaved by index": [
        part("bash", LS_1, **I0, **A),
        part("read", PWD_1, **I1, **B),
        part(None, LS_2, **I0),
        part(None, PWD_2, **I1),
    ],
    "index as text": [
        part("bash", LS_1, index="0", **A),
        part("read", PWD_1, index="1", **B),
        part(None, LS_2, index="0"),
        part(None, PWD_2, index="1"),
    ],
    "index with a fraction of 0": [
        part("bash", LS_1, index=0.0, **A),
        part("read", PWD_1, index=1.0, **B),
        part(None, LS_2, index=0.0),
        part(None, PWD_2, index=1.0),
    ],
    "no index, id once": [part("bash", LS_1, **A), part(None, LS_2), part("read", PWD_1, **B), part(None, PWD_2)],
    "no index, id repeated": [
        part("bash", LS_1, **A),
        part(None, LS_2, **A),
        part("read", PWD_1, **B),
        part(None, PWD_2, **B),
    ],
    "no index, id and name repeated": [
        part("bash", LS_1, **A),
        part("bash", LS_2, **A),
        part("read", PWD_1, **B),
        part("read", PWD_2, **B),
    ],
    "index, same id for all": [part("bash", LS, **I0, id="call_0"), part("read", PWD, **I1, id="call_0")],
    "index, empty ids": [part("bash", LS, **I0, id=""), part("read", PWD, **I1, id="")],
    "index always 0": [part("bash", LS, **I0, **A), part("read", PWD, **I0, **B)],
    "index always 0, no ids": [part("bash", LS, **I0), part("read", PWD, **I0)],
    "index always 0, same id": [part("bash", LS, **I0, **A), part("read", PWD, **I0, **A)],
    "neither index nor id, whole": [part("bash", LS), part("read", PWD)],
    "neither index nor id, in pieces": [part("bash", LS_1), part(None, LS_2), part("read", PWD_1), part(None, PWD_2)],
    "arguments as objects": [part("bash", json.loads(LS), **I0, **A), part("read", json.loads(PWD), **I1, **B)],
    "flat entries": [{"name": "bash", "arguments": LS, **A}, {"name": "read", "arguments": PWD, **B}],
    "name in pieces": [
        part("ba", None, **I0, **A),
        part("sh", None, **I0),
        part(None, LS, **I0),
        part("read", PWD, **I1, **B),
    ],
    "empty objects first": [
        part("bash", "{}", **I0, **A),
        part(None, LS_1, **I0),
        part(None, LS_2, **I0),
        part("read", {}, **I1, **B),
        part(None, PWD, **I1),
    ],
    "null fields": [
        part("bash", "", **I0, **A),
        {"index": 0, "id": None, "function": {"name": None, "arguments": LS}},
        part("read", PWD, **I1, **B),
    ],
}


@pytest.mark.parametrize("fragments", STREAMED.values(), ids=STREAMED.keys())
def test_two_tool_calls_come_out_whole(fragments):
    assert calls(*fragments) == TWO


def test_two_tool_calls_in_one_chunk():
    assert calls(part("bash", LS, index=0, id="a"), part("read", PWD, index=1, id="b"), one_chunk=True) == TWO


def test_calls_without_arguments_stay_apart():
    fragments = [part("bash", "", index=0, id="a"), part("bash", "", index=1, id="b")]
    assert calls(*fragments) == [("bash", ""), ("bash", "")]
    assert calls(part("list_agents"), part("list_agents")) == [("list_agents", ""), ("list_agents", "")]


def test_an_empty_object_is_arguments_where_no_others_follow():
    fragments = [part("list_agents", "{}", **I0, **A), part(None, "", **I0), part("bash", "{}", **I1, **B)]
    assert calls(*fragments, part(None, LS, **I1)) == [("list_agents", "{}"), ("bash", LS)]


def test_same_tool_twice_without_index_and_id():
    assert calls(part("bash", LS), part("bash", PWD)) == [("bash", LS), ("bash", PWD)]


def test_call_without_name_and_arguments_is_none():
    assert calls({"index": 0, "id": "a", "function": {}}) == []


@pytest.mark.parametrize(("depth", "is_kept"), [(150, True), (450, False), (900, False)])
def test_what_nests_too_deep_is_not_kept_with_a_call(depth, is_kept):
    extra: dict[str, Any] = {}
    for _ in range(depth):
        extra = {"a": extra}
    (call,) = assembled(delta(tool_calls=[part("bash", LS, **I0, **A, extra_content=extra)])).tool_calls
    assert (call.name, call.extra) == ("bash", extra if is_kept else None)


def test_a_long_call_whose_pieces_all_have_id_and_name_is_joined_a_few_times(monkeypatch):
    arguments = '{"command": "' + "x" * 4000 + '"}'
    joined: list[int] = []

    def join(call: OpenCall) -> str:
        joined.append(call.size)
        return "".join(call.pieces)

    monkeypatch.setattr(OpenCall, "arguments", property(join))
    pieces = [arguments[at : at + 4] for at in range(0, len(arguments), 4)]
    assert calls(*(part("bash", piece, index=0, id="c1") for piece in pieces)) == [("bash", arguments)]
    assert len(joined) < 10


@pytest.mark.parametrize("number", [I0, {}], ids=["index", "no index"])
def test_a_call_that_is_sent_twice_is_one_call(number):
    whole = part("bash", LS, **number, **A)
    assert calls(whole, whole) == calls(part("bash", LS_1, **number, **A), part(None, LS_2, **number), whole)
    assert calls(whole, whole, whole) == [("bash", LS)]
    assert calls(part("bash", "{}", **number, **A), whole) == [("bash", LS)], "an announcement, then the call"
    assert calls(part("list_agents", "{}", **number, **A), part("list_agents", "{}", **number, **A)) == [
        ("list_agents", "{}")
    ]


@pytest.mark.parametrize("other", [part("bash", PWD, **I0, **A), part("bash", LS, **I0, **B), part("bash", LS, **I0)])
def test_the_same_tool_with_other_arguments_another_id_or_none_is_another_call(other):
    assert len(calls(part("bash", LS, **I0, **A), other)) == 2


@pytest.mark.parametrize("odd", [None, 3, "x", [], [None, 3, "x"], {"a": 1}], ids=repr)
def test_odd_shapes_are_no_crash(odd):
    assembled({"choices": odd}, delta(tool_calls=odd, function_call=odd), {"choices": [{"delta": odd}]}, {"usage": odd})
    assembled({"choices": [{"message": odd}], "model": odd, "timings": odd, "x_groq": odd})


def test_legacy_function_call():
    reply = assembled(
        delta(function_call={"name": "bash", "arguments": LS[:9]}),
        delta(function_call={"arguments": LS[9:]}),
        delta("function_call"),
    )
    assert (reply.tool_calls[0].name, reply.tool_calls[0].arguments, reply.finish_reason) == ("bash", LS, "tool_calls")


NATIVE = {"name": "bash", "arguments": LS}


@pytest.mark.parametrize(
    "chunks",
    [
        [
            {
                "choices": [
                    {
                        "message": {
                            "content": None,
                            "function_call": NATIVE,
                            "tool_calls": [{"id": "a", "function": NATIVE}],
                        }
                    }
                ]
            }
        ],
        [delta(function_call=NATIVE, tool_calls=[{"index": 0, "id": "a", "function": NATIVE}])],
        [
            delta(function_call={"name": "bash", "arguments": half}, tool_calls=[part("bash", half, index=0, id="a")])
            for half in (LS_1, LS_2)
        ],
        [delta(function_call=NATIVE), delta(tool_calls=[{"index": 0, "id": "a", "function": NATIVE}])],
        [delta(tool_calls=[{"index": 0, "id": "a", "function": NATIVE}]), delta(function_call=NATIVE)],
        [delta(function_call=NATIVE, tool_calls=[])],
        [delta(function_call=NATIVE, tool_calls=None), delta(tool_calls=[part()])],
    ],
    ids=["whole", "one chunk", "pieces", "legacy first", "legacy last", "no calls", "calls that say nothing"],
)
def test_a_call_in_both_fields_is_one_call(chunks):
    assert [(call.name, call.arguments) for call in assembled(*chunks).tool_calls] == [("bash", LS)]


@pytest.mark.parametrize(
    ("said", "meant"),
    [("stop", "stop"), ("length", "length"), ("STOP", "stop"), ("end_turn", "stop"), ("max_tokens", "length")],
)
def test_finish_reasons(said, meant):
    assert assembled(delta(content="a"), delta(said)).finish_reason == meant


def test_tool_calls_with_finish_reason_stop():
    assert assembled(delta("stop", tool_calls=[part("bash", LS)])).finish_reason == "tool_calls"


def test_calls_cut_off_by_the_length_say_so():
    assert assembled(delta("length", tool_calls=[part("bash", LS[:9])])).finish_reason == "length"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_with_its_field(field):
    log = Log()
    reply = assembled(delta(**{field: "Let me "}), delta(**{field: "see"}), delta(content="Yes"), watch=log.watch())
    assert (reply.reasoning, reply.reasoning_field, reply.text) == ("Let me see", field, "Yes")
    assert log.reasoning == ["Let me ", "see"]


def test_reasoning_sent_under_two_names_is_kept_once():
    assert assembled(delta(reasoning="a", reasoning_content="a")).reasoning == "a"


def test_content_as_parts():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    reply = assembled(delta(content=[thinking, {"type": "text", "text": "Yes"}, "!"]))
    assert (reply.reasoning, reply.text) == ("Hm", "Yes!")


def test_refusal_is_text_and_noted():
    reply = assembled(delta(refusal="I will not."), delta("stop"))
    assert reply.text == "I will not."
    assert reply.refused
    assert "refused" in reply.notes[0]


def test_only_the_first_choice_counts():
    assert (
        assembled({"choices": [{"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}}]}).text
        == "a"
    )


def choice(index: Any, said: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": {"content": said}, "finish_reason": finish}]}


@pytest.mark.parametrize("index", [0, "0", 0.0, None, "", 1, "1", 1.0, 7], ids=repr)
def test_the_only_choice_counts_whatever_its_number(index):
    log = Log()
    reply = assembled(choice(index, "a"), choice(index, "b", "length"), watch=log.watch())
    assert (reply.text, reply.finish_reason, "".join(log.text)) == ("ab", "length", "ab")


@pytest.mark.parametrize("first", [0, "0", 0.0], ids=repr)
def test_a_choice_that_begins_before_the_first_one_is_left_out(first):
    assert assembled(choice(1, "b", "stop"), choice(first, "a"), choice(1, "b"), choice(first, "a")).text == "aa"


def test_without_a_first_choice_the_lowest_number_counts():
    chunks = [choice(2, "c"), choice("1", "b"), choice(True, "d"), choice("x", "d"), choice(1.5, "d"), choice(1, "b")]
    assert assembled(*chunks).text == "bb"


def test_a_choice_that_was_taken_because_no_first_one_came_is_not_mixed_with_it():
    told = Log()
    pieces = [choice(n, "abc"[n]) for n in (2, 1, 2, 1, 2, 1, 2, 1, 2)]
    reply = assembled(*pieces, choice(1, "b"), choice(0, "a"), delta(content="d"), choice(1, "b"), watch=told.watch())
    assert reply.text == "bbbbbb"


def test_an_error_in_the_only_choice_is_one_whatever_its_number():
    with pytest.raises(ErrorInStream):
        assembled({"choices": [{"index": 1, "error": "down"}]})


def test_whole_message_after_its_deltas_is_not_doubled():
    assert (
        assembled(delta(content="a"), {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}).text == "a"
    )


def test_error_in_place_of_a_chunk():
    with pytest.raises(ErrorInStream) as caught:
        assembled({"error": {"code": 502}})
    assert caught.value.error == {"code": 502}


def test_surrogate_pair_in_two_chunks_is_one_character():
    log = Log()
    reply = assembled(delta(content="a\ud83d"), delta(content="\ude00b\x00"), watch=log.watch())
    assert reply.text == "a😀b\ufffd"
    assert "".join(log.text).isprintable()


def test_made_up_ids_are_nine_letters_or_digits():
    made = assembled(delta(tool_calls=[part("bash", LS)])).tool_calls[0]
    assert made == ToolCall(made.id, "bash", LS)
    assert len(made.id) == 9
    assert made.id.isalnum()


@pytest.mark.parametrize("kept", ["call_" + "x" * 35, "functions.bash:0", "toolu_01-A"])
def test_an_id_that_every_server_takes_is_kept(kept):
    assert assembled(delta(tool_calls=[part("bash", LS, id=kept)])).tool_calls[0].id == kept


@pytest.mark.parametrize("odd", ["x" * 41, "chatcmpl-tool-" + "0" * 32, "a b", "a\0b", "é", "<|id|>"])
def test_an_id_that_another_server_would_refuse_is_exchanged(odd):
    """The conversation may go on with another model, and every server gets all of it."""
    reply = assembled(delta(tool_calls=[part("bash", LS, index=0, id=odd), part("bash", PWD, index=1, id=f"{odd}1")]))
    first, second = (call.id for call in reply.tool_calls)
    assert len(first) == len(second) == 9
    assert first.isalnum()
    assert first != second
    assert reply.notes == ()


def test_a_finish_reason_and_a_model_of_any_length_are_one_short_line():
    reply = assembled(delta("z\n\0" * 10_000, content="x") | {"model": "m\n" * 10_000})
    assert (len(reply.finish_reason), len(reply.model)) == (80, 200)
    assert (reply.finish_reason + reply.model).isprintable()


def test_tools_are_told_when_they_begin():
    log = Log()
    assembled(
        delta(tool_calls=[part("bash", "", index=0, id="a")]),
        delta(tool_calls=[part(None, LS, index=0)]),
        watch=log.watch(),
    )
    assert log.tools == ["bash"]


PLAIN = {"prompt_tokens": 9, "completion_tokens": 2}
CACHES = {"cache_read_input_tokens": 100, "cache_creation_input_tokens": 16}
ANTHROPIC = {"input_tokens": 9, "output_tokens": 2, **CACHES}
USAGES = {
    "openai": ({"usage": PLAIN}, Usage(9, 2)),
    "cached": ({"usage": PLAIN | {"prompt_tokens_details": {"cached_tokens": 4}}}, Usage(9, 2, 4)),
    "odd cache": ({"usage": PLAIN | {"prompt_tokens_details": {"cached_tokens": 99}}}, Usage(9, 2, 9)),
    "deepseek": ({"usage": PLAIN | {"prompt_cache_hit_tokens": 4}}, Usage(9, 2, 4)),
    "anthropic": ({"usage": ANTHROPIC}, Usage(125, 2, 100, 16)),
    "anthropic's count under other names, with a total": (
        {"usage": ANTHROPIC | {"input_tokens": 125, "total_tokens": 127}},
        Usage(125, 2, 100, 16),
    ),
    "anthropic's count repeated beside details": (
        {"usage": ANTHROPIC | {"input_tokens": 125, "input_tokens_details": {"cached_tokens": 100}}},
        Usage(125, 2, 100, 16),
    ),
    "anthropic, all from the cache": ({"usage": ANTHROPIC | {"input_tokens": 0}}, Usage(116, 2, 100, 16)),
    "anthropic's cache beside the prompt": ({"usage": PLAIN | CACHES}, Usage(125, 2, 100, 16)),
    "anthropic's cache in the prompt": ({"usage": CACHES | {"prompt_tokens": 125}}, Usage(125, 0, 100, 16)),
    "other names, cached": (
        {"usage": {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}},
        Usage(9, 2, 4),
    ),
    "other names": ({"usage": {"input_tokens": 9, "output_tokens": 2}}, Usage(9, 2)),
    "reasoning within": (
        {"usage": PLAIN | {"total_tokens": 11, "completion_tokens_details": {"reasoning_tokens": 1}}},
        Usage(9, 2),
    ),
    "reasoning beside": (
        {"usage": PLAIN | {"total_tokens": 16, "completion_tokens_details": {"reasoning_tokens": 5}}},
        Usage(9, 7),
    ),
    "groq": ({"x_groq": {"usage": PLAIN}}, Usage(9, 2)),
    "llama.cpp": ({"timings": {"prompt_n": 3, "cache_n": 6, "predicted_n": 2}}, Usage(9, 2, 6)),
    "null": ({"usage": None}, None),
    "empty": ({"usage": {}}, None),
    "quoted": ({"usage": {"prompt_tokens": "9", "completion_tokens": "2"}}, Usage(9, 2)),
    "quoted, below zero": ({"usage": {"prompt_tokens": "9", "completion_tokens": "-2"}}, None),
    "words": ({"usage": {"prompt_tokens": "nine", "completion_tokens": True}}, None),
    "a total alone": ({"usage": {"prompt_tokens": 9, "total_tokens": 11}}, Usage(9, 2)),
    "no output and a total": ({"usage": {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 11}}, Usage(9)),
    "odd": ({"usage": {"prompt_tokens": "9", "completion_tokens": -2}}, None),
    "below zero": ({"usage": PLAIN | {"completion_tokens": -2}}, None),
    "below zero, unsigned": ({"usage": PLAIN | {"completion_tokens": 2**32 - 2}}, None),
    "more than a bigint": ({"usage": {"prompt_tokens": 10**20, "completion_tokens": 10**20}}, None),
    "infinite": ({"usage": PLAIN | {"prompt_tokens": float("inf")}}, None),
    "no number": ({"usage": PLAIN | {"prompt_tokens": float("nan")}}, None),
    "a cache below zero": ({"usage": PLAIN | {"prompt_cache_hit_tokens": 2**64 - 1}}, Usage(9, 2)),
    "llama.cpp below zero": ({"timings": {"prompt_n": -1, "cache_n": 6, "predicted_n": 2}}, None),
}


@pytest.mark.parametrize(("chunk", "usage"), USAGES.values(), ids=USAGES.keys())
def test_usage_by_every_name(chunk, usage):
    assert read_usage(chunk) == usage


@pytest.mark.parametrize(
    ("cost", "read"),
    [
        (0.25, 0.25),
        (0, 0.0),
        (-1, None),
        (1e9, None),
        (float("inf"), None),
        (float("nan"), None),
        (True, None),
        ("0.125", 0.125),
        ("1e99", None),
        ("one", None),
    ],
)
def test_a_cost_that_no_call_can_have_is_none(cost, read):
    assert read_cost({"usage": PLAIN | {"cost": cost}}) == read


@pytest.mark.parametrize(
    ("reported", "read"),
    [
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 3.5}}, 3.5),
        ({"cost": 0.25, "is_byok": True, "cost_details": {"upstream_inference_cost": 3.5}}, 3.75),
        ({"is_byok": True, "cost_details": {"upstream_inference_cost": 3.5}}, 3.5),
        ({"cost": 0.25, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, None),
        ({"cost": 0.25, "is_byok": True, "cost_details": None}, None),
        ({"cost": 0.25, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.25}}, 0.25),
        ({"cost": 0.25, "cost_details": {"upstream_inference_cost": 0.25}}, 0.25),
    ],
)
def test_a_call_with_a_key_of_the_callers_own_costs_what_its_provider_charges_too(reported, read):
    assert read_cost({"usage": PLAIN | reported}) == read


def test_running_total_in_every_chunk_counts_once():
    chunks = [delta(content="a") | {"usage": {"prompt_tokens": 9, "completion_tokens": n}} for n in (1, 2, 3)]
    assert assembled(*chunks).usage == Usage(9, 3)


def test_estimate_takes_four_characters_for_a_token():
    assert estimate(40, 9) == Usage(10, 3, estimated=True, input_estimated=True)


def test_of_chunks_that_came_together_the_watch_is_told_once_and_in_order():
    told: list[str] = []
    assembly = Assembly(Watch(text=told.append, reasoning=lambda words: told.append(f"({words})"), tool=told.append))
    for chunk in (
        delta(content="Hel"),
        delta(content="lo"),
        delta(reasoning="hm"),
        delta(content="a"),
        delta(tool_calls=[part("bash", LS, **I0)]),
        delta(content="b"),
    ):
        assembly.gather(chunk)
    assert told == ["Hello", "(hm)", "a", "bash"]
    assembly.tell()
    assembly.tell()
    assert told == ["Hello", "(hm)", "a", "bash", "b"]
