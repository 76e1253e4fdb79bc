"""A service with one agent, shared by the scenarios of its kind; each scenario has a session of its own."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ipc.messages import Event, Reload, Table
from tests.fake_model import FakeModel
from tests.kinds.kind import Kind, toml_list
from tests.service import Service, settings_for
from tests.waiting import until

# Far above what an agent uses in one turn, unless it is told to.
BUDGET_TOKENS = 1_000_000
_LONG, _SHORT = "10m", "1s"
_numbers = itertools.count(1)


class Served:
    """The service of one kind."""

    def __init__(self, kind: Kind, folder: Path, model: FakeModel) -> None:
        self.kind = kind
        self.model = model
        # Of agents and tests: agents of root are another user.
        self.shared = folder / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o777)
        home = folder / "home"
        home.mkdir()
        self._tables = {
            "workers": "count = 2",
            "turns": "",
            "sandbox": f"write = {toml_list(self.shared)}",
            "budgets.session": f"tokens_max = {BUDGET_TOKENS}",
            **kind.tables(home, self.shared, model),
        }
        self.service = Service(home, self._settings(_LONG))
        kind.prepare(home)

    @contextmanager
    def short_hold(self) -> Iterator[None]:
        """Meanwhile an agent holds for an answer for a second only."""
        self._reload(_SHORT)
        try:
            yield
        finally:
            self._reload(_LONG)

    def _settings(self, hold: str) -> str:
        return settings_for(self.model, **self._tables | {"turns": f'hold = "{hold}"'})

    def _reload(self, hold: str) -> None:
        (self.service.home / "hermes.toml").write_text(self._settings(hold))
        self.service.client().ask(Reload(), Table)


class Stage:
    """One session: the messages of a scenario, and what became of them."""

    def __init__(self, served: Served, scenario: str) -> None:
        self.served = served
        self.kind, self.service, self.shared = served.kind, served.service, served.shared
        self.session = f"{scenario.replace(' ', '-')}-{next(_numbers)}"
        self.listener = self.service.listen(self.session)
        self._turns = 0

    def send(self, text: str) -> str:
        """Sends a message, and returns the name of its turn."""
        self._turns += 1
        self.service.say(self.session, text, busy="queue")
        return f"{self.session}/{self._turns}"

    def answer(self, text: str) -> str:
        """Sends a message, and returns the answer."""
        return self.answer_of(self.send(text))

    def answer_of(self, turn: str) -> str:
        ended = self.ending(turn)
        assert ended.type == "turn.done", ended.fields
        return str(ended.fields["text"])

    def ending(self, turn: str) -> Event:
        return self.listener.ending(turn, self.kind.patience_seconds)

    def events(self, turn: str, *types: str) -> list[Event]:
        return [event for event in self.listener.of_type(*types) if event.fields["turn"] == turn]

    def event(self, turn: str, kind: str) -> Event:
        """Waits for an event of the turn."""
        self.listener.until(lambda: self.events(turn, kind), self.kind.patience_seconds)
        return self.events(turn, kind)[-1]

    def reply(self, question: Event, text: str) -> None:
        """Answers a question, as a person does."""
        done = self.service.hermesctl("answer", question.fields["question"], text)
        assert done.returncode == 0, done.stderr

    def send_approved(self, *, is_lost: bool = False) -> tuple[str, Path]:
        """Has a call made that needs an approval: its turn, and the file that gets a line from each run."""
        mark = self.shared / f"{self.session}-ran"
        command = f"rm -rf nothing; echo ran >> {mark}"
        return self.send(self.kind.run_approved(command, is_lost=is_lost)), mark

    def restart(self) -> None:
        """Kills the supervisor and starts it again."""
        after = self.listener.events[-1].seq
        before = self.listener.events
        self.service.kill()
        self.service.start()
        self.listener = self.service.listen(self.session, after)
        self.listener.events = before

    def interrupt(self) -> None:
        self.service.interrupt(self.session)

    def no_seat(self) -> None:
        """Returns when no worker works for anybody."""
        until(lambda: self.service.status()["busy"] == 0)
