"""Children that are not workers: started, watched, ended, started again; their state is always visible."""

from supervisor.services.services import Services
from supervisor.services.spec import Needed, RestartPolicy, ServiceSpec

__all__ = ["Needed", "RestartPolicy", "ServiceSpec", "Services"]
