"""Finds or makes the session of a request, and sends its message there (the rule is in conversation_rule.py).

A branch of the session `chat` is the session `chat~` and some letters. Which branches there are is asked once
for each session, and remembered: no other program makes branches. A message has a key that its place in the
conversation gives, so the same request twice is one message, also when its answer was lost with a gateway.
"""

import hashlib
import os
import re
from collections import OrderedDict
from dataclasses import dataclass

import msgspec

from gateway.errors import HttpError
from gateway.openai.conversation_rule import (
    Append,
    Asking,
    Choice,
    Fork,
    Import,
    Same,
    choose,
    exchanges,
    is_request_of,
)
from gateway.openai.known_turns import TURNS_MAX, KnownTurns
from gateway.supervisor_client import SupervisorClient
from ipc.bounds import TEXT_CHARACTERS_MAX
from ipc.messages import Accepted, Begin, Done, Exchange, Show, Submit, Table

_BRANCH = "~"
_ENDS_IN_BRANCH = re.compile(r"~[0-9a-f]{8}$")
# The newest branches of a session that a request is compared with.
_BRANCHES_MAX = 20
# Pages of ten milliseconds each in which the branches of a session are searched for.
_SEARCH_PAGES_MAX = 200
_REMEMBERED_MAX = 10_000
# As much as the supervisor keeps of an imported history.
_IMPORT_BYTES_MAX = 1024 * 1024
# A session or a branch that begins at the same time elsewhere.
_TRIES = 3


@dataclass(frozen=True)
class Placed:
    """A message in its session. `seq` is that of its first event."""

    session: str
    message: str
    seq: int


@dataclass(frozen=True)
class Wish:
    """What a client asks for, and how it names the conversation.

    `name` is the session's name in the journal; without a name the session is a new one, `digest` of the
    request is a part of its name, and a repeated request is looked for by it.
    """

    asking: Asking
    by: str
    prefix: str
    name: str = ""
    digest: str = ""
    repeats: bool = False
    begins: bool = False


