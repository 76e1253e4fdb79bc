"""[budgets.turn], [budgets.session] and [budgets.day]: what may be used before a person is asked."""

from collections.abc import Mapping
from dataclasses import dataclass

from supervisor.config.fields import COST, key, maybe, whole
from supervisor.config.toml_file import SettingsFile

SCOPES = ("turn", "session", "day")


@dataclass(frozen=True)
class Budget:
    """[budgets.SCOPE]: limits of tokens, and of their cost in the currency of the prices."""

    cost_max: float | None = key("cost_max", maybe(COST))
    tokens_max: int | None = key("tokens_max", maybe(whole(1, 10**12)))

    @property
    def limits(self) -> dict[str, int]:
        """Return the limits by what they count: tokens, or millionths of the currency."""
        cost = max(1, round(self.cost_max * 1_000_000)) if self.cost_max is not None else None
        found = {"cost": cost, "tokens": self.tokens_max}
        return {what: limit for what, limit in found.items() if limit is not None}


def refuse_unknown_scopes(source: SettingsFile, budgets: Mapping[str, Budget]) -> None:
    for name in budgets:
        if name not in SCOPES:
            hint = "use [budgets.turn], [budgets.session] or [budgets.day]"
            raise source.error(("budgets", name), "is no budget", hint)
