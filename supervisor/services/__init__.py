"""Children that are not workers: started, watched, ended, restarted; their state is always visible."""

from supervisor.services.service import ServiceChanged
from supervisor.services.service_spec import Needed, RestartPolicy, ServiceSpec
from supervisor.services.services import Services

__all__ = ["Needed", "RestartPolicy", "ServiceChanged", "ServiceSpec", "Services"]
