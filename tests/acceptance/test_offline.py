"""Voice where the network leads nowhere: the weights on the disk are used, and nobody is asked for them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc import interpreter
from ipc.messages import Queue
from tests.acceptance.sight import stopped
from tests.acceptance.test_voice import START_SECONDS, outcome, speak, stt
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.stt_service.sounds import SAID, clip
from tests.stt_service.wording import errors
from tests.waiting import until
from tests.weights import pulled

DEVICE = "nowhere"
# A network whose every packet is lost: a connection waits for minutes, as with a hub that does not answer.
_LOST = (
    "ip link set lo up && "
    f"ip tuntap add mode tun name {DEVICE} && ip addr add 192.0.2.1/24 dev {DEVICE} && "
    f"ip link set {DEVICE} up && ip route add default dev {DEVICE}"
)
# Columns of /proc/net/dev and of the line of UDP in /proc/net/snmp.
_SENT, _DROPPED, _DATAGRAMS = 9, 11, 4
# A datagram to an address of the network that exists in documents only.
_ASK = "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'?', ('203.0.113.5', 53))"


class Offline(Service):
    """In a network namespace of its own."""

    def launch(self) -> None:
        command = interpreter.command("supervisor", "--home", str(self.home))
        with (self.home / "supervisor.log").open("ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--net", "sh", "-c", f'{_LOST} && exec "$@"', "sh", *command],
                stdout=log,
                stderr=log,
                env=interpreter.without_code(os.environ),
                start_new_session=True,
            )

    def sent(self) -> tuple[int, int]:
        """Packets that were to go through DEVICE, where they are dropped; and datagrams, as of a resolver."""
        assert self.process is not None
        net = Path(f"/proc/{self.process.pid}/net")
        (counts,) = [
            line.partition(":")[2].split()
            for line in (net / "dev").read_text().splitlines()
            if line.strip().startswith(DEVICE)
        ]
        _, datagrams = [line.split() for line in (net / "snmp").read_text().splitlines() if "Udp:" in line]
        return int(counts[_SENT]) + int(counts[_DROPPED]), int(datagrams[_DATAGRAMS])

    def ask_the_network(self) -> None:
        """From a process beside the supervisor."""
        assert self.process is not None
        line = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", sys.executable, "-c", _ASK]
        subprocess.run(line, check=True, timeout=30)


@pytest.fixture
def offline(tmp_path: Path, model: FakeModel) -> Iterator[Offline]:
    probe = subprocess.run(["unshare", "--net", "sh", "-c", _LOST], capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"this host gives no network of one's own: {probe.stderr.strip()}")
    home = tmp_path / "home"
    home.mkdir()
    (home / "models").symlink_to(pulled("tiny.en"))
    service = Offline(home, settings_for(model, workers="count = 1", stt="echo = true"))
    with service:
        yield service


def test_c5_a_start_without_network_is_a_visible_warm_up_and_asks_nobody(offline: Offline) -> None:
    """A clip that comes meanwhile waits for it, and is heard."""
    until(lambda: stt(offline)["state"] == "warming", START_SECONDS)
    with stopped(stt(offline)["pid"]):
        row = stt(offline)
        assert (row["state"], row["detail"]) == ("warming", "loading tiny.en")
        assert "warming" in offline.hermesctl("services").stdout
        spoken = speak(offline, "c5", clip("young_man"))
        (waiting,) = offline.client().rows(Queue("c5"))
        assert (waiting["message"], waiting["state"]) == (spoken, "transcribing")
    heard = outcome(offline.listen("c5"), spoken)
    assert heard.type == "transcript.ready"
    assert errors(SAID["young_man"], heard.fields["text"]) <= 1
    assert offline.sent() == (0, 0)
    # Whatever is asked for would be counted.
    offline.ask_the_network()
    assert min(offline.sent()) > 0
