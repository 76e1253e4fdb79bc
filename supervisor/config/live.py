"""The settings in force: code reads them here at the moment of use and keeps no copy."""

from supervisor.config.settings import Settings


class Live:
    """Replaced whole, by a reload."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
