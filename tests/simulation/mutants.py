"""The guards of the rules, each with what the source would be without it; no test may stay green then."""

from tests.simulation.mutant import Mutant, mutants
from tests.simulation.mutants_of_answers import MUTANTS_OF_ANSWERS
from tests.simulation.mutants_of_bounds import MUTANTS_OF_BOUNDS
from tests.simulation.mutants_of_cursors import MUTANTS_OF_CURSORS
from tests.simulation.mutants_of_keeping import MUTANTS_OF_KEEPING
from tests.simulation.mutants_of_messages import MUTANTS_OF_MESSAGES
from tests.simulation.mutants_of_outages import MUTANTS_OF_OUTAGES
from tests.simulation.mutants_of_scale import MUTANTS_OF_SCALE
from tests.simulation.mutants_of_supply import MUTANTS_OF_SUPPLY
from tests.simulation.mutants_of_voice import MUTANTS_OF_VOICE

MUTANTS: tuple[Mutant, ...] = (
    *MUTANTS_OF_BOUNDS,
    *MUTANTS_OF_CURSORS,
    *MUTANTS_OF_KEEPING,
    *MUTANTS_OF_OUTAGES,
    *MUTANTS_OF_SCALE,
    *MUTANTS_OF_SUPPLY,
    *mutants(
        "recovery",
        (
            "old_messages_are_answered",
            "    if session.turn or session.held or not session.waiting:",
            "    if True:",
        ),
        ("held_messages_grow_old", "if session.turn or session.held or not", "if session.turn or not"),
        ("the_oldest_message_counts", "max(message.at for message in", "min(message.at for message in"),
        ("messages_behind_a_turn_grow_old", "if session.turn or session.held", "if session.held"),
    ),
    *MUTANTS_OF_VOICE,
    *mutants(
        "pool",
        ("frames_of_another_epoch_count", "who.epoch != state.epoch or ", ""),
        ("frames_of_another_incarnation_count", " or worker.incarnation != who.incarnation:\n", ":\n"),
        ("dying_workers_are_heard", "return worker if worker.state in _LIVING else None", "return worker"),
        (
            "empty_seats_are_heard",
            "_LIVING = (WorkerState.STARTING, WorkerState.IDLE, WorkerState.BUSY)",
            "_LIVING = tuple(state for state in WorkerState if state is not WorkerState.DYING)",
        ),
        ("busy_workers_get_ready", "if worker is None or worker.turn is not None:", "if worker is None:"),
        ("nobody_is_recycled", "worker.turns >= ledger.state.policy.turns_per_worker_max", "False"),
        (
            "killed_twice",
            "    if worker.state not in _LIVING:\n        return\n    if worker",
            "    if worker",
        ),
        (
            "killed_workers_stay_where_they_were",
            "why = WorkerState.DYING, why\n    index(ledger.state, worker)\n",
            "why = WorkerState.DYING, why\n",
        ),
        (
            "dead_workers_stay_where_they_were",
            "    worker.state = WorkerState.RESTING\n    index(state, worker)\n",
            "    worker.state = WorkerState.RESTING\n",
        ),
        ("failed_starts_need_no_rest", "    if not failed_to_start:\n", "    if True:\n"),
        ("useless_workers_need_no_rest", "failed_to_start = useless or ", "failed_to_start = "),
        ("late_starters_need_no_rest", "useless or worker.why == NEVER_READY", "useless"),
        ("seats_never_fail", "hopeless = worker.starts_failed >= state", "hopeless = False and state"),
        ("rests_do_not_grow", "2 ** min(worker.starts_failed - 1, 16)", "1"),
        ("nothing_is_forgiven", "        worker.starts_failed = 0  #", "        pass  #"),
        (
            "ready_reminders_of_another_incarnation",
            "worker.incarnation != due.incarnation or worker.turns != due.turns",
            "worker.turns != due.turns",
        ),
        ("ready_reminders_of_another_turn", " or worker.turns != due.turns:", ":"),
        ("settling_takes_for_ever", "WorkerState.STARTING or settling:", "WorkerState.STARTING:"),
        ("starting_takes_for_ever", "if worker.state is WorkerState.STARTING or settling", "if settling"),
        (
            "life_reminders_of_another_incarnation",
            "worker.incarnation != due.incarnation or worker.state not in _LIVING",
            "worker.state not in _LIVING",
        ),
        (
            "life_reminders_of_empty_seats",
            "worker.incarnation != due.incarnation or worker.state not in _LIVING",
            "worker.incarnation != due.incarnation",
        ),
        (
            "rounded_pulses_are_awaited_for_ever",
            "if ledger.now >= worker.pulse_at + limit:",
            "if ledger.now - worker.pulse_at >= limit:",
        ),
        ("pulse_is_not_watched", 'kill(ledger, worker, f"its process gave', 'str(f"its process gave'),
        (
            "loop_is_not_watched",
            "elif worker.state is WorkerState.IDLE and ledger.now >=",
            "elif False and ledger.now >=",
        ),
        ("busy_loops_are_watched", "elif worker.state is WorkerState.IDLE and ledger", "elif ledger"),
        ("loop_counts_as_pulse", 'if event.kind == "pulse":', "if True:"),
        (
            "rest_reminders_of_another_incarnation",
            "if worker is not None and worker.incarnation == due.incarnation:\n        vacate",
            "if worker is not None:\n        vacate",
        ),
        (
            "starts_of_another_incarnation",
            "worker.incarnation == event.incarnation and not worker.is_empty",
            "not worker.is_empty",
        ),
        ("starts_of_the_dead", " and not worker.is_empty:", ":"),
    ),
    *mutants(
        "turns",
        (
            "stopped_attempts_are_heard",
            "    if found is None or found[2].verdict is not None:",
            "    if found is None:",
        ),
        ("frames_of_another_turn_count", "if turn.id != turn_id or attempt", "if attempt"),
        ("frames_of_another_attempt_count", " or attempt.number != number", ""),
        ("frames_of_another_worker_count", " or attempt.who != who:", ":"),
        (
            "assigned_workers_stay_idle",
            "WorkerState.BUSY, turn.id\n    pool.index(ledger.state, worker)\n",
            "WorkerState.BUSY, turn.id\n",
        ),
        (
            "bound_workers_are_bound_again",
            "    if worker.session is None:\n        pool.bind",
            "    if True:\n        pool.bind",
        ),
        (
            "nobody_is_bound",
            "    if worker.session is None:\n        pool.bind",
            "    if False:\n        pool.bind",
        ),
        (
            "steering_is_not_repeated",
            "    for message in with_words(session.waiting):\n        steer(ledger, turn, message)\n",
            "",
        ),
        ("all_messages_steer", "    if message.busy is not BusyMode.STEER:\n        return\n", ""),
        (
            "stopped_attempts_are_steered",
            "attempt is None or attempt.verdict is not None or message.id in",
            "attempt is None or message.id in",
        ),
        ("progress_is_not_noted", "    attempt.progress_at = ledger.now\n", ""),
        ("steered_messages_stay_waiting", "    line.take(ledger.state, session, message)\n", ""),
        (
            "anything_counts_as_steered",
            "    if message is None or turn.attempt is None or message.id not in turn.attempt.offered:\n"
            "        return\n",
            "",
        ),
        (
            "failed_attempts_are_never_repeated",
            "event.again and turn.losses + 1 <",
            "False and turn.losses + 1 <",
        ),
        (
            "failed_attempts_are_repeated_for_ever",
            "event.again and turn.losses + 1 < ledger.state.policy.attempts_max",
            "event.again",
        ),
        ("failure_is_always_repeated", "if event.again and turn", "if turn"),
        (
            "finished_workers_stay_busy",
            "    pool.index(ledger.state, worker)\n    pool.expect",
            "    pool.expect",
        ),
        ("finished_workers_are_not_awaited", "    pool.expect_ready(ledger, worker)\n", ""),
        ("interrupted_twice", " or (turn.attempt and turn.attempt.verdict):", ":"),
        (
            "verdicts_are_forgotten",
            "    if attempt.verdict is not None:\n        close",
            "    if False:\n        close",
        ),
        ("lost_for_ever", "    if turn.losses < ledger.state.policy.attempts_max:\n", "    if True:\n"),
        ("losses_are_not_counted", "reason, losses=turn.losses + 1)", "reason, losses=turn.losses)"),
        (
            "lost_turns_leave_the_road",
            "    backoff.again(ledger, session, turn)\n",
            "    pass\n",
        ),
        ("failed_verdicts_interrupt", "    if verdict.state is TurnState.FAILED:\n", "    if False:\n"),
        (
            "what_waits_stays_waiting",
            "    if session.waiting:\n        ledger.state.openable",
            "    if False:\n        ledger.state.openable",
        ),
        (
            "nobody_watches_the_deadline",
            "        ledger.remind(ledger.now + policy.deadline_seconds -",
            "        str(-",
        ),
    ),
    *mutants(
        "tool_calls",
        ("tools_end_without_beginning", "    if name is None:\n        return\n", '    name = name or ""\n'),
    ),
    *mutants(
        "time_limits",
        ("deadlines_of_another_turn", "turn.id != due.turn or turn.pauses", "turn.pauses"),
        ("deadlines_of_before_a_question", " or turn.pauses != due.pauses:", ":"),
        (
            "deadlines_stop_twice",
            "    elif turn.attempt.verdict is None:\n        turns.stop",
            "    else:\n        turns.stop",
        ),
        (
            "deadlines_wait_for_an_attempt",
            "    if turn.attempt is None:\n        turns.close(ledger, session, turn, verdict",
            "    if False:\n        turns.close(ledger, session, turn, verdict",
        ),
        (
            "silence_of_another_turn",
            "attempt is None or turn.id != due.turn or attempt.number",
            "attempt is None or attempt.number",
        ),
        ("silence_of_another_attempt", " or attempt.number != due.attempt:", ":"),
        ("progress_is_not_looked_at", "    if ledger.now < due_at:", "    if False:"),
    ),
    *MUTANTS_OF_ANSWERS,
    *MUTANTS_OF_MESSAGES,
    *mutants(
        "placing",
        ("turns_open_while_draining", "    if state.draining:\n", "    if False:\n"),
        ("turns_open_beside_open_ones", "session and session.turn is None and not", "session and not"),
        ("held_sessions_open_turns", " and not session.held and _has", " and _has"),
        (
            "nothing_is_collected",
            "        return before.busy is BusyMode.COLLECT\n",
            "        return False\n",
        ),
        (
            "everything_is_collected",
            "        return before.busy is BusyMode.COLLECT\n",
            "        return True\n",
        ),
        ("interrupts_go_alone", "    return message.busy is not BusyMode.QUEUE\n", "    return False\n"),
        ("queued_go_together", "    return message.busy is not BusyMode.QUEUE\n", "    return True\n"),
        ("together_without_end", "        if room < 0:\n", "        if False:\n"),
        ("nothing_joins", "            _join(ledger, session, session.turn)\n", "            pass\n"),
        ("begun_turns_are_joined", "        if not session.turn.has_begun:\n", "        if True:\n"),
        (
            "what_joins_is_no_content",
            "        turn.content_at = max(message.at for message in messages)\n        ids",
            "        ids",
        ),
        ("turns_are_placed_while_draining", "if state.draining or state.model", "if state.model"),
        ("turns_are_placed_without_a_model", " or state.model.state is ModelState.WAITING:", ":"),
        ("failed_models_keep_turns_waiting", "        _fail_all(ledger)\n", ""),
        ("failed_models_are_used", "    if state.model.state is ModelState.FAILED:\n", "    if False:\n"),
        ("spares_are_used_up", " and free_seats(state) > 0 and", " and"),
    ),
    *mutants(
        "recovery",
        (
            "verdicts_do_not_survive",
            "if turn.attempt is not None and turn.attempt.verdict is not None:",
            "if False:",
        ),
        (
            "running_turns_are_not_lost",
            "if turn.attempt is not None and not turns.count_loss(",
            "if False and not turns.count_loss(",
        ),
        (
            "queued_turns_are_forgotten",
            "        line.join(ledger.state, session.name, ledger.now)\n",
            "        pass\n",
        ),
        ("what_waits_is_forgotten", "if session.turn is None and session.waiting:", "if False:"),
        (
            "old_turns_are_resumed",
            "    if now - turn.content_at > policy.freshness_seconds:\n",
            "    if False:\n",
        ),
        ("never_means_auto", 'policy.resume == "never" and turn.attempts > 0', "False"),
        (
            "never_means_not_even_begun",
            'policy.resume == "never" and turn.attempts > 0',
            'policy.resume == "never"',
        ),
        (
            "questions_do_not_survive",
            "    if turn.question is not None:\n        return  #",
            "    if False:\n        return  #",
        ),
        ("ask_means_auto", 'ledger.state.policy.resume == "ask" and turn.attempts > 0', "False"),
        (
            "ask_means_not_even_begun",
            'ledger.state.policy.resume == "ask" and turn.attempts > 0',
            'ledger.state.policy.resume == "ask"',
        ),
        ("auto_means_ask", 'ledger.state.policy.resume == "ask" and turn.attempts > 0', "turn.attempts > 0"),
        ("poison_is_failed_again", "turn, _ENDED):\n        return\n", "turn, _ENDED):\n        pass\n"),
        ("seats_stay_empty", "    pool.fit(ledger)\n", ""),
        ("stop_takes_turns", "    admission.change(ledger, Intake.STOPPING)\n", ""),
        ("stop_leaves_nothing", "            turns.leave(", "            (lambda *_: None)("),
        ("stop_forgets_verdicts", " and turn.attempt.verdict is None:", ":"),
    ),
    *mutants(
        "questions",
        (
            "questions_need_no_call",
            "if found is None or event.call not in found[2].calls:",
            "if found is None:",
        ),
        ("asking_workers_keep_their_seat", "    turns.give_back(ledger, event.who)\n", ""),
        (
            "asking_attempts_stay_open",
            "    turn.end_attempt()\n",
            "",
        ),
        ("questions_are_not_counted", "    turn.questions += 1\n", "    turn.questions = 1\n"),
        (
            "time_runs_while_a_human_thinks",
            "    turns.pause(ledger, turn)\n",
            "",
        ),
        (
            "questions_are_no_content",
            "turn.ran_seconds, turn.content_at = 0.0, ledger.now",
            "turn.ran_seconds = 0.0",
        ),
        ("any_question_can_be_answered", " or turn.question.id != event.question:", ":"),
        (
            "messages_answer_nothing",
            "if turn is None or turn.question is None or message.at < turn.content_at:\n        return False",
            "if True:\n        return False",
        ),
        (
            "passing_messages_are_swallowed",
            "bool(turn.question.call) or _plain(message.text) in turn.question.choices",
            "True",
        ),
        (
            "agents_take_only_their_choices",
            "bool(turn.question.call) or _plain(message.text)",
            "_plain(message.text)",
        ),
        (
            "answers_wait_for_a_turn_too",
            "        line.take(ledger.state, session, message)\n",
            "        pass\n",
        ),
        (
            "answered_questions_stay_open",
            "turn.question, turn.content_at = None, ledger.now",
            "turn.content_at = ledger.now",
        ),
        (
            "answers_are_no_content",
            "turn.question, turn.content_at = None, ledger.now",
            "turn.question = None",
        ),
        (
            "answered_turns_leave_the_road",
            "        line.join(ledger.state, session.name, ledger.now)\n",
            "        pass\n",
        ),
        ("anything_means_go_on", "if question.call or _plain(text) == _GO_ON:", "if True:"),
        (
            "agents_must_be_answered_with_yes",
            "if question.call or _plain(text) == _GO_ON:",
            "if _plain(text) == _GO_ON:",
        ),
        ("yes_has_one_spelling", "return text.strip().lower()", "return text"),
    ),
    *mutants(
        "decide",
        (
            "deaths_of_another_incarnation",
            "worker.incarnation != event.incarnation or worker.is_empty",
            "worker.is_empty",
        ),
        ("deaths_of_the_dead", " or worker.is_empty:", ":"),
        ("nothing_expires", "if _expire(ledger) or not", "if not"),
        ("what_expires_settles_nothing", "if _expire(ledger) or not", "_expire(ledger)\n    if not"),
        (
            "unreachable_workers_stay",
            "    if worker is not None:\n        pool.kill",
            "    if False:\n        pool.kill",
        ),
        ("deaths_cost_no_attempt", "    turns.worker_gone(ledger, worker, event.proof, event.words)\n", ""),
    ),
)
