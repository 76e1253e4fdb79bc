"""The turns of sessions as far as they were read before: an ended turn never changes.

A request brings its whole conversation every time, and is compared with the whole session. To read that from
the journal each time would be most of the supervisor's work, so only turns that are new since the last
request are read. What was read is kept, within a bound; a turn that was pruned meanwhile may still be here,
which makes no difference to the comparison.
"""

from collections import OrderedDict
from typing import Any

import msgspec

from gateway.openai.conversation_rule import Branch, KnownTurn
from gateway.supervisor_client import SupervisorClient
from ipc.messages import Show, Table

# As many turns as an attempt is told of. Of a longer session the newest ones are compared.
TURNS_MAX = 200
_PAGE_TURNS = 50
# Of a session that was read before: usually one or two are new.
_FEW_TURNS = 4
_KEPT_CHARACTERS_MAX = 16 * 1024 * 1024


class KnownTurns:
    def __init__(self, supervisor: SupervisorClient) -> None:
        self._supervisor = supervisor
        # The ended turns of sessions, the session that was used last behind all others.
        self._kept: OrderedDict[str, Branch] = OrderedDict()
        self._characters = 0

    async def of(self, session: str) -> Branch | None:
        """Returns the newest turns of a session; None when it has none."""
        known = self._kept.get(session)
        last = known.turns[-1].id if known is not None else ""
        request = Show("history", session=session, limit=_FEW_TURNS if last else _PAGE_TURNS)
        new: list[KnownTurn] = []
        is_whole = is_met = False
        while not is_met and not is_whole and len(new) < TURNS_MAX:
            page = await self._supervisor.ask(request, Table)
            for turn in map(_known, page.rows):
                is_met = bool(last) and turn.id == last
                if is_met:
                    break
                new.append(turn)
            is_whole = not page.more
            request = msgspec.structs.replace(request, after=page.more, limit=_PAGE_TURNS)
        if not new and not is_met:
            self._drop(session)
            return None
        turns = tuple(reversed(new))
        if is_met and known is not None:
            turns, is_whole = known.turns + turns, known.is_whole
        else:
            is_whole = is_whole and turns[0].number <= 1
        branch = Branch(session, turns[-TURNS_MAX:], is_whole and len(turns) <= TURNS_MAX)
        self._keep(branch)
        return branch

    def _keep(self, branch: Branch) -> None:
        self._drop(branch.session)
        ended = branch.turns[:-1] if branch.turns[-1].is_open else branch.turns
        if not ended or not ended[-1].id:
            return
        self._kept[branch.session] = Branch(branch.session, ended, branch.is_whole)
        self._characters += _size(ended)
        while self._characters > _KEPT_CHARACTERS_MAX:
            self._drop(next(iter(self._kept)))

    def _drop(self, session: str) -> None:
        kept = self._kept.pop(session, None)
        if kept is not None:
            self._characters -= _size(kept.turns)


def _known(row: dict[str, Any]) -> KnownTurn:
    users = [str(each["text"]) for each in row["messages"]]
    users += [str(each["answer"]) for each in row.get("answered", ())]
    turn, state = str(row["turn"]), str(row.get("cut") or row["state"])
    return KnownTurn(turn, tuple(users), str(row["text"]), state)


def _size(turns: tuple[KnownTurn, ...]) -> int:
    return sum(len(turn.text) + sum(map(len, turn.users)) for turn in turns)
