"""Tasks that a chat program gives to a model beside the conversation: titles, tags, proposals.

Open WebUI sends four of them for one message, one even before it. They are no part of any conversation, and
each would be a session in the journal and a turn on a seat. So they are answered here, from the text of the
request alone, without a model (decision 47). A title is the beginning of the first message; lists of
proposals are empty, which every such program shows as none.
"""

import json
import re

from gateway.errors import HttpError

_TITLE_WORDS = 7
_TITLE_CHARACTERS = 60
_HISTORY = re.compile(r"<chat_history>(.*?)</chat_history>", re.DOTALL)
_USER = re.compile(r"^USER:\s*(.*?)\s*(?=^ASSISTANT:|\Z)", re.DOTALL | re.MULTILINE)
# What the program reads from the answer: an empty list or text means that there is nothing to show.
NOTHING = {
    "tags_generation": {"tags": []},
    "follow_up_generation": {"follow_ups": []},
    "query_generation": {"queries": []},
    "autocomplete_generation": {"text": ""},
}


def answer(task: str, prompt: str) -> str:
    """Returns the text of the answer. HttpError for a task that cannot be done without a model."""
    if task == "title_generation":
        return json.dumps({"title": _title(prompt)}, ensure_ascii=False)
    if task == "emoji_generation":
        return "💬"
    if task in NOTHING:
        return json.dumps(NOTHING[task])
    known = ", ".join(["title_generation", "emoji_generation", *NOTHING])
    hint = f"leave X-Task out to send a message, or switch the task off in the client; known are {known}"
    raise HttpError(400, f"the task {task[:40]!r} is not answered here", hint)


def _title(prompt: str) -> str:
    history = _HISTORY.search(prompt)
    text = history[1].strip() if history else prompt
    first = _USER.search(text)
    words = (first[1] if first else text).split()
    title = " ".join(words[:_TITLE_WORDS])[:_TITLE_CHARACTERS].strip()
    return title + ("…" if len(words) > _TITLE_WORDS else "") or "Chat"
