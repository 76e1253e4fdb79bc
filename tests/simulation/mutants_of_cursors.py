"""The guards of cursors, each with what the source would be without it."""

from tests.simulation.mutant import mutants

MUTANTS_OF_CURSORS = mutants(
    "cursors",
    (
        "cursors_move_beyond_the_feed",
        "if session is None or event.seq > session.seq:",
        "if session is None:",
    ),
    ("cursors_move_back", "elif event.seq <= event.stands_at:", "elif event.seq == event.stands_at:"),
    ("cursors_move_to_where_they_stand", "elif event.seq <= event.stands_at:", "elif False:"),
    ("cursors_are_made_up_for_ever", "elif event.stands_at == 0 and event.cursors >=", "elif False and 0 >="),
)
