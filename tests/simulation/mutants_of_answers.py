"""The guards of what a turn says and costs over all its attempts, each with what would be without it."""

from tests.simulation.mutant import mutants

MUTANTS_OF_ANSWERS = (
    *mutants(
        "turns",
        ("answers_are_those_of_the_last_attempt", "turn.said_before + event.text", "event.text"),
        ("every_attempt_may_say_it_all", "len(turn.said_before) + len(attempt.said)", "len(attempt.said)"),
        (
            "answers_may_be_of_any_length",
            "    if not _fits(ledger, attempt, len(text)):\n",
            "    if False:\n",
        ),
        ("empty_answers_are_answers", "    if not text.strip():\n", "    if False:\n"),
        (
            "attempts_say_it_all_again",
            "AssignTurn(*assigned, len(turn.said_before),",
            "AssignTurn(*assigned, 0,",
        ),
        ("losses_count_nothing_said", "        said=len(turn.said),\n", ""),
        (
            "failures_cost_nothing",
            "    turn.attempt.spend(event.input_tokens, event.output_tokens)\n",
            "",
        ),
    ),
    *mutants(
        "state",
        (
            "lost_words_are_forgotten",
            "self.said_before, self.attempt = self.said, None",
            "self.attempt = None",
        ),
        (
            "lost_attempts_cost_nothing",
            '        self.input_tokens, self.output_tokens = spent["input_tokens"], spent["output_tokens"]\n',
            "",
        ),
        ("a_frame_takes_tokens_back", "max(self.input_tokens, input_tokens)", "input_tokens"),
    ),
)
