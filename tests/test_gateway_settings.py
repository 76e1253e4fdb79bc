"""[gateway]: where it listens; a public address needs TLS files or a named proxy."""

from pathlib import Path

import pytest

from ipc.places import find_places
from supervisor.config.gateway_settings import Gateway
from supervisor.config.reload import changes
from supervisor.config.settings import Settings, load
from supervisor.config.toml_file import SettingsError
from supervisor.gateway_spec import gateway_service, spec


def _load(folder: Path, text: str) -> Settings:
    (folder / "hermes.toml").write_text("[gateway]\n" + text)
    return load(folder / "hermes.toml")


def _fault(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        _load(folder, text)
    assert caught.value.hint
    return caught.value.fault


@pytest.mark.parametrize(
    ("written", "listen", "is_public"),
    [
        ("127.0.0.1:8790", "127.0.0.1:8790", False),
        ("127.0.0.1:0", "127.0.0.1:0", False),
        ("127.9.9.9:80", "127.9.9.9:80", False),
        ("localhost:80", "127.0.0.1:80", False),
        ("[::1]:80", "[::1]:80", False),
        ("off", "off", False),
        ("0.0.0.0:80", "0.0.0.0:80", True),
        ("[::]:80", "[::]:80", True),
        ("192.168.1.4:80", "192.168.1.4:80", True),
        ("[::ffff:1.2.3.4]:80", "[::ffff:102:304]:80", True),
    ],
)
def test_an_address_is_read_and_known_as_public_or_not(
    tmp_path: Path, written: str, listen: str, is_public: bool
) -> None:
    proxies = "proxies = ['10.0.0.1']" if is_public else ""
    found = _load(tmp_path, f"listen = '{written}'\n{proxies}\n").gateway
    assert (found.listen, found.is_public) == (listen, is_public)


@pytest.mark.parametrize(
    "written",
    ["", "8790", ":8790", "127.evil.com:80", "127.1:80", "127.0.0.1", "127.0.0.1:99999", "::1:80", "on"],
)
def test_f4_what_is_no_address_is_refused(tmp_path: Path, written: str) -> None:
    assert "line 2: [gateway] listen =" in _fault(tmp_path, f"listen = '{written}'\n")


@pytest.mark.parametrize("address", ["0.0.0.0:8790", "[::]:8790", "10.0.0.5:80"])
def test_f2_a_public_address_needs_tls_files_or_a_named_proxy(tmp_path: Path, address: str) -> None:
    fault = _fault(tmp_path, f"listen = '{address}'\n")
    assert f'[gateway] listen = "{address}" is a public address without TLS' in fault
    assert _load(tmp_path, f"listen = '{address}'\nproxies = ['10.0.0.9']\n").gateway.is_public
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("pem")
    files = "tls_cert = 'cert.pem'\ntls_key = 'key.pem'\n"
    found = _load(tmp_path, f"listen = '{address}'\n{files}")
    options = spec(found, find_places(str(tmp_path))).options
    assert (options["tls_cert"], options["tls_key"]) == (
        str(tmp_path / "cert.pem"),
        str(tmp_path / "key.pem"),
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("tls_cert = 'cert.pem'\n", "tls_cert is given without tls_key"),
        ("tls_key = 'key.pem'\n", "tls_key is given without tls_cert"),
        ("tls_cert = 'no.pem'\ntls_key = 'no.pem'\n", "which cannot be read: No such file"),
        ("tls_cert = '.'\ntls_key = 'key.pem'\n", "which cannot be read: Is a directory"),
        ("proxies = ['0.0.0.0/0']\n", "proxies ="),
        ("proxies = '127.0.0.1'\n", "proxies ="),
        ("hosts = ['https://a.example']\n", "hosts ="),
        ("hosts = ['a.example:80']\n", "hosts ="),
        ("hosts = ['*']\n", "hosts ="),
        ("origins = ['a.example']\n", "origins ="),
        ("origins = ['https://a.example/path']\n", "origins ="),
        ("origins = ['https://me@a.example']\n", "origins ="),
        ("origins = ['null']\n", "origins ="),
        ("origins = ['https://a.example:0']\n", "origins ="),
        ("insecure = true\n", "insecure is not known"),
    ],
)
def test_a_fault_is_named_with_its_key(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "key.pem").write_text("pem")
    (tmp_path / "cert.pem").write_text("pem")
    assert fault in _fault(tmp_path, text)


def test_the_process_is_told_addresses_and_paths_and_no_secret(tmp_path: Path) -> None:
    places = find_places(str(tmp_path))
    settings = _load(tmp_path, "hosts = ['A.example']\norigins = ['https://A.example/']\nproxies = ['::1']\n")
    made = spec(settings, places)
    assert (made.name, made.module) == ("gateway", "gateway")
    assert made.options == {
        "listen": "127.0.0.1:8790",
        "proxies": ["::1"],
        "hosts": ["a.example"],
        "origins": ["https://a.example"],
        "socket": places.gateway,
        "clips": str(places.clips),
        "tokens": str(tmp_path / "tokens.db"),
        "token": str(tmp_path / "token"),
    }


def test_it_has_the_files_of_its_certificate_and_ends_with_its_version(tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch()
    made = spec(_load(tmp_path, "tls_cert = 'cert.pem'\ntls_key = 'key.pem'\n"), find_places(str(tmp_path)))
    files = (made.options["tls_cert"], made.options["tls_key"])
    assert files == (str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    assert not made.outlives_version


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    assert gateway_service(_load(tmp_path, "listen = 'off'\n"), find_places(str(tmp_path))) is None


def test_a_change_needs_a_new_process_only(tmp_path: Path) -> None:
    old, new = Settings(), Settings(gateway=Gateway(listen="off", hosts=("a",)))
    found = [(change.key, change.applies) for change in changes(old, new)]
    assert found == [("[gateway] listen", "new service"), ("[gateway] hosts", "new service")]


@pytest.mark.parametrize(
    ("written", "served", "opened"),
    [
        ("", "http://127.0.0.1:8790", "http://127.0.0.1:8790/"),
        ("", "", ""),
        ('listen = "[::1]:0"', "http://[::1]:4711", "http://[::1]:4711/"),
        ('listen = "[::1]:0"\nhosts = ["agent.example.org"]', "http://[::1]:4711", "http://[::1]:4711/"),
        ('listen = "0.0.0.0:443"\nproxies = ["10.0.0.1"]', "http://0.0.0.0:443", "http://127.0.0.1:443/"),
        (
            'proxies = ["127.0.0.1"]\nhosts = ["agent.example.org"]',
            "http://127.0.0.1:8790",
            "https://agent.example.org/",
        ),
    ],
)
def test_the_console_has_an_address_that_a_browser_can_open(
    tmp_path: Path, written: str, served: str, opened: str
) -> None:
    assert _load(tmp_path, written).gateway.console(served) == opened


def test_a_name_stands_for_a_public_address_with_tls() -> None:
    gateway = Gateway(listen="0.0.0.0:8790", hosts=("agent.example.org",), tls_cert="c", tls_key="k")
    assert gateway.console("https://0.0.0.0:8790") == "https://agent.example.org:8790/"
