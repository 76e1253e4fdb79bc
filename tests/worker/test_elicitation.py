"""Questions of MCP servers: each field of a form is a question, and its answer has the type of the field."""

import asyncio
from typing import Any

import pytest
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListToolsResult,
    Tool,
)

from ipc.message_parts import ToolServer
from worker.errors import InputNeeded
from worker.mcp_servers.elicitation import Unanswerable, responses
from worker.mcp_servers.mcp_server import _STATES_MAX, McpServer, ServerFault, _tools
from worker.mcp_servers.server_tools import _TOOLS_MAX, ServerTool, ServerTools


def form(message: str = "Which seat?", **fields: dict[str, Any]) -> InputRequiredResult:
    schema = {"type": "object", "properties": fields}
    params = ElicitRequestFormParams(message=message, requested_schema=schema)
    return InputRequiredResult(input_requests={"one": ElicitRequest(params=params)}, request_state="x")


def filled(asked: InputRequiredResult, *answers: str) -> ElicitResult:
    """The form after these answers; all of them are used."""
    left = [*answers, "an answer to a later question"]
    found: list[ElicitResult] = list(responses(asked, left).values())
    assert left == ["an answer to a later question"]
    return found[0]


def question(asked: InputRequiredResult, *answers: str) -> tuple[str, tuple[str, ...]]:
    with pytest.raises(InputNeeded) as needed:
        responses(asked, list(answers))
    return needed.value.text, needed.value.choices


def test_a_form_without_fields_is_a_question_of_yes_or_no() -> None:
    assert question(form("Go on?")) == ("Go on?", ("yes", "no"))
    for agreeing in ("yes", " Y ", "true", "OK", "1"):
        assert filled(form(), agreeing) == ElicitResult(action="accept", content={})
    for other in ("no", "", "perhaps"):
        assert filled(form(), other) == ElicitResult(action="decline", content=None)


def test_the_one_field_of_a_form_is_asked_for_by_its_message() -> None:
    asked = form(seat={"type": "string", "enum": ["aisle", "window"]})
    assert question(asked) == ("Which seat?", ("aisle", "window"))
    assert filled(asked, "window") == ElicitResult(action="accept", content={"seat": "window"})


def test_several_fields_are_asked_for_one_after_the_other_by_their_names() -> None:
    asked = form(
        "Book a seat",
        row={"type": "integer", "title": "Row"},
        side={"type": "string", "description": "left or right"},
        quiet={"type": "boolean"},
    )
    assert question(asked) == ("Book a seat (Row)", ())
    assert question(asked, "7") == ("Book a seat (left or right)", ())
    assert question(asked, "7", "left") == ("Book a seat (quiet)", ("yes", "no"))
    assert filled(asked, "7", "left", "yes").content == {"row": 7, "side": "left", "quiet": True}


@pytest.mark.parametrize(
    ("kind", "answer", "value"),
    [
        ("boolean", "no", False),
        ("boolean", "Yes", True),
        ("integer", " 42 ", 42),
        ("integer", "many", "many"),
        ("number", "1.5", 1.5),
        ("number", "half", "half"),
        ("string", "7", "7"),
    ],
)
def test_an_answer_has_the_type_of_its_field_or_stays_as_it_was_typed(
    kind: str, answer: str, value: object
) -> None:
    content = filled(form(field={"type": kind}), answer).content
    assert content == {"field": value}
    assert type((content or {})["field"]) is type(value)


def test_what_is_no_form_cannot_be_answered() -> None:
    asked = InputRequiredResult(input_requests={"one": ListRootsRequest()}, request_state="x")
    with pytest.raises(Unanswerable, match=r"the server asks for roots/list, which this host does not offer"):
        responses(asked, ["yes"])
    assert responses(InputRequiredResult(request_state="x"), []) == {}


def server() -> McpServer:
    return McpServer(ToolServer("s", ("nowhere",)), {})


def test_calls_that_wait_for_a_person_are_bounded_and_the_oldest_is_forgotten() -> None:
    """It is asked again from its beginning."""

    async def act() -> None:
        made = server()
        for number in range(_STATES_MAX + 3):
            with pytest.raises(InputNeeded):
                made._given(str(number), form(), [], 0)
        assert list(made._waiting) == [str(number) for number in range(3, _STATES_MAX + 3)]

    asyncio.run(act())


