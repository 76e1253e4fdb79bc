"""Scheduled work that no turn waits for: bounds the journal, the clips and the workspaces."""

from ipc.places import Places
from supervisor.care import Care
from supervisor.clock import Clock
from supervisor.config.live import Live
from supervisor.containment import Containment
from supervisor.engine import Engine
from supervisor.host.folder_identity import Folders
from supervisor.journal.journal import Journal
from supervisor.journal.opening import ChosenJournal
from supervisor.stt.clip_store import ClipStore, SharedClips, clips_in_use
from supervisor.telemetry.log import Log
from supervisor.workers.workspace_quota import WorkspaceCare
from supervisor.workers.workspaces import Workspaces


class Upkeep:
    """Pruned sessions take their clips and workspaces along."""

    def __init__(
        self,
        *,
        places: Places,
        folders: Folders,
        workspaces: Workspaces,
        journal: ChosenJournal,
        engine: Engine,
        live: Live,
        clock: Clock,
        log: Log,
        contain: Containment,
        shared_clips: SharedClips | None = None,
    ) -> None:
        self.clips = ClipStore(
            folder=places.clips,
            check=folders.check,
            live=live,
            known=journal.read,
            asking=journal.asking,
            in_use=lambda: clips_in_use(engine.state),
            clock=clock,
            log=log,
            contain=contain,
            shared=shared_clips,
        )
        self._workspaces = WorkspaceCare(
            workspaces=workspaces,
            known=journal.read,
            asking=journal.asking,
            live=live,
            engine=engine,
            log=log,
            contain=contain,
        )
        self.journal = Care(
            journal=journal,
            path=places.journal,
            check=folders.check,
            live=live,
            clock=clock,
            log=log,
            pruned=self._pruned,
            contain=contain,
            server=None if isinstance(journal, Journal) else journal,
        )

    def open(self) -> None:
        self.journal.open()
        self.clips.open()
        self._workspaces.open()

    def close(self) -> None:
        self.journal.close()
        self.clips.close()

    def _pruned(self) -> None:
        self.clips.prune()
        self._workspaces.prune()
