"""`python -m model_service`: reads its options from standard input, then serves until it is killed.

SIGTERM keeps its default action, which ends the process at once even while the weights load.
"""

import os
import sys
from pathlib import Path

import msgspec

from ipc.bounds import sentence
from ipc.parent_death import die_with
from ipc.service_messages import ServiceStart, ServiceState
from model_service.supervisor_link import SupervisorLink

_PULL = "hermesctl models pull {}"
_OTHER_MODEL = "set base_url, name and api_key_env under [model] in hermes.toml to use another model"


class CannotServe(Exception):
    """The model cannot be served; `hint` says what to do."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(fault)
        self.hint = hint


def main() -> None:
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServiceStart)
    die_with(start.parent_pid)
    link = SupervisorLink(start)
    link.send(ServiceState("starting"))
    try:
        serve(start, link)
    except CannotServe as error:
        link.send(ServiceState("failed", detail=sentence(str(error)), hint=error.hint))
    except Exception as error:
        print(f"model_service: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        link.send(
            ServiceState(
                "failed", detail=sentence(f"the model server did not start: {error}"), hint=_OTHER_MODEL
            )
        )
    # An exit would drop the frame with the reason; the supervisor ends this process after reading it.
    link.beat_forever()


def serve(start: ServiceStart, link: SupervisorLink) -> None:
    """Returns only by an exception."""
    try:
        from model_service.llama import Llama, Options
    except ImportError as error:
        raise CannotServe(f"llama.cpp cannot be loaded: {error}", "pip install xllamacpp") from None
    options = msgspec.convert(start.options, Options)
    check_weights(Path(options.model_path), options.model_bytes, options.alias)
    link.send(ServiceState("warming", detail=f"loading {options.alias}"))
    llama = Llama(options)
    llama.warm_up()
    link.send(ServiceState("ready", detail=options.alias, address=llama.address))
    link.beat_forever()


def check_weights(path: Path, size_bytes: int, alias: str) -> None:
    """A cheap check at every start; the checksum was compared when the weights were pulled."""
    try:
        found = os.stat(path).st_size
    except OSError as error:
        raise CannotServe(
            f"the weights of {alias} cannot be read: {error.strerror}", _PULL.format(alias)
        ) from None
    if found != size_bytes:
        raise CannotServe(
            f"the weights of {alias} are {found:,} bytes instead of {size_bytes:,}", _PULL.format(alias)
        )


if __name__ == "__main__":
    main()
