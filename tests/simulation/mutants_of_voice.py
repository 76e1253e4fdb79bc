"""The guards around spoken messages, each with what the source would be without it."""

from tests.simulation.mutant import mutants

MUTANTS_OF_VOICE = (
    *mutants(
        "inbox",
        (
            "clips_act_at_once",
            "        ledger.perform(Transcribe(session.name, message.id, clip))\n",
            "        ledger.perform(Transcribe(session.name, message.id, clip))\n"
            "        understood(ledger, session, message)\n",
        ),
        (
            "clips_are_not_transcribed",
            "        ledger.perform(Transcribe(session.name, message.id, clip))\n",
            "        pass\n",
        ),
        ("held_clips_release", "    if message.seq > session.held:", "    if True:"),
        ("clips_are_overtaken", "    if is_next(session, message):", "    if True:"),
        (
            "behind_a_clip_nobody_interrupts",
            "    elif session.turn and session.turn.question is None:\n",
            "    elif False:\n",
        ),
        (
            "every_message_interrupts",
            "    if message.busy is BusyMode.INTERRUPT and session.turn",
            "    if session.turn",
        ),
        ("behind_a_clip_questions_are_withdrawn", " and session.turn.question is None:", ":"),
        ("clips_let_those_before_them_answer", "if message.seq > after_seq and not", "if not"),
        (
            "behind_a_clip_nobody_answers",
            " and not questions.take_answer(ledger, session, message) and session.turn:",
            " and session.turn:",
        ),
        (
            "behind_a_clip_nobody_steers",
            "            turns.steer(ledger, session.turn, message)\n    l",
            "            pass\n    l",
        ),
        (
            "behind_a_clip_nothing_opens",
            "    ledger.state.openable[session.name] = None\n\n\ndef _follow",
            "\n\ndef _follow",
        ),
        (
            "dropped_clips_are_transcribed",
            "            ledger.perform(ForgetClip(message.id))\n",
            "            pass\n",
        ),
        ("behind_a_dropped_clip_all_wait", "    if clips:\n", "    if False:\n"),
    ),
    *mutants(
        "placing",
        ("clips_open_turns", "bool(waiting) and not waiting[0].is_transcribing", "bool(waiting)"),
        ("clips_go_together", "while _has_words(session.waiting) and", "while session.waiting and"),
    ),
    *mutants(
        "questions",
        ("messages_answer_later_questions", " or message.at < turn.content_at:", ":"),
    ),
    *mutants(
        "recovery",
        ("clips_are_not_taken_up", "        transcripts.take_up(ledger, session)\n", ""),
    ),
    *mutants(
        "turns",
        (
            "clips_are_steered",
            "takewhile(lambda message: not message.is_transcribing, waiting)",
            "iter(waiting)",
        ),
        ("nobody_need_offer_a_message", " or message.id not in turn.attempt.offered:", ":"),
    ),
    *mutants(
        "transcripts",
        (
            "second_transcripts_count",
            " and message.is_transcribing:\n            return session",
            ":\n            return session",
        ),
        ("any_clip_is_meant", "message.id == message_id and ", ""),
        ("words_do_nothing", "    inbox.understood(ledger, session, message)\n", ""),
        (
            "behind_words_all_wait",
            "    inbox.understood(ledger, session, message)\n    inbox.go_on(ledger, session, message.seq)\n",
            "    inbox.understood(ledger, session, message)\n",
        ),
        ("failed_clips_stay_waiting", "    line.take(ledger.state, session, message)\n", ""),
        ("failed_clips_leave_it_held", "    if not session.waiting:\n", "    if False:\n"),
        ("failed_clips_release", "    if not session.waiting:\n", "    if True:\n"),
        (
            "behind_a_failed_clip_all_wait",
            "        inbox.release(ledger, session)\n    inbox.go_on(ledger, session, message.seq)\n",
            "        inbox.release(ledger, session)\n",
        ),
        ("every_message_is_taken_up", "        if message.is_transcribing:\n", "        if True:\n"),
        ("nobody_is_echoed", "echo = ledger.state.policy.echo", "echo = False"),
    ),
)
