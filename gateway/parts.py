"""The parts of a running gateway that handlers use."""

from dataclasses import dataclass
from pathlib import Path

from gateway.credentials import Credentials
from gateway.limiter import Limiter
from gateway.open_streams import OpenStreams
from gateway.openai.open_requests import OpenRequests
from gateway.openai.session_choice import SessionChoice
from gateway.session_feed import SessionFeeds
from gateway.supervisor_client import SupervisorClient
from gateway.tokens import TokenStore
from gateway.traffic import Traffic
from gateway.watching import Watching


@dataclass(frozen=True)
class Parts:
    supervisor: SupervisorClient
    feeds: SessionFeeds
    watching: Watching
    clips: Path
    tokens: TokenStore
    limiter: Limiter
    credentials: Credentials
    streams: OpenStreams
    traffic: Traffic
    # Of the OpenAI API.
    sessions: SessionChoice
    requests: OpenRequests
