"""The settings as the service reads them, and their targets: endpoints that answer, weights that exist."""

import json
import os
import urllib.error
import urllib.request
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import Any

from hermesctl.agent_rows import read_agents
from hermesctl.doctor.finding import Finding, Surroundings, bad, care, good
from hermesctl.errors import CommandError
from hermesctl.render import one_line

_ANSWER_SECONDS = 5.0
# A list of models is a page; a larger answer is something else.
_LIST_BYTES_MAX = 4 * 1024 * 1024
_REFUSED_KEY = (401, 403)
_WRONG_PATH = "is base_url right? it often ends in /v1"
# Enough to recognise the names of that server.
_NAMES_MAX = 5
_STT_HINT = "hermesctl models pull {name}; until then no clip is transcribed"


def settings(around: Surroundings) -> Finding:
    found = around.checkup
    if not found:
        return bad(
            "settings",
            "the supervisor's own check did not run",
            "python -m supervisor.host.preflight shows why",
        )
    if found.get("fault"):
        return bad("settings", found["fault"], found["hint"])
    if found.get("cautions"):
        caution, _, hint = found["cautions"][0].partition(": ")
        return care("settings", caution, hint)
    return good(
        "settings", found["file"] if found.get("file_exists") else f"no {found['file']}: the defaults"
    )


def model(around: Surroundings) -> Finding:
    if around.checkup.get("model"):
        return _endpoint("model", around.checkup["model"])
    if "weights" not in around.checkup:
        return care("model", "not looked for", "fix the settings first")
    return good("model", "the embedded one: a demonstration; [model] names a better one")


def named_models(around: Surroundings) -> list[Finding]:
    """The models of [models.NAME], a line each, with the agents that ask them, as a fallback too."""
    return [_named_model(found) for found in around.checkup.get("models") or ()]


def _named_model(found: dict[str, Any]) -> Finding:
    finding = _endpoint(f"model {found['table']}", found, f"[models.{found['table']}]")
    users = ", ".join(found["agents"])
    return replace(finding, fact=f"{finding.fact}; {f'asked by {users}' if users else 'no agent asks it'}")


def speech_endpoint(around: Surroundings) -> Finding | None:
    found = around.checkup.get("stt")
    return _endpoint("speech model", found, "[stt]") if found else None


def weights(around: Surroundings) -> list[Finding]:
    """Reads every byte: a damaged file loads and produces nonsense."""
    from hermesctl.weight_catalogue import find, presence

    found = []
    for name in around.checkup.get("weights") or ():
        wanted = find(name)
        state = presence(wanted, around.places.models)
        check = f"weights {name}"
        if state == "verified":
            found.append(good(check, "there, with the right checksum"))
        elif wanted.kind == "speech" and state == "absent":
            found.append(care(check, "absent", _STT_HINT.format(name=name)))
        else:
            found.append(bad(check, state, f"hermesctl models pull {name}"))
    return found


def agents(around: Surroundings) -> list[Finding]:
    """Agents with a runtime of their own, which may have its own faults."""
    try:
        rows = read_agents(around.places)
    except CommandError:
        return []  # said by the checks of the settings and of the service
    found = []
    for row in rows:
        if row.get("own_runtime") or row.get("fault"):
            check = f"agent {one_line(row.get('agent'))}"
            fault, hint = one_line(row.get("fault")), one_line(row.get("hint"))
            fact = (
                f"{one_line(row.get('kind'))}, {one_line(row.get('state'))}, in {one_line(row.get('python'))}"
            )
            found.append(
                bad(check, fault, hint or "hermesctl logs") if row.get("fault") else good(check, fact)
            )
    return found


def _endpoint(check: str, found: dict[str, Any], table: str = "[model]") -> Finding:
    """Requests the list of models: it costs nothing, and needs the key where there is one."""
    if found.get("fault"):
        return bad(check, found["fault"], found["hint"])
    url = found["base_url"].rstrip("/") + "/models"
    try:
        names = _models(url, _key(found))
    except urllib.error.HTTPError as error:
        with error:
            return _status(check, found, error.code)
    except (OSError, HTTPException) as error:
        reason = one_line(getattr(error, "reason", None) or error)
        hint = f"start that server, or correct {table} base_url"
        return bad(check, f"{found['base_url']} does not answer: {reason}", hint)
    except (ValueError, RecursionError):
        return care(check, f"{url} answers, but with no list of models", _WRONG_PATH)
    if names and found["name"] not in names:
        listed = ", ".join(one_line(name) for name in names[:_NAMES_MAX])
        return care(
            check, f"{found['base_url']} does not list {found['name']}", f"it lists {listed}: name one"
        )
    return good(check, f"{found['name']} at {found['base_url']}")


def _status(check: str, found: dict[str, Any], status: int) -> Finding:
    if status in _REFUSED_KEY:
        where = found.get("api_key_env") or found.get("api_key_file")
        hint = f"correct the key in {where}" if where else "name a key: api_key_env or api_key_file"
        return bad(check, f"{found['base_url']} refuses the key (HTTP {status})", hint)
    if 300 <= status < 400:
        fact = f"{found['base_url']} redirects (HTTP {status}), and the key is sent nowhere else"
        return care(check, fact, "write the address itself as base_url")
    fact = f"{found['base_url']} answers, but lists no models (HTTP {status})"
    return care(check, fact, _WRONG_PATH)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The library would follow with all headers, the key among them, to any host that is named."""

    def redirect_request(self, *_: object) -> None:
        return None


def _models(url: str, key: str) -> list[str]:
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=_ANSWER_SECONDS) as reply:
        found = json.loads(reply.read(_LIST_BYTES_MAX))
    entries = found.get("data") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise ValueError("no list")
    return [str(entry.get("id")) for entry in entries if isinstance(entry, dict)]


def _key(found: dict[str, Any]) -> str:
    """The service has confirmed that it can be read; it is used in the request only."""
    if found.get("api_key_env"):
        return os.environ.get(found["api_key_env"], "").strip()
    return Path(found["api_key_file"]).read_text().strip() if found.get("api_key_file") else ""
