"""`hermesctl send`: submits a message and waits for the turn that answers it."""

import os
from typing import get_args

import click

from hermesctl import clip_upload, completing
from hermesctl.answer_stream import JsonLines, PlainText, Shown
from hermesctl.ctrlc import CtrlC
from hermesctl.event_stream import EventStream
from hermesctl.parameters import file, name, one_of
from hermesctl.sending import Sending, tell_accepted
from hermesctl.text_input import typed
from ipc.messages import Accepted, BusyMode, Submit
from ipc.places import Places

_MODES = get_args(BusyMode)
_EXAMPLES = """\b
Examples:
  hermesctl send demo "What is the capital of France?"
  git diff | hermesctl send review -
  hermesctl send demo "Stop that, do this" --busy interrupt
  hermesctl send demo "Once only" --id order-17 --json
  hermesctl send demo "Later" --busy queue --no-wait --json
  hermesctl send demo --audio note.ogg
  arecord -f S16_LE -r 16000 -d 5 | hermesctl send demo --audio -

\b
Exit codes: 0 answered, 3 interrupted, 4 the turn failed or the clip was not understood, 5 refused.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("session", **name("SESSION"), shell_complete=completing.sessions)
@click.argument("text", required=False)
@click.option("--audio", **file(), help="Send a sound file instead of a text; - is standard input.")
@click.option("--busy", **one_of(_MODES), help="What to do to a running turn.")
@click.option("--id", "key", **name("KEY"), help="The same key twice is one message.")
@click.option(
    "--no-wait", "until", flag_value="accepted", default="end", help="Print the message's id and leave."
)
@click.option("--json", "form", flag_value="json", default="words", help="Print one event a line.")
@click.pass_obj
def send(
    places: Places,
    session: str,
    text: str | None,
    audio: str | None,
    busy: BusyMode | None,
    key: str | None,
    until: str,
    form: str,
) -> int:
    """Send a message to a session and stream the answer.

    TEXT of - is read from standard input. Ctrl-C interrupts the turn; a second one leaves at once. A question
    of the agent is shown, and the next typed line answers it. Of a sound file, the transcript is shown first.
    """
    if (text is None) == (audio is None):
        raise click.UsageError("say TEXT, or name a sound file with --audio")
    words = "" if text is None else typed(text)
    if audio is None and not words.strip():
        raise click.UsageError("the message is empty")
    shown: Shown = JsonLines() if form == "json" else PlainText()
    with CtrlC() as ctrl_c:
        stream = EventStream(places, session, None, ctrl_c.wake)
        try:
            clip = "" if audio is None else clip_upload.store(places, audio)
            submit = Submit(session, words, key or f"hermesctl-{os.urandom(12).hex()}", busy, clip=clip)
            with clip_upload.discarded_if_refused(places, clip):
                accepted = stream.client.ask(submit, Accepted)
            if clip and accepted.again:
                clip_upload.discard(places, clip)
            sending = Sending(stream, session, accepted, shown, ctrl_c)
            if until == "accepted":
                return tell_accepted(form, session, accepted)
            return sending.follow_to_the_end()
        finally:
            stream.close()
