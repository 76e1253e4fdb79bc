"""The guards of what is said to a session, each with what the source would be without it."""

from tests.simulation.mutant import mutants

MUTANTS_OF_MESSAGES = mutants(
    "inbox",
    ("known_messages_are_new", "    if event.known is not None:\n", "    if False:\n"),
    ("another_text_is_the_same_message", "    if is_same:\n", "    if True:\n"),
    ("a_clip_is_the_same_as_a_text", "known.text is None if", "True if"),
    ("who_waits_is_not_told", " or _wait_ahead(session, message)", ""),
    ("who_steers_is_told_to_wait", "    if message.busy is not BusyMode.QUEUE:\n", "    if False:\n"),
    ("who_answers_is_told_to_wait", "turn is None or turn.question is not None or", "turn is None or"),
    ("late_messages_are_taken", "too_late(session, event.expect_turn) or ", ""),
    ("nobody_is_refused", " or admission.refusal(ledger.state, session)", ""),
    (
        "messages_release_nothing",
        "        release(ledger, session)\n    if is_next",
        "        pass\n    if is_next",
    ),
    ("retries_release_nothing", "        release(ledger, session)\n        _follow(", "        _follow("),
    ("retries_answer_questions", "elif isinstance(event, TextArrived) and event.retries:", "elif False:"),
    ("every_message_interrupts", "    if message.busy is BusyMode.INTERRUPT and session", "    if session"),
    (
        "no_message_interrupts",
        "    if message.busy is BusyMode.INTERRUPT and session",
        "    if False and session",
    ),
    ("interrupts_stop_what_nobody_began", " and session.turn and session.turn.has_begun:\n", ":\n"),
    ("who_joins_is_told_to_wait", "is BusyMode.COLLECT and turn.has_begun:", "is BusyMode.COLLECT:"),
    (
        "messages_to_free_sessions_open_nothing",
        "        ledger.state.openable[session.name] = None\n    else:\n",
        "        pass\n    else:\n",
    ),
    (
        "late_interrupts_interrupt",
        "    if ledger.answer is not None:\n        return\n    if event.drop",
        "    if event.drop",
    ),
    ("interrupts_drop", "    if event.drop:\n", "    if True:\n"),
    ("interrupts_hold_nothing", "    if session.waiting and not session.held:\n", "    if False:\n"),
    (
        "interrupts_hold_empty_queues",
        "    if session.waiting and not session.held:\n",
        "    if not session.held:\n",
    ),
    (
        "interrupts_hold_twice",
        "    if session.waiting and not session.held:\n",
        "    if session.waiting:\n",
    ),
    ("one_drop_drops_all", "if message_id in (None, message.id)", "if True"),
    (
        "empty_queues_stay_held",
        "    if not session.waiting:\n        release",
        "    if False:\n        release",
    ),
    (
        "resumed_sessions_open_nothing",
        "SessionReleased)\n        ledger.state.openable[session.name] = None\n",
        "SessionReleased)\n",
    ),
    (
        "released_without_being_held",
        "    if session.held:\n        session.held = 0\n",
        "    if True:\n        session.held = 0\n",
    ),
    ("open_sessions_are_put_to_rest", " and session.is_at_rest:", ":"),
)
