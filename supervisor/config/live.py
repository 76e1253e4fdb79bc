"""The settings in force: whoever depends on one reads it here at the moment of use, and keeps none."""

from supervisor.config.settings import Settings


class Live:
    """Changed whole or not at all, by a reload."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