def test_a_connection_that_was_replaced_ends_without_the_one_after_it() -> None:
    async def act() -> None:
        made, ready = server(), asyncio.get_running_loop().create_future()
        ready.set_result(None)
        client: Any = object()
        made._client = client
        holding = asyncio.create_task(asyncio.Event().wait())
        holding.cancel()
        await asyncio.wait({holding})
        made._ended(ready, asyncio.Event(), holding)  # type: ignore[arg-type]
        assert made._client is client
        made._ended(ready, made._leave, holding)  # type: ignore[arg-type]
        assert made._client is None

    asyncio.run(act())


class Scripted:
    """The SDK's client of a server that asks `questions` and lists its tools in `pages`."""

    def __init__(self, questions: int = 0, pages: int = 1) -> None:
        self.session = self
        self._questions = questions
        self._pages = pages
        self.given: list[Any] = []

    async def call_tool(self, tool: str, arguments: dict[str, Any], **further: Any) -> Any:
        self.given.append(further["input_responses"])
        if len(self.given) <= self._questions:
            return form(f"question {len(self.given)}", it={"type": "string"})
        return CallToolResult(content=[])

    async def list_tools(self, cursor: str | None) -> ListToolsResult:
        number = int(cursor or "0")
        tool = Tool(name=f"t{number}", input_schema={})
        return ListToolsResult(
            tools=[tool], next_cursor=str(number + 1) if number + 1 < self._pages else None
        )


def connected(client: Scripted) -> McpServer:
    made = server()
    made._client = client  # type: ignore[assignment]
    return made


def call(client: Scripted, *answers: str) -> None:
    asyncio.run(connected(client).call("t", {}, "key", answers))


def test_each_question_of_a_call_has_its_own_answer() -> None:
    client = Scripted(questions=2)
    call(client, "one", "two")
    assert client.given[0] is None
    assert [each["one"].content for each in client.given[1:]] == [{"it": "one"}, {"it": "two"}]


def test_a_call_goes_on_at_the_question_where_it_stopped() -> None:
    """Each attempt at the turn brings the answers to all of its questions so far."""

    async def act() -> None:
        client = Scripted(questions=2)
        made = connected(client)
        for answers in ((), ("one",)):
            with pytest.raises(InputNeeded):
                await made.call("t", {}, "key", answers)
        await made.call("t", {}, "key", ("one", "two"))
        assert [each["one"].content for each in client.given[1:]] == [{"it": "one"}, {"it": "two"}]

    asyncio.run(act())


@pytest.mark.parametrize("answers", [(), ("one",)], ids=["that was given up", "that has its result"])
def test_the_same_call_after_one_begins_anew(answers: tuple[str, ...]) -> None:
    async def act() -> None:
        client = Scripted(questions=1)
        made = connected(client)
        with pytest.raises(InputNeeded):
            await made.call("t", {}, "key", ())
        if answers:
            await made.call("t", {}, "key", answers)
        before = len(client.given)
        await made.call("t", {}, "key", answers)
        assert client.given[before:] == [None]
        assert not made._waiting

    asyncio.run(act())


def test_answers_are_for_the_first_call_of_their_tool_only() -> None:
    async def act() -> None:
        client = Scripted(questions=3)
        tool = ServerTool(connected(client), Tool(name="t", input_schema={}), "s__t", "unsafe")
        tool.answers = ("one",)
        for arguments in ({"to": "Rome"}, {"to": "Oslo"}):
            with pytest.raises(InputNeeded):
                await tool.run(arguments, print)
        assert [given and given["one"].content for given in client.given] == [None, {"it": "one"}, None]

    asyncio.run(act())


def test_a_server_that_never_stops_asking_is_at_fault() -> None:
    with pytest.raises(ServerFault, match="it asked more than 20 times"):
        call(Scripted(questions=30), *map(str, range(40)))


def test_all_pages_of_tools_are_read_within_a_bound() -> None:
    for pages, read in ((3, 3), (50, 20)):
        found = asyncio.run(_tools(Scripted(pages=pages)))  # type: ignore[arg-type]
        assert [tool.name for tool in found] == [f"t{number}" for number in range(read)]


def test_an_agent_has_so_many_tools_of_servers_and_is_told_of_the_rest() -> None:
    tools, names = ServerTools(), set[str]()
    for number in range(_TOOLS_MAX + 2):
        tools._add(server(), Tool(name=f"t{number}", input_schema={}), names)
    assert len(names) == _TOOLS_MAX
    assert len(tools.take_notes()) == 2
