"""The guards of a restart in place, each with what the source would be without it."""

from tests.simulation.mutant import mutants

MUTANTS_OF_KEEPING = mutants(
    "kept_turns",
    ("numbers_begin_anew", "max(state.incarnations, event.incarnations)", "state.incarnations"),
    ("offers_are_forgotten", "turn.attempt.offered = set(kept.offered)", "pass"),
    ("kept_workers_stay_for_ever", "turns_had = policy.turns_per_worker_max", "turns_had = 0"),
    ("kept_workers_are_not_watched", "    turns.watch(ledger, session, turn)", "    pass"),
    ("seats_of_kept_workers_are_free", "    pool.index(ledger.state, worker)", "    pass"),
    ("kept_workers_are_not_bound", "    ledger.state.seat_of[session.name] = kept.seat", "    pass"),
    (
        "kept_workers_are_the_default_agents",
        "worker.agent, worker.level = turn.agent,",
        "_, worker.level = 0,",
    ),
)
