"""Guards of binding, of the parts of the line, and of what makes room, each with the source without it."""

from tests.simulation.mutant import Mutant, mutants

MUTANTS_OF_SUPPLY: tuple[Mutant, ...] = (
    *mutants(
        "line",
        ("sessions_join_the_line_again", "    if session not in state.queued:\n", "    if True:\n"),
        (
            "joined_sessions_are_not_listed",
            "    state.resting.pop(session, None)\n    enlist(state, session)\n",
            "    state.resting.pop(session, None)\n",
        ),
        ("thrown_back_sessions_keep_their_rank", "Place(lowest - 1, now)", "Place(highest + 1, now)"),
        ("sessions_that_left_have_a_worker", "    state.own.pop(session, None)\n", ""),
        ("settling_workers_are_own_ones", "        if seat in state.idle:\n", "        if True:\n"),
        (
            "sessions_with_a_worker_are_listed",
            "            state.own[session] = None\n        return\n",
            "            state.own[session] = None\n",
        ),
        (
            "a_second_agent_is_not_noticed",
            "    if place.line != turn.agent:\n",
            "    if place.line is None:\n",
        ),
        ("places_of_another_rank_count", "(place.rank, place.line) == (rank, agent)", "place.line == agent"),
        ("places_in_another_line_count", "(place.rank, place.line) == (rank, agent)", "place.rank == rank"),
    ),
    *mutants(
        "pool",
        (
            "ready_workers_are_not_told_to_their_session",
            "    line.enlist(ledger.state, worker.session)\n",
            "",
        ),
        ("sessions_of_the_dead_are_not_listed", "        line.enlist(state, session)\n", "        pass\n"),
        ("sessions_of_the_dead_keep_their_seat", "        del state.seat_of[session]\n", "        pass\n"),
        ("dead_workers_are_still_own", "        state.own.pop(session, None)\n        line", "        line"),
        (
            "killed_workers_are_still_own",
            "DYING, why\n    index(ledger.state, worker)\n    if worker.session is not None:",
            "DYING, why\n    index(ledger.state, worker)\n    if False:",
        ),
        ("starts_must_be_reported_first", "        worker.is_ready_early = True  #", "        pass  #"),
        ("starts_need_no_report", "    if worker.pid:\n", "    if True:\n"),
        ("reported_starts_are_ready", "if worker.is_ready_early and worker", "if worker"),
        ("early_readiness_is_inherited", 'worker.is_ready_early = 0, 0, "", False', 'worker.why = 0, 0, ""'),
        ("recycled_workers_are_not_missed", "    worker.away_since = ledger.now\n    kill(", "    kill("),
        (
            "levels_are_forgotten",
            "worker.pid, worker.level = event.pid, event.level",
            "worker.pid = event.pid",
        ),
        ("agents_are_used_once", "    state.agents_used.pop(worker.agent, None)\n", ""),
    ),
    *mutants(
        "placing",
        (
            "turns_are_the_default_agents",
            "agent = ledger.state.policy.agent_of(session.name)",
            'agent = "default"',
        ),
        ("own_workers_are_not_met", "        for name in state.own\n", "        for name in ()\n"),
        ("the_last_in_line_comes_first", "_, name, seat = min(found)", "_, name, seat = max(found)"),
    ),
    *mutants(
        "supply",
        (
            "ready_workers_are_not_counted",
            "found = {agent: len(seats) for agent, seats in state.unbound.items()}",
            "found: _Seats = dict.fromkeys(state.unbound, 0)",
        ),
        ("starting_workers_are_not_counted", "found[agent] = found.get(agent, 0) + 1", "pass"),
        ("dying_workers_are_not_counted", "needs[len(state.dying) - len(state.stuck) :]", "needs"),
        ("drained_services_recycle", "    if state.draining:\n        return\n", ""),
        (
            "other_agents_keep_their_session",
            "    for worker in _of_another_agent(state):\n",
            "    for worker in ():\n",
        ),
        (
            "nobody_makes_room",
            "        pool.recycle(ledger, replaced)\n",
            "        pass\n",
        ),
        (
            "failing_agents_take_every_seat",
            "        elif _failing(state, need.agent) < _FAILING_MAX:\n",
            "        else:\n",
        ),
        ("one_failure_stops_an_agent", "_FAILING_MAX = 2", "_FAILING_MAX = 1"),
        (
            "failing_seats_are_no_spares",
            " - sum(fresh.values()) - len(state.empty)):",
            " - sum(fresh.values())):",
        ),
        ("spares_of_other_agents_do_not_count", "range(spares - sum(fresh.values())", "range(spares"),
        ("spares_are_kept_for_the_line_too", "later - max(0, needed - now)", "later"),
        (
            "sessions_with_a_worker_need_one",
            "        if name not in state.seat_of and turn",
            "        if turn",
        ),
        (
            "seats_are_the_default_agents",
            "agent = need.agent or _spare_agent(state, fresh)",
            "agent = _spare_agent(state, fresh)",
        ),
        ("failed_seats_try_the_same_agent", "    if worker.starts_failed:\n", "    if False:\n"),
        ("needs_are_met_twice", "        needs.remove(need)\n", "        pass\n"),
        ("spares_are_for_one_agent", "if fresh.get(agent, 0) <= 0), used[0])", "if False), used[0])"),
        ("old_agents_get_the_spares", "list(reversed(state.agents_used))", "list(state.agents_used)"),
        ("sessions_in_line_lose_their_worker_first", "session in state.queued or session in", "session in"),
        ("spares_take_what_is_in_use", "    if need.rank is None:\n        return None\n", ""),
        ("fresh_workers_never_make_room", "        if seats and fresh[agent] > 0:\n", "        if False:\n"),
        (
            "fresh_workers_that_are_needed_make_room",
            "        if seats and fresh[agent] > 0:\n",
            "        if seats:\n",
        ),
        (
            "those_behind_keep_their_workers",
            "    last = max(state.own, key=lambda name: state.queued[name].rank, default=None)\n",
            "    last = None\n",
        ),
        ("those_before_lose_their_workers", " and state.queued[last].rank > need.rank:", ":"),
    ),
    *mutants(
        "renewal",
        ("every_agent_is_renewed", "(event.agents is None or worker.agent in event.agents)", "True"),
    ),
)
