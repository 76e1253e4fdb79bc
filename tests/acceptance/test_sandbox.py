"""What `[sandbox]` says holds for the commands of a turn, and loopback gives them nothing without a key."""

from collections.abc import Callable
from pathlib import Path

from tests.acceptance.sight import shell
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.waiting import until
from tests.weights import pulled

_CONNECTS = (
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)' 2>&1 | tail -n 1"
)
_UNIX = "python3 -c 'import socket; print(*(each.family.name for each in socket.socketpair()))'"
# Every way to a socket that leads out: ordinary ones, the worker's own, another ABI, and a daemon's.
_WAYS_OUT = """cat > way.py <<'END'
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
target = ("127.0.0.1", {port})
def call(number, *arguments):
    done = libc.syscall(number, *arguments)
    if done < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return done
def worker_socket():
    pidfd = os.pidfd_open(1)
    for number in range(256):
        try:
            return call(438, pidfd, number, 0)
        except OSError:
            pass
    raise OSError(1, "refused")
def worker_file():
    for name in os.listdir("/proc/1/fd"):
        os.open("/proc/1/fd/" + name, os.O_RDWR)
WAYS = dict(
    tcp=lambda: socket.create_connection(target, 5),
    udp=lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    six=lambda: socket.socket(socket.AF_INET6),
    netlink=lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    vsock=lambda: socket.socket(40, socket.SOCK_STREAM),
    packet=lambda: socket.socket(17, socket.SOCK_RAW),
    x32=lambda: call(0x40000000 + 41, 2, 1, 0),
    uring=lambda: call(425, 8, ctypes.create_string_buffer(120)),
    namespace=lambda: call(272, 0x10000000 | 0x40000000),
    trace=lambda: call(101, 16, 1, 0, 0),
    worker_socket=worker_socket,
    worker_file=worker_file,
)
for name, way in WAYS.items():
    try:
        way()
        print("OPEN", sys.argv[1], name)
    except OSError:
        pass
print("tried", sys.argv[1])
END
python3 way.py command
setsid -w python3 way.py daemon
"""
_ASKS_THE_MODEL = """python3 - <<'END'
import urllib.error, urllib.request
body = b'{"messages": [{"role": "user", "content": "Hello"}], "prompt": "Hello", "max_tokens": 1}'
for key in ({}, {"Authorization": "Bearer guess"}):
    for path in ("/chat/completions", "/completions", "/embeddings"):
        headers = {"Content-Type": "application/json"} | key
        try:
            request = urllib.request.Request("ADDRESS" + path, body, headers)
            print("ANSWERED", path, urllib.request.urlopen(request, timeout=20).status)
        except urllib.error.HTTPError as error:
            print("refused", error.code)
END
"""
# Where a key could be seen from: it is searched for backwards, so that the command does not find itself.
_LOOKS_FOR_KEY = """python3 - <<'END'
import os
key = "KEY_BACKWARDS"[::-1].encode()
places = ["/proc/%s/%s" % (pid, name) for pid in os.listdir("/proc") if pid.isdigit()
          for name in ("environ", "cmdline", "mem")]
for top in ("/etc", "/run", "/tmp", "/var", os.environ["HOME"], FOLDER):
    places += [os.path.join(at, name) for at, _, names in os.walk(top) for name in names]
found = []
for place in places:
    try:
        with open(place, "rb") as file:
            if key in file.read(5000000):
                found.append(place)
    except (OSError, ValueError):
        pass
print("looked at", len(places) > 20, "found", found)
END
"""


def ran(service: Service, model: FakeModel, session: str, command: str) -> str:
    """What the model was told that the command has written."""
    asked = len(model.requests())
    service.say(session, shell(command))
    assert service.listen(session).ending(f"{session}/1").type == "turn.done"
    return str(model.requests()[asked + 1].messages[-1]["content"])


def test_h2_tools_without_network_reach_nothing_and_the_agent_still_reaches_its_model(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    connects = _CONNECTS.format(port=model.base_url.rpartition(":")[2].partition("/")[0])
    closed = make_service(workers="count = 1", sandbox='network = "none"')
    result = ran(closed, model, "closed", f"{connects}; {_UNIX}")
    assert "PermissionError" in result
    assert "AF_UNIX AF_UNIX" in result
    assert "Error" not in ran(make_service(workers="count = 1"), model, "open", connects)


def test_h2_no_way_leads_out_for_tools_without_network(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    ways = _WAYS_OUT.replace("{port}", model.base_url.rpartition(":")[2].partition("/")[0])
    closed = make_service(workers="count = 1", sandbox='network = "none"')
    result = ran(closed, model, "closed", ways)
    assert "tried command" in result
    assert "tried daemon" in result
    assert "OPEN" not in result


def test_h8_the_embedded_model_refuses_a_cells_process_without_its_key(
    make_service: Callable[..., Service], model: FakeModel, tmp_path: Path
) -> None:
    """The agent of another instance asks it: an agent has the same loopback as the service."""
    home = tmp_path / "embedded"
    home.mkdir()
    (home / "models").symlink_to(pulled("smollm2-135m"))
    with Service(home, '[workers]\ncount = 1\n[stt]\nengine = "off"\n') as embedded:
        (row,) = until(lambda: [each for each in embedded.show("services") if each["address"]], 60)
        asks = _ASKS_THE_MODEL.replace("ADDRESS", row["address"])
        told = ran(make_service(workers="count = 1"), model, "stranger", asks)
    assert told.count("refused 401") == 6, told
    assert "ANSWERED" not in told


def test_h8_no_tool_finds_the_key_of_the_model(
    make_service: Callable[..., Service], model: FakeModel, tmp_path: Path
) -> None:
    """The worker has it, in its memory; what it starts has not, wherever it looks."""
    key = "sk-0123456789abcdefghij"
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "api.key").write_text(key)
    settings = settings_for(model, workers="count = 1", sandbox=f'write = ["{folder}"]')
    settings = settings.replace('name = "fake"', f'name = "fake"\napi_key_file = "{folder}/api.key"', 1)
    with Service(tmp_path / "keyed", settings) as service:
        looks = _LOOKS_FOR_KEY.replace("KEY_BACKWARDS", key[::-1]).replace("FOLDER", repr(str(folder)))
        told = ran(service, model, "curious", looks)
    assert "looked at True found []" in told, told
    assert key not in str(service.log())
