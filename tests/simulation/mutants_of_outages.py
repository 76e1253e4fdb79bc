"""Guards of outages and of back-off, each with the source without it."""

from tests.simulation.mutant import Mutant, mutants

MUTANTS_OF_OUTAGES: tuple[Mutant, ...] = (
    *mutants(
        "backoff",
        ("delays_do_not_grow", "float(2 ** min(number - 1, _DOUBLINGS_MAX))", "1"),
        ("delays_grow_for_ever", "min(limit, _FIRST_SECONDS", "max(0, _FIRST_SECONDS"),
        ("lost_turns_never_rest", "    if turn.losses < 2:\n", "    if True:\n"),
        ("lost_turns_rest_at_once", "    if turn.losses < 2:\n", "    if False:\n"),
        (
            "rests_of_another_turn_end",
            "turn is not None and turn.id == due.turn and",
            "turn is not None and",
        ),
        ("rests_of_another_attempt_end", " and turn.attempts == due.attempts:", ":"),
        ("rests_are_over_twice", " if due.session in state.resting else None", ""),
        ("rested_turns_are_not_listed", "    line.enlist(ledger.state, session)\n", ""),
    ),
    *mutants(
        "line",
        (
            "joined_sessions_rest_on",
            "Place(highest + 1, now)\n    state.resting.pop(session, None)\n",
            "Place(highest + 1, now)\n",
        ),
        (
            "sessions_that_left_rest_on",
            "own.pop(session, None)\n    state.resting.pop(session, None)\n",
            "own.pop(session, None)\n",
        ),
        ("resting_turns_are_no_backlog", " + len(state.resting)", ""),
    ),
    *mutants(
        "placing",
        (
            "own_workers_do_not_wait_for_the_model",
            "        if outages.may_begin(state, _agent(state, name), now)\n",
            "",
        ),
        (
            "fresh_workers_do_not_wait_for_the_model",
            " if seats and outages.may_begin(state, agent, now)",
            " if seats",
        ),
    ),
    *mutants(
        "supply",
        (
            "resting_turns_lose_their_worker_first",
            "session in state.queued or session in state.resting",
            "session in state.queued",
        ),
        ("resting_turns_keep_their_worker", "if worker.session in state.resting)", "if False)"),
    ),
    *mutants(
        "turns",
        (
            "clocks_do_not_count",
            "        turn.ran_seconds += ledger.now - turn.started_at\n",
            "        pass\n",
        ),
        (
            "clocks_begin_anew",
            " + policy.deadline_seconds - turn.ran_seconds, due)",
            " + policy.deadline_seconds, due)",
        ),
    ),
    *mutants(
        "questions",
        (
            "questions_do_not_reset_the_clock",
            "turn.ran_seconds, turn.content_at = 0.0, ledger.now",
            "turn.content_at = ledger.now",
        ),
    ),
    *mutants(
        "decide",
        ("other_models_are_still_away", "    outages.forget(ledger)\n", ""),
    ),
    *mutants(
        "outages",
        ("answers_do_not_end_the_wait", "    return None if answered else", "    return"),
        ("every_refusal_begins_the_wait", "    if since is None:\n", "    if True:\n"),
        ("refusals_do_not_add_up", "turn.refusals = since, turn.refusals + 1", "turn.refusals = since, 1"),
        ("refused_turns_wait_for_ever", "    if ledger.now >= since + limit:\n", "    if False:\n"),
        ("waiting_takes_time", "    turns.pause(ledger, turn)\n", ""),
        ("refused_turns_are_tried_before_the_probe", "        until = max(until, outage.probe_at)\n", ""),
        ("refused_turns_are_the_probe", "_GRACE_SECONDS = 0.25", "_GRACE_SECONDS = 0.0"),
        ("earlier_waits_are_not_looked_for", "    if at < outage.limit_at:\n", "    if False:\n"),
        (
            "replaced_endpoints_are_away",
            '    if attempt.endpoint not in ("", endpoint):\n',
            "    if False:\n",
        ),
        ("nobody_looks_for_long_waits", "        ledger.remind(limit_at, OutageDue(endpoint))\n", ""),
        (
            "every_refusal_is_the_probes",
            "    elif outage.probe != (event.turn, event.attempt):\n",
            "    elif False:\n",
        ),
        ("only_the_probe_is_asked_to_wait", "max(outage.probe_at, now + _asked(event))", "outage.probe_at"),
        (
            "later_refusals_bring_the_probe_forward",
            "max(outage.probe_at, now + _asked(event))",
            "now + _asked(event)",
        ),
        ("probes_do_not_back_off", "    outage.failures += 1\n", "    outage.failures = 1\n"),
        ("nothing_is_asked_for", "now + max(delay, _asked(event))", "now + delay"),
        (
            "everything_asked_for_is_granted",
            "min(event.wait_seconds, _ASKED_SECONDS_MAX)",
            "event.wait_seconds",
        ),
        (
            "probes_are_not_reminded_of",
            "    outage.probe_at = at\n    ledger.remind(at, OutageDue(endpoint))\n",
            "    outage.probe_at = at\n",
        ),
        (
            "probes_come_too_early",
            "(now >= outage.probe_at and not _is_probing(state, outage))",
            "not _is_probing(state, outage)",
        ),
        (
            "everybody_is_the_probe",
            "(now >= outage.probe_at and not _is_probing(state, outage))",
            "now >= outage.probe_at",
        ),
        (
            "the_wrong_attempt_is_the_probe",
            "outage.probe = turn.id, turn.attempts + 1",
            "outage.probe = turn.id, turn.attempts",
        ),
        ("stalled_probes_count_as_answers", " or (isinstance(event, Failed) and event.again):", ":"),
        (
            "everybody_ends_an_outage",
            "if outage is not None and outage.probe == (event.turn, event.attempt):\n        del",
            "if outage is not None:\n        del",
        ),
        ("answers_let_nobody_go", "        ledger.remind(ledger.now, OutageDue(endpoint))\n", ""),
        ("known_outages_are_not_forgotten", "    state.outages.clear()\n", ""),
        (
            "lost_turns_are_woken_by_settings",
            "        if turn is not None and _refused_since(turn) is not None:\n            backoff.go_on",
            "        if turn is not None:\n            backoff.go_on",
        ),
        (
            "resting_turns_sleep_through_a_reload",
            "            backoff.go_on(ledger, name)\n",
            "            pass\n",
        ),
        ("long_waits_never_end", "        if at <= ledger.now:\n", "        if False:\n"),
        ("long_waits_end_at_once", "        if at <= ledger.now:\n", "        if True:\n"),
        ("long_waits_are_looked_for_once", "    ledger.remind(outage.limit_at, due)\n", ""),
        ("old_turns_have_waited_for_long", "max(turn.opened_at, outage.since) if", "turn.opened_at if"),
        ("new_turns_have_waited_for_long", "max(turn.opened_at, outage.since) if", "outage.since if"),
        ("resting_turns_wait_for_ever", "(*state.queued, *state.resting)", "tuple(state.queued)"),
        ("turns_in_line_wait_for_ever", "(*state.queued, *state.resting)", "tuple(state.resting)"),
        (
            "any_endpoint_is_waited_for",
            "if turn is not None and _endpoint(state, turn) == endpoint:",
            "if turn is not None:",
        ),
        ("stopped_probes_go_on", " or attempt.verdict is not None:", ":"),
    ),
    *mutants(
        "stalls",
        ("outages_count_a_standstill", "        outage.since += lost\n", ""),
        ("probes_do_not_stand_still", "        outage.probe_at += lost\n", ""),
        ("waits_count_a_standstill", "            turn.away_since += lost", "            pass"),
    ),
)
