"""Guards of draining, scaling, the line and the limits, each with what the source would be without it."""

from tests.simulation.mutant import Mutant, mutants

MUTANTS_OF_SCALE: tuple[Mutant, ...] = (
    *mutants(
        "admission",
        ("drain_is_ignored", "        change(ledger, Intake.DRAINING)\n", "        pass\n"),
        ("undrain_is_ignored", "    change(ledger, Intake.OPEN)\n", ""),
        (
            "stopped_services_take_turns_again",
            "    if state.intake is Intake.STOPPING:\n        ledger.answer = _STOPPING\n        return\n"
            "    change(",
            "    change(",
        ),
        ("drain_undoes_a_stop", "    if state.intake is Intake.OPEN:\n", "    if True:\n"),
        ("drained_senders_are_not_told", "    if state.intake is Intake.DRAINING:\n", "    if False:\n"),
        (
            "sessions_wait_without_end",
            "    if len(session.waiting) >= policy.waiting_max:\n",
            "    if False:\n",
        ),
        ("the_queue_has_no_end", "    if line.backlog(state) >= policy.queue_max:\n", "    if False:\n"),
        (
            "strained_hosts_promise",
            "        return Denied(strain.error, strain.hint, _STRAIN_RETRY_SECONDS)\n",
            "        continue\n",
        ),
        ("strain_begins_anew", "before[name].since if name in before else ledger.now", "ledger.now"),
        ("memory_is_not_read", "event.memory_free_bytes < policy.memory_free_bytes_min", "False"),
        ("pressure_is_not_read", " and percent > limit:", " and False:"),
        ("pressure_at_the_limit_counts", " and percent > limit:", " and percent >= limit:"),
    ),
    *mutants(
        "line",
        ("messages_are_not_counted", "    state.waiting += 1\n", ""),
        ("taken_messages_are_counted", "    state.waiting -= 1\n", ""),
        ("the_lost_go_last", "    state.queued.move_to_end(session, last=False)\n", ""),
        ("nobody_leaves_the_line", "    state.queued.pop(session, None)\n", "    pass\n"),
        (
            "turns_do_not_count_as_backlog",
            "    return state.waiting + len(state.queued)",
            "    return state.waiting",
        ),
        (
            "messages_do_not_count_as_backlog",
            "    return state.waiting + len(state.queued)",
            "    return len(state.queued)",
        ),
    ),
    *mutants(
        "pool",
        ("missing_seats_stay_missing", "islice(free, max(0, missing))", "islice(free, 0)"),
        ("surplus_seats_stay", "    if _surplus(state) <= 0:\n        return []\n", "    return []\n"),
        ("the_busy_are_retired", "if each.state in _AT_LEISURE)", "if each.state is not WorkerState.DYING)"),
        ("the_low_seats_leave_first", "-worker.seat)", "worker.seat)"),
        (
            "retired_seats_are_filled_again",
            "    if len(state.workers) - len(state.stuck) > wanted(state):\n",
            "    if False:\n",
        ),
        ("the_stuck_have_their_seats", "len(workers) + len(state.stuck)", "len(workers)"),
        (
            "seats_of_the_stuck_retire_others",
            "len(state.workers) - len(state.stuck) > ",
            "len(state.workers) > ",
        ),
        ("the_dying_count_as_staying", " - len(state.dying) - wanted(state)", " - wanted(state)"),
        (
            "killed_workers_are_not_missed",
            "        worker.away_since = ledger.now\n    worker.state, worker.why",
            "        pass\n    worker.state, worker.why",
        ),
        ("seats_that_fail_call_for_spares", "    worker.away_since = None  # what", "    pass  # what"),
        ("spares_are_never_given_up", "    spares.look(ledger)\n", ""),
    ),
    *mutants(
        "spares",
        ("spares_never_grow", "        state.spares_more = more\n", "        pass\n"),
        ("spares_grow_while_memory_is_short", " and not state.strains:", ":"),
        ("spares_have_no_end", "min(needed, state.policy.busy_seats)", "needed"),
        ("spares_come_on_top", " - state.policy.spares)", ")"),
        (
            "spares_are_looked_at_once",
            "    if state.spares_more:\n        ledger.remind",
            "    if False:\n        ledger.remind",
        ),
        ("demand_never_fades", "exp((state.demand.at - now) / _WINDOW_SECONDS)", "1"),
    ),
    *mutants(
        "placing",
        ("strained_hosts_use_every_seat", "(1 if state.strains else state", "(state"),
        ("strained_hosts_stand_still", "(1 if state.strains else", "(0 if state.strains else"),
    ),
    *mutants(
        "turns",
        (
            "places_are_never_taken_over",
            "    if not replaced or session.held or ledger.state.draining:\n",
            "    if True:\n",
        ),
        (
            "held_sessions_keep_their_place",
            " or session.held or ledger.state.draining:",
            " or ledger.state.draining:",
        ),
        (
            "drained_sessions_keep_their_place",
            " or session.held or ledger.state.draining:",
            " or session.held:",
        ),
        (
            "clips_keep_a_place",
            "session.waiting and not session.waiting[0].is_transcribing",
            "session.waiting",
        ),
    ),
)
