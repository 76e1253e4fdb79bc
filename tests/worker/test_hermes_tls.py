"""TLS contexts of hermes-agent are shared as long as what they were made from is the same."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from worker.agents.hermes_tls import share_contexts


class Verify(SimpleNamespace):
    """As agent.ssl_verify of hermes-agent: makes a context anew for each call."""

    def __init__(self) -> None:
        super().__init__(made=0)

        def resolve(*, ca_bundle: str | None = None, ssl_verify: Any = None, base_url: str = "") -> Any:
            self.made += 1
            if ssl_verify is False:
                return False
            return f"context {self.made} of {ca_bundle}" if ca_bundle else True

        self.resolve_httpx_verify = resolve
        share_contexts(self, lambda: f"default {self.made}")


def test_a_context_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    verify = Verify()
    assert [verify.resolve_httpx_verify(base_url=each) for each in ("a", "b")] == ["default 1"] * 2
    assert verify.made == 1
    monkeypatch.setenv("SSL_CERT_FILE", "/other/certificates")
    assert verify.resolve_httpx_verify() == "default 2"


def test_other_settings_and_a_changed_file_have_another_context(tmp_path: Path) -> None:
    verify, bundle = Verify(), tmp_path / "bundle.pem"
    bundle.write_text("one")
    first = verify.resolve_httpx_verify(ca_bundle=str(bundle))
    assert verify.resolve_httpx_verify(ca_bundle=str(bundle)) == first
    assert verify.resolve_httpx_verify(ca_bundle=str(bundle), ssl_verify=False) is False
    assert verify.resolve_httpx_verify() == "default 3"
    bundle.write_text("another one")
    assert verify.resolve_httpx_verify(ca_bundle=str(bundle)) == f"context 4 of {bundle}"


def test_a_hermes_agent_without_the_function_is_left_alone() -> None:
    module = SimpleNamespace()
    share_contexts(module, lambda: None)
    assert vars(module) == {}