class SessionChoice:
    def __init__(self, supervisor: SupervisorClient) -> None:
        self._supervisor = supervisor
        self._turns = KnownTurns(supervisor)
        # Newest first, by the session that they are branches of.
        self._branches: OrderedDict[str, list[str]] = OrderedDict()

    async def place(self, wish: Wish) -> Placed:
        """Returns the accepted message. Raises HttpError."""
        for _ in range(_TRIES):
            choice = await self._choose(wish)
            try:
                return await self._carry_out(wish, choice)
            except _Begun:
                continue
        raise HttpError(409, f"session {wish.name} begins again and again", "send the request again")

    async def continue_after(self, wish: Wish, session: str, turn: str) -> Placed:
        """Sends the message behind that turn: to its session if it is the last one, else to a branch."""
        text = "\n\n".join(wish.asking.conversation.new)
        branch = await self._turns.of(session)
        known = branch.turns if branch is not None else ()
        number = int(turn.rpartition("/")[2])
        behind = next((each for each in known if each.number > number), None)
        if behind is None or is_request_of(behind, text, wish.repeats):
            return await self._submit(wish, session, turn, text)
        return await self._fork(wish, Fork(session, number, text), _ENDS_IN_BRANCH.sub("", session))

    async def _choose(self, wish: Wish) -> Choice:
        conversation = wish.asking.conversation
        if not wish.name:
            again = await self._sent_before(wish) if wish.repeats else None
            return again or Import("\n\n".join(conversation.new))
        root = await self._turns.of(wish.name)
        choice = choose(conversation, root, repeats=wish.repeats, begins=wish.begins)
        if root is None or isinstance(choice, Same) or (isinstance(choice, Append) and choice.is_exact):
            return choice
        # It goes back in the session, or on in another branch.
        found = [await self._turns.of(name) for name in await self._branches_of(wish.name)]
        branches = [branch for branch in found if branch is not None]
        return choose(conversation, root, branches, repeats=wish.repeats, begins=wish.begins)

    async def _sent_before(self, wish: Wish) -> Choice | None:
        """A request without a name that its client repeats: its session has its digest in the name."""
        prefix = _nameless(wish)
        page = await self._supervisor.ask(Show("sessions", prefix=prefix, limit=1), Table)
        text = "\n\n".join(wish.asking.conversation.new)
        return Same(str(page.rows[0]["session"]), "", text) if page.rows else None

    async def _carry_out(self, wish: Wish, choice: Choice) -> Placed:
        match choice:
            case Append() | Same():
                return await self._submit(wish, choice.session, choice.after, choice.text)
            case Fork():
                return await self._fork(wish, choice, wish.name)
            case Import():
                return await self._import(wish, choice.text)

    async def _fork(self, wish: Wish, fork: Fork, root: str) -> Placed:
        branch = _branch_of(root)
        begin = Begin(branch, "fork", from_session=fork.session, through_turn=fork.through)
        await self._supervisor.ask(begin, Done)
        self._remember(root, branch)
        return await self._submit(wish, branch, "", fork.text)

    async def _import(self, wish: Wish, text: str) -> Placed:
        session = wish.name or f"{_nameless(wish)}{os.urandom(4).hex()}"
        past = wish.asking.conversation.past
        if wish.name and await self._turns.of(wish.name) is not None:
            session = _branch_of(wish.name)
        if past:
            begin = Begin(session, f"import-{wish.digest}", turns=_imported(wish))
            try:
                await self._supervisor.ask(begin, Done)
            except HttpError as error:
                raise _Begun() if error.status == 409 else error from None
        if session != wish.name and wish.name:
            self._remember(wish.name, session)
        return await self._submit(wish, session, "", text)

    async def _submit(self, wish: Wish, session: str, after: str, text: str) -> Placed:
        key = hashlib.blake2b(f"{session}\0{after}\0{text}".encode(errors="replace"), digest_size=16)
        submit = Submit(
            session,
            text,
            f"v1-{key.hexdigest()}",
            by=wish.by,
            agent=wish.asking.agent,
            instructions=wish.asking.instructions,
        )
        accepted = await self._supervisor.ask(submit, Accepted)
        if accepted.again and await self._was_dropped(accepted.message):
            submit = msgspec.structs.replace(submit, key=f"v1-{os.urandom(16).hex()}")
            accepted = await self._supervisor.ask(submit, Accepted)
        return Placed(session, accepted.message, accepted.seq)

    async def _was_dropped(self, message: str) -> bool:
        story = await self._supervisor.ask(Show("story", id=message, limit=1), Table)
        return bool(story.rows) and story.rows[0].get("state") == "dropped"

    async def _branches_of(self, root: str) -> list[str]:
        found = self._branches.get(root)
        if found is None:
            found = self._branches[root] = await self._search(root + _BRANCH)
            if len(self._branches) > _REMEMBERED_MAX:
                self._branches.popitem(last=False)
        self._branches.move_to_end(root)
        return found[:_BRANCHES_MAX]

    async def _search(self, prefix: str) -> list[str]:
        request = Show("sessions", prefix=prefix, limit=_BRANCHES_MAX)
        found: list[str] = []
        for _ in range(_SEARCH_PAGES_MAX):
            page = await self._supervisor.ask(request, Table)
            found += [str(row["session"]) for row in page.rows]
            if not page.more or len(found) >= _BRANCHES_MAX:
                break
            request = msgspec.structs.replace(request, after=page.more)
        return found

    def _remember(self, root: str, branch: str) -> None:
        if root in self._branches:
            self._branches[root].insert(0, branch)


class _Begun(Exception):
    """The session began between the look at it and the request to begin it."""


def _nameless(wish: Wish) -> str:
    """The beginning of the name of a session that the client does not name."""
    return f"{wish.prefix}chat-{wish.digest}-"


def _branch_of(root: str) -> str:
    return f"{root}{_BRANCH}{os.urandom(4).hex()}"


def _imported(wish: Wish) -> tuple[Exchange, ...]:
    """The newest exchanges of the past that the supervisor would keep."""
    found: list[Exchange] = []
    left = _IMPORT_BYTES_MAX
    for user, assistant in reversed(list(exchanges(wish.asking.conversation.past))):
        left -= len(user.encode(errors="replace")) + len(assistant.encode(errors="replace"))
        if (left < 0 and found) or len(found) == TURNS_MAX:
            break
        found.append(Exchange(user[:TEXT_CHARACTERS_MAX], assistant[:TEXT_CHARACTERS_MAX]))
    return tuple(reversed(found))
