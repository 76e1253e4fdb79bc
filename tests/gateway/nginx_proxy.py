"""A real nginx in front of a gateway, on a loopback port, with compression and buffering as they come."""

import shutil
import socket
import subprocess
from pathlib import Path
from types import TracebackType

import pytest

from tests.house_rules import ROOT
from tests.waiting import DEADLINE_SECONDS, until

# Everything it writes lies in one folder; the rest are settings that people have.
_SETTINGS = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    gzip on;
    gzip_types *;
    gzip_min_length 0;
    gzip_proxied any;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass {gateway};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto https;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $http_connection;
        }}
    }}
}}
"""


def program() -> str:
    """The installed one, or the one that `make programs` has unpacked; without any the test is skipped."""
    unpacked = ROOT / ".nginx" / "usr" / "sbin" / "nginx"
    found = shutil.which("nginx") or (str(unpacked) if unpacked.exists() else None)
    if found is None:
        pytest.skip("there is no nginx: `make programs`, as root on Debian, unpacks one")
    return found


class Nginx:
    """Runs as long as the test; `address` is what clients connect to."""

    def __init__(self, folder: Path, gateway: str) -> None:
        folder.mkdir()
        with socket.socket() as chosen:
            chosen.bind(("127.0.0.1", 0))
            self.port = chosen.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._error_log = folder / "error.log"
        settings = folder / "nginx.conf"
        settings.write_text(_SETTINGS.format(folder=folder, port=self.port, gateway=gateway))
        self._line = [program(), "-p", str(folder), "-c", str(settings), "-e", str(self._error_log)]

    def __enter__(self) -> "Nginx":
        self._process = subprocess.Popen(self._line)
        until(self._listens)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_SECONDS)

    def _listens(self) -> bool:
        assert self._process.poll() is None, self._error_log.read_text()
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0
