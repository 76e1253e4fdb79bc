"""Which session a request belongs to, and what of it is new: the rule, without I/O.

A client of the OpenAI API sends the whole conversation every time; a session of the journal has it already.
New is what follows the last message of the assistant. What comes before is compared with the turns of the
session and of its branches:

    the past of the request is                       the request
    all turns of a session                           appends to that session
    the turns before an open one with the same text  is that turn's own: sent again, it joins it
    the turns up to an earlier one                   forks behind that turn: an edit, or a regeneration
    the newest turns only                            appends, if they are the newest of the session, too
    something else                                   begins a session with an imported history
    empty, in a session that there is                appends: the client leaves the history to the session

A turn is what its client made of it: the texts of its messages and answers, and between and behind them what
the assistant wrote. A turn that was interrupted or failed may have left nothing at the client, or a part, or
words of the client's own: then its answer is no proof, and a branch that has all that the client shows comes
before it. Texts are compared without regard to white space, because clients trim.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Role = Literal["user", "assistant"]

_OPEN = frozenset({"queued", "running", "asking"})
# A chat stream says with this line that an attempt was lost and another one continues.
LOST_WORDS = "[The attempt was lost; another one continues.]"


@dataclass(frozen=True)
class Said:
    """One message of the conversation as the client has it."""

    role: Role
    text: str


@dataclass(frozen=True)
class Conversation:
    """`past` ends with the last message of the assistant; `new` is what the user wrote behind it."""

    past: tuple[Said, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class Asking:
    """What a request asks for, whatever its shape was."""

    conversation: Conversation
    instructions: str
    agent: str


@dataclass(frozen=True)
class KnownTurn:
    """A turn of the journal. `id` is empty for one with which its session has begun.

    `users` are the texts of its messages, then the answers to its questions.
    """

    id: str
    users: tuple[str, ...]
    text: str
    state: str = "done"

    @property
    def is_open(self) -> bool:
        return self.state in _OPEN

    @property
    def number(self) -> int:
        return int(self.id.rpartition("/")[2]) if self.id else 0


@dataclass(frozen=True)
class Branch:
    """A session with its newest turns, oldest first; `is_whole` when there are no others before them."""

    session: str
    turns: tuple[KnownTurn, ...]
    is_whole: bool = True


@dataclass(frozen=True)
class Append:
    """Send the text to this session. `after` is the id of its last turn, empty when it has none.

    `is_exact`: no other branch can fit better.
    """

    session: str
    after: str
    text: str
    is_exact: bool = True


@dataclass(frozen=True)
class Same:
    """The text was sent to this session already, behind its turn `after`."""

    session: str
    after: str
    text: str


@dataclass(frozen=True)
class Fork:
    """Send the text to a new session that begins with the turns of this one through that number."""

    session: str
    through: int
    text: str


@dataclass(frozen=True)
class Import:
    """Send the text to a new session that begins with the past of the request."""

    text: str


Choice = Append | Same | Fork | Import


@dataclass(frozen=True)
class _Place:
    """The past of a request ends behind the first `count` turns of a branch; `left` is new there.

    `is_exact`: from its first turn on. `is_told`: the branch has all that the client shows.
    """

    branch: Branch
    count: int
    left: tuple[str, ...]
    is_exact: bool
    is_told: bool

    @property
    def text(self) -> str:
        return _joined(self.left)

    @property
    def after(self) -> str:
        return self.branch.turns[self.count - 1].id if self.count else ""

    @property
    def next(self) -> KnownTurn | None:
        return self.branch.turns[self.count] if self.count < len(self.branch.turns) else None


def choose(
    conversation: Conversation,
    root: Branch | None,
    branches: Sequence[Branch] = (),
    *,
    repeats: bool = False,
    begins: bool = False,
) -> Choice:
    """Return what to do with a request.

    `root` is the session that the client names, if there is one, and `branches` are those of it, newest
    first. `repeats`: the client says that it has sent the request before. `begins`: it says that the message
    is the first one of its conversation.
    """
    if root is None:
        return Import(_joined(conversation.new))
    if not conversation.past and not begins:
        return _alone(conversation, root, branches, repeats)
    ranked: list[tuple[int, Choice]] = []
    for branch in (*branches, root):
        place = _place(branch, conversation)
        if place is not None:
            ranked.append(_ranked(place, conversation, repeats))
    return min(ranked, key=lambda each: each[0])[1] if ranked else Import(_joined(conversation.new))


def _ranked(place: _Place, conversation: Conversation, repeats: bool) -> tuple[int, Choice]:
    """Exact places come first, then those that are told all, then going on before going back."""
    loose = 3 * (not place.is_told) + 6 * (not place.is_exact)
    session, following = place.branch.session, place.next
    if following is None:
        return loose, Append(session, place.after, place.text, is_exact=not loose)
    if is_request_of(following, place.text, repeats):
        return 1 + loose, Same(session, place.after, place.text)
    return 2 + loose, _fork(place, conversation)


def _fork(place: _Place, conversation: Conversation) -> Choice:
    """Turns that a session has begun with have no numbers: it can be forked behind all of them only."""
    begun = sum(not turn.id for turn in place.branch.turns)
    if place.count < begun:
        return Import(_joined(conversation.new))
    through = place.branch.turns[place.count - 1].number if place.count else 0
    return Fork(place.branch.session, through, place.text)


def _alone(conversation: Conversation, root: Branch, branches: Sequence[Branch], repeats: bool) -> Choice:
    """One message without a past: it goes to the session, unless it is there already.

    Sent again after its answer it is a regeneration, where it began its session. In a longer session it is
    one more message: programs send the same words day after day.
    """
    text = _joined(conversation.new)
    for branch in (*branches, root):
        if branch.turns and is_request_of(branch.turns[-1], text, repeats):
            after = branch.turns[-2].id if len(branch.turns) > 1 else ""
            return Same(branch.session, after, text)
    only = root.turns[0] if len(root.turns) == 1 and root.is_whole else None
    if only is not None and only.id and not only.is_open and _is_opened_by(only, text):
        return Fork(root.session, 0, text)
    return Append(root.session, root.turns[-1].id if root.turns else "", text)


def is_request_of(turn: KnownTurn, text: str, repeats: bool) -> bool:
    """A request that is repeated gets the answer that was made, but not that of an interrupted turn."""
    is_answered = turn.state in ("done", "failed", "poison")
    return (turn.is_open or (repeats and is_answered)) and _is_opened_by(turn, text)


def _is_opened_by(turn: KnownTurn, text: str) -> bool:
    return bool(turn.users) and _plain(turn.users[0]) == _plain(text)


@dataclass(frozen=True)
class _Walked:
    """The past consists of `count` turns; behind it, at `at`, the new messages begin."""

    count: int
    at: int
    is_told: bool


def _place(branch: Branch, conversation: Conversation) -> _Place | None:
    """Return where in the branch the past of the request ends."""
    items = (*conversation.past, *(Said("user", text) for text in conversation.new))
    past = len(conversation.past)
    if branch.is_whole and (found := _walk(branch.turns, items, past)) is not None:
        return _placed(branch, items, found, is_exact=True)
    if not past:
        return None
    # The client has fewer turns than the session: it sends only as many as its model could read.
    for start in range(int(branch.is_whole), len(branch.turns)):
        found = _walk(branch.turns[start:], items, past)
        if found is not None and found.count:
            return _placed(branch, items, replace(found, count=start + found.count), is_exact=False)
    # The session has fewer than the client: its first ones were pruned.
    for at in range(1, past) if not branch.is_whole else ():
        if items[at].role == "user":
            found = _walk(branch.turns, items[at:], past - at)
            if found is not None and found.count:
                return _placed(branch, items, replace(found, at=at + found.at), is_exact=False)
    return None


def _placed(branch: Branch, items: Sequence[Said], found: _Walked, *, is_exact: bool) -> _Place:
    left = tuple(item.text for item in items[found.at :])
    return _Place(branch, found.count, left, is_exact, found.is_told)


def _walk(turns: Sequence[KnownTurn], items: Sequence[Said], past: int) -> _Walked | None:
    at = count = 0
    is_told = True
    while at < past:
        if count == len(turns) or (behind := _behind(turns[count], items, at, past)) is None:
            return None
        is_told = is_told and _is_told(turns[count], items[at:behind])
        at, count = behind, count + 1
    # Turns that left nothing at the client: their messages come again, before the new one.
    while count < len(turns) and turns[count].state != "done":
        behind = _behind(turns[count], items, at, len(items))
        if behind is None or behind >= len(items):
            break
        at, count = behind, count + 1
    return _Walked(count, at, is_told)


def _is_told(turn: KnownTurn, items: Sequence[Said]) -> bool:
    """Whether a turn that fits these items has all that they say: one that was cut fits with less, too."""
    if turn.state not in ("interrupted", "failed", "poison"):
        return True
    given = _joined([item.text for item in items if item.role == "assistant"])
    return _plain(turn.text).startswith(_plain(given.partition(LOST_WORDS)[0]))


def _behind(turn: KnownTurn, items: Sequence[Said], at: int, end: int) -> int | None:
    """Return the place behind the items that the turn consists of; None when they are not the turn."""
    answers: list[str] = []
    for number, text in enumerate(turn.users):
        while number and at < end and items[at].role == "assistant":
            at += 1
        behind = _behind_user(text, items, at, end)
        if behind is None:
            return None
        at = behind
    while at < end and items[at].role == "assistant":
        answers.append(items[at].text)
        at += 1
    return at if _is_answer(turn, _joined(answers)) else None


def _behind_user(text: str, items: Sequence[Said], at: int, end: int) -> int | None:
    """Several messages in a row were sent as one."""
    wanted = _plain(text)
    if not wanted and (at == end or items[at].role == "assistant"):
        return at  # an imported history may begin with the assistant
    for behind in range(at + 1, end + 1):
        if items[behind - 1].role != "user":
            return None
        if _plain(_joined([item.text for item in items[at:behind]])) == wanted:
            return behind
    return None


def _is_answer(turn: KnownTurn, given: str) -> bool:
    """Whether the client may have got this text from that turn."""
    text, shown = _plain(turn.text), _plain(given)
    if turn.state == "failed" or turn.state == "poison":
        return True
    if turn.state in ("done", "past"):
        if text == shown:
            return True
        is_in_parts = len(turn.users) > 1 or LOST_WORDS in given
        last = _plain(given.rpartition(LOST_WORDS)[2])
        return is_in_parts and bool(last) and text.endswith(last)
    # It was cut at different places here and there, and a question stands behind the text.
    first = _plain(given.partition(LOST_WORDS)[0])
    return text.startswith(first) or first.startswith(text)


def exchanges(past: Sequence[Said]) -> Iterator[tuple[str, str]]:
    """Yield the past as pairs of what the user and the assistant wrote, for an import."""
    users: list[str] = []
    answers: list[str] = []
    for item in past:
        if item.role == "user" and answers:
            yield _joined(users), _joined(answers)
            users, answers = [], []
        (users if item.role == "user" else answers).append(item.text)
    if users or answers:
        yield _joined(users), _joined(answers)


def _joined(texts: Sequence[str]) -> str:
    return "\n\n".join(texts)


def _plain(text: str) -> str:
    return " ".join(text.split())
