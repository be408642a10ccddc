"""Tools and forced replies of hosted models, through the real client libraries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')

from quire.engine.conversation import Message, Offered, ToolUse
from quire.engine.ports import ModelCall, ModelReply
from quire.errors import ModelFailed
from quire.models import providers
from quire.models.choose import ModelSettings
from quire.models.messages import Conversation, _names_on_the_way
from quire.models.open import open_model
from quire.models.retry import Retrying
from quire.values import Value

if TYPE_CHECKING:
    from tests.models.conftest import Exchange, Stub

WEATHER = Offered(
    "weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
WRITE = Offered("rye/file-system/write", "", {"properties": {"path": {"type": "string"}}})
ASKED = (Message("user", "Is it warmer in Rome or in Oslo?"),)
SCHEMA: dict[str, Value] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "why": {"type": "string"}},
    "required": ["city"],
}


def calling(
    *tools: Offered, messages: tuple[Message, ...] = ASKED, schema: dict[str, Value] | None = None
) -> ModelCall:
    return ModelCall("Be brief.", messages, tools=tools, schema=schema)


async def at_once(seconds: float) -> None:
    pass


async def said(stub: Stub, call: ModelCall, spec: str = "") -> tuple[ModelReply, list[str]]:
    model = open_model(spec or stub.spec, ModelSettings(), {})
    assert isinstance(model, Retrying)
    pieces: list[str] = []
    reply = await Retrying(model._model, sleep=at_once).complete(call, pieces.append)
    assert "".join(pieces) == reply.text
    return reply, pieces


async def failed(stub: Stub, call: ModelCall) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        await said(stub, call)
    return caught.value


def sent(stub: Stub, key: str, number: int = -1) -> list[dict[str, object]]:
    value = stub.requests[number][key]
    assert isinstance(value, list)
    return value


async def test_several_calls_in_one_reply(stub: Stub) -> None:
    stub.behaviours = [
        stub.use(("a", "weather", '{"city": "Rome"}'), ("b", "weather", '{"city": "Oslo"}'), text="Let me look.")
    ]
    reply, pieces = await said(stub, calling(WEATHER))
    assert reply.uses == (ToolUse("a", "weather", {"city": "Rome"}), ToolUse("b", "weather", {"city": "Oslo"}))
    assert (pieces, reply.finish_reason) == (["Let me look."], "tool_call")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (9, 5)
    [tool] = sent(stub, "tools")
    function = tool["function"]
    assert isinstance(function, dict)
    assert (function["name"], function["description"]) == ("weather", "The weather in a city.")
    assert function["parameters"]["properties"] == {"city": {"type": "string"}}
    assert function["parameters"]["required"] == ["city"]
    assert stub.requests[0].get("tool_choice") in (None, "auto")


async def test_a_call_without_text_is_not_nothing(stub: Stub) -> None:
    stub.behaviours = [stub.use(("a", "weather", '{"city": "Rome"}'))]
    reply, pieces = await said(stub, calling(WEATHER))
    assert (reply.text, pieces, len(reply.uses)) == ("", [], 1)


async def test_the_conversation_goes_back_as_it_was(stub: Stub) -> None:
    stub.behaviours = [stub.say("Rome.")]
    uses = (ToolUse("a", "weather", {"city": "Rome"}), ToolUse("b", "weather", {"city": "Oslo", "big": 2**70}))
    messages = (
        *ASKED,
        Message("assistant", "", uses),
        Message("tool", "24 C", answers="a"),
        Message("tool", '{"error": "no such city"}', answers="b"),
        Message("user", "Well?"),
    )
    reply, _ = await said(stub, calling(WEATHER, messages=messages))
    assert reply.text == "Rome."
    system, user, assistant, first, second, last = sent(stub, "messages")
    assert (system["role"], user["role"], last) == ("system", "user", {"role": "user", "content": "Well?"})
    calls = assistant["tool_calls"]
    assert isinstance(calls, list)
    assert not assistant.get("content")
    assert [(one["id"], one["function"]["name"], json.loads(one["function"]["arguments"])) for one in calls] == [
        ("a", "weather", {"city": "Rome"}),
        ("b", "weather", {"city": "Oslo", "big": 2**70}),
    ]
    assert first == {"role": "tool", "tool_call_id": "a", "content": "24 C"}
    assert second == {"role": "tool", "tool_call_id": "b", "content": '{"error": "no such city"}'}


async def test_each_round_keeps_its_results(stub: Stub) -> None:
    stub.behaviours = [stub.say("Rome.")]
    rounds: list[Message] = []
    for id_ in "ab":
        rounds += [
            Message("assistant", "", (ToolUse(id_, "weather", {}),)),
            Message("tool", f"result {id_}", answers=id_),
        ]
    await said(stub, calling(WEATHER, messages=(*ASKED, *rounds)))
    assert [message["role"] for message in sent(stub, "messages")][2:] == ["assistant", "tool", "assistant", "tool"]


async def test_a_name_that_services_refuse_goes_by_another(stub: Stub) -> None:
    stub.behaviours = [stub.use(("a", "rye_file-system_write", '{"path": "x"}'), ("b", "unheard_of", ""))]
    messages = (*ASKED, Message("assistant", "", (ToolUse("z", "rye/bash", {}),)), Message("tool", "x", answers="z"))
    reply, _ = await said(stub, calling(WRITE, messages=messages))
    assert reply.uses == (ToolUse("a", "rye/file-system/write", {"path": "x"}), ToolUse("b", "unheard_of", {}))
    assert '"rye_bash"' in json.dumps(stub.requests[0])
    assert "rye/" not in json.dumps(stub.requests[0])


@pytest.mark.parametrize(
    ("names", "ways"),
    [
        (["a", "b-c_D9"], ["a", "b-c_D9"]),
        (["a.b", "a_b", "a/b"], ["a_b_2", "a_b", "a_b_3"]),
        (["x" * 80, "x" * 90], ["x" * 64, "x" * 62 + "_2"]),
        (["é", ""], ["_", "tool"]),
        (["a", "a"], ["a", "a"]),
    ],
)
def test_names_on_the_way(names: list[str], ways: list[str]) -> None:
    known = _names_on_the_way(names)
    assert [known[name] for name in names] == ways


@pytest.mark.parametrize(
    ("arguments", "finish", "says"),
    [
        ('{"city": Rome}', "tool_calls", "the arguments for the tool weather are not JSON: Expecting value"),
        ('["Rome"]', "tool_calls", "the arguments for the tool weather are not a JSON object"),
        ('{"city": NaN}', "tool_calls", "NaN is not a JSON value"),
        ('{"city": "Ro', "length", "the arguments for the tool weather are cut off by the token limit; they were: {"),
        ("", "length", "the arguments for the tool weather are cut off by the token limit"),
    ],
)
async def test_the_model_is_told_of_arguments_that_are_none(stub: Stub, arguments: str, finish: str, says: str) -> None:
    stub.behaviours = [stub.use(("a", "weather", arguments), finish=finish)]
    reply, _ = await said(stub, calling(WEATHER))
    (use,) = reply.uses
    assert (use.name, use.arguments, len(stub.requests)) == ("weather", {}, 1)
    assert says in use.problem


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("", {}),
        ("{}", {}),
        ('{"n": 1180591620717411303424}', {"n": 2**70}),
        ('{"t": "\\ud83d\\ude00 \\ud83d"}', {"t": "😀 \ufffd"}),
    ],
)
async def test_arguments_are_values_of_ours(stub: Stub, arguments: str, value: dict[str, Value]) -> None:
    stub.behaviours = [stub.use(("a", "weather", arguments))]
    reply, _ = await said(stub, calling(WEATHER))
    assert reply.uses == (ToolUse("a", "weather", value),)


async def test_every_call_has_an_id_of_its_own(stub: Stub) -> None:
    stub.behaviours = [stub.use(("0", "weather", "{}"), ("0", "weather", "{}"), (None, "weather", "{}"))]
    messages = (*ASKED, Message("assistant", "", (ToolUse("0", "weather", {}),)), Message("tool", "x", answers="0"))
    reply, _ = await said(stub, calling(WEATHER, messages=messages))
    ids = [use.id for use in reply.uses]
    assert ids[:2] == ["0_2", "0_3"]
    assert len({"0", *ids}) == 4
    assert all(ids)


async def test_arguments_without_end(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "MAX_REPLY_CHARACTERS", 50)
    stub.behaviours = [stub.use(("a", "weather", json.dumps({"city": "x" * 60})))]
    error = await failed(stub, calling(WEATHER))
    assert (error.kind, "longer than 50 characters" in error.message) == ("bad_reply", True)


async def test_a_connection_lost_in_a_call_is_tried_again(stub: Stub) -> None:
    def broken(exchange: Exchange) -> None:
        exchange.begin()
        function = {"name": "weather", "arguments": '{"ci'}
        exchange.event({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": function}]})
        exchange.drop()

    stub.behaviours = [broken, stub.use(("b", "weather", '{"city": "Rome"}'))]
    reply, _ = await said(stub, calling(WEATHER))
    assert (reply.uses, reply.delays) == ((ToolUse("b", "weather", {"city": "Rome"}),), (1.0,))


async def test_a_result_of_no_call_is_a_bug() -> None:
    with pytest.raises(KeyError):
        Conversation.of(calling(messages=(Message("tool", "x", answers="nobody"),))).messages()


FORCED = '{"city": "Rome"}'


async def test_a_schema_is_forced_by_the_service(stub: Stub) -> None:
    stub.behaviours = [stub.by_format(stub.say(FORCED), stub.say("Rome, I think."))]
    reply, _ = await said(stub, calling(schema=SCHEMA))
    assert reply.text == FORCED
    wanted = stub.requests[0]["response_format"]
    assert isinstance(wanted, dict)
    assert wanted["type"] == "json_schema"
    assert wanted["json_schema"]["schema"]["required"] == ["city"]
    assert not wanted["json_schema"].get("strict")


async def test_a_schema_beside_tools(stub: Stub) -> None:
    stub.behaviours = [stub.use(("a", "weather", '{"city": "Rome"}'))]
    reply, _ = await said(stub, calling(WEATHER, schema=SCHEMA))
    assert len(reply.uses) == 1
    assert {"tools", "response_format"} <= stub.requests[0].keys()


@pytest.mark.parametrize(
    ("model", "schema"),
    [("qwen/some", SCHEMA), ("stub-model", {"type": "array", "items": SCHEMA}), ("stub-model", {"anyOf": [SCHEMA]})],
)
async def test_where_nothing_can_be_forced_the_model_just_answers(
    stub: Stub, model: str, schema: dict[str, Value]
) -> None:
    stub.behaviours = [stub.by_format(stub.refuse(400), stub.say("Rome, I think."))]
    reply, _ = await said(stub, calling(schema=schema), f"{stub.url}#{model}")
    assert (reply.text, len(stub.requests)) == ("Rome, I think.", 1)


@pytest.mark.parametrize("status", [400, 422])
async def test_a_service_that_refuses_the_schema_is_asked_without(stub: Stub, status: int) -> None:
    stub.behaviours = [stub.by_format(stub.refuse(status), stub.say("Rome, I think."))]
    model = open_model(stub.spec, ModelSettings(), {})
    for asked in (2, 3):
        reply = await model.complete(calling(schema=SCHEMA), lambda piece: None)
        assert (reply.text, reply.delays, len(stub.requests)) == ("Rome, I think.", (), asked)
    await model.complete(calling(schema={"type": "object"}), lambda piece: None)
    assert len(stub.requests) == 5, "another schema may be fine"


@pytest.mark.parametrize(
    ("status", "kind", "asked"), [(401, "auth", 1), (404, "unknown_model", 1), (400, "refused", 2)]
)
async def test_a_refusal_that_is_not_about_the_schema(stub: Stub, status: int, kind: str, asked: int) -> None:
    stub.behaviours = [stub.refuse(status, {"error": {"message": "no"}})]
    error = await failed(stub, calling(schema=SCHEMA))
    assert (error.kind, len(stub.requests)) == (kind, asked)
    assert error.__cause__ is None


async def test_anthropic_calls_tools(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", stub.url)

    def behave(exchange: Exchange) -> None:
        exchange.begin()
        head = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": []}
        usage = {"input_tokens": 10, "output_tokens": 1}
        begun = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
        events: list[dict[str, object]] = [
            {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Looking."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": begun},
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": '{"city'},
            },
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": '": "Rome"}'},
            },
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
            {"type": "message_stop"},
        ]
        for event in events:
            exchange.chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n")
        exchange.wfile.write(b"0\r\n\r\n")

    stub.behaviours = [behave]
    uses = (ToolUse("a", "weather", {"city": "Oslo"}), ToolUse("b", "weather", {"city": "Bonn"}))
    results = (Message("tool", "5 C", answers="a"), Message("tool", "9 C", answers="b"))
    call = calling(WEATHER, messages=(*ASKED, Message("assistant", "", uses), *results), schema=SCHEMA)
    reply, _ = await said(stub, call, "anthropic:claude-sonnet-5-5")
    assert (reply.text, reply.uses) == ("Looking.", (ToolUse("toolu_1", "weather", {"city": "Rome"}),))
    assert reply.finish_reason == "tool_call"
    messages = sent(stub, "messages")
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    content = messages[-1]["content"]
    assert isinstance(content, list)
    assert [(one["type"], one["tool_use_id"]) for one in content] == [("tool_result", "a"), ("tool_result", "b")]
    assert "json_schema" in json.dumps(stub.requests[0])
