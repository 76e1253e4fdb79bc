"""Reload of hermes.toml: checked whole, then in force whole; keys that need a restart are named and stay."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ipc import messages as wire
from ipc.errors import PlaceError
from ipc.paging import listed, page
from ipc.places import Places
from supervisor import gateway_spec
from supervisor.config.endpoints import model_endpoint, named_endpoints
from supervisor.config.fields import AFTER_RESTART, AT_ONCE, NEW_SERVICE, NEW_WORKERS, keys_of, tables_of
from supervisor.config.live import Live
from supervisor.config.settings import NAMED, TABLES, Settings, load
from supervisor.config.toml_file import SettingsError
from supervisor.containment import Containment, Fault
from supervisor.services.service_spec import ServiceSpec
from supervisor.stt import stt_spec
from supervisor.telemetry.log import Log

Reply = Callable[[wire.Answer], None]

_SENTENCES = {
    AT_ONCE: "applies from now on",
    NEW_WORKERS: "applies to new workers: idle ones are replaced one by one, busy ones after their turn",
    NEW_SERVICE: "applies when its service has started again, which it does now",
    AFTER_RESTART: "needs a restart; until then the old value stays",
}


@dataclass(frozen=True)
class Change:
    """A key, or a whole named table, that differs, and when the change takes effect."""

    key: str
    applies: str

    def row(self) -> dict[str, Any]:
        return {"key": self.key, "applies": self.applies, "text": f"{self.key} {_SENTENCES[self.applies]}"}


@dataclass(frozen=True)
class Reading:
    """The values of a new file, read and checked before anything is changed."""

    settings: Settings
    endpoint: wire.ModelEndpoint | None
    named: Mapping[str, wire.ModelEndpoint]
    stt: ServiceSpec | None
    gateway: ServiceSpec | None


def read(places: Places) -> Reading:
    """SettingsError has the same fault and hint as at a start."""
    settings = load(places.settings_file)
    stt = stt_spec.stt_service(settings, places.models)
    gateway = gateway_spec.gateway_service(settings, places)
    return Reading(settings, model_endpoint(settings), named_endpoints(settings), stt, gateway)


def changes(old: Settings, new: Settings) -> list[Change]:
    found = []
    for name in TABLES:
        before, after = getattr(old, name), getattr(new, name)
        if name in NAMED:
            found += list(_of_named(name, before, after))
        elif before is None or after is None:
            found += [Change(f"[{name}]", AT_ONCE)] if before is not after else []
        else:
            found += list(_of_keys(name, before, after))
    return found


def _of_keys(name: str, before: Any, after: Any) -> Iterator[Change]:
    for key, (attribute, known) in keys_of(type(after)).items():
        if getattr(before, attribute) != getattr(after, attribute):
            yield Change(f"[{name}] {key}", known.applies)


def _of_named(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Compare tables of tables; their order counts, because the first pattern that matches applies."""
    for inner in dict.fromkeys((*before, *after)):
        shown = f'{name}."{inner}"' if name == "sessions" else f"{name}.{inner}"
        old, new = before.get(inner), after.get(inner)
        if old is not None and new is not None:
            for table, (attribute, _) in tables_of(type(new)).items():
                yield from _of_keys(f"{shown}.{table}", getattr(old, attribute), getattr(new, attribute))
                old = replace(old, **{attribute: getattr(new, attribute)})
        if old != new:
            yield Change(f"[{shown}]", NEW_WORKERS if name == "mcp" else AT_ONCE)
    common = [inner for inner in before if inner in after]
    if common != [inner for inner in after if inner in before]:
        yield Change(f"the order of [{name}]", AT_ONCE)


def kept(old: Settings, new: Settings) -> Settings:
    """Return the new settings with the old values of keys that need a restart: shown is what is in force."""
    for name, table in TABLES.items():
        before, after = getattr(old, name), getattr(new, name)
        if name in NAMED or before is None or after is None:
            continue
        stays = [attribute for attribute, key in keys_of(table).values() if key.applies == AFTER_RESTART]
        if stays:
            after = replace(after, **{attribute: getattr(before, attribute) for attribute in stays})
            new = replace(new, **{name: after})
    return new


def _refuse_without_model(old: Settings, new: Settings) -> None:
    """Refuse by default: an empty file is more often a mistake than a wish for the embedded model."""
    if old.model is not None and new.model is None:
        fault = f"{new.file} has no [model] any more"
        fault += f": the embedded demonstration would replace {old.model.name}"
        raise SettingsError(fault, "put [model] back, or confirm with `hermesctl reload --yes`")


class Reload:
    """One reload at a time. `apply` puts a checked reading in force and never fails.

    `check` raises PlaceError when the folder of hermes.toml was replaced.
    """

    def __init__(
        self,
        *,
        live: Live,
        check: Callable[[Path], None],
        places: Places,
        apply: Callable[[Settings, Reading], None],
        log: Log,
        contain: Containment,
    ) -> None:
        self._live = live
        self._check = check
        self._places = places
        self._apply = apply
        self._log = log
        self._contain = contain
        self._is_reading = False

    def ask(self, reply: Reply, confirmed: bool) -> None:
        """Read the files in a thread: a disk that does not answer must not block the loop.

        Only a `confirmed` reload may remove a configured model.
        """
        if self._is_reading:
            reply(wire.Refused("hermes.toml is being read already", "wait for it", 1.0, "conflict"))
            return
        self._is_reading = True

        def failed(fault: Fault) -> None:
            self._is_reading = False
            reply(wire.Refused(fault.error, fault.hint, code="internal"))

        reading = partial(self._read, confirmed)
        self._contain.thread("request", reading, lambda found: self._found(found, reply), failed)

    def _read(self, confirmed: bool) -> Reading | SettingsError:
        """Runs in a thread."""
        try:
            self._check(self._places.config)
            reading = read(self._places)
            self._check(self._places.config)  # it may have been exchanged while the file was opened
            if not confirmed:
                _refuse_without_model(self._live.settings, reading.settings)
            return reading
        except SettingsError as error:
            return error
        except PlaceError as error:
            return SettingsError(error.fault, error.hint)

    def _found(self, found: Reading | SettingsError, reply: Reply) -> None:
        self._is_reading = False
        if isinstance(found, SettingsError):
            self._log.write("settings.refused", error=found.fault)
            hint = f"{found.hint}; the settings in force have not changed"
            reply(wire.Refused(found.fault, hint, code="invalid"))
            return
        old = self._live.settings
        differing = changes(old, found.settings)
        self._live.settings = kept(old, found.settings)
        self._apply(old, found)
        for change in differing:
            self._log.write("settings.changed", key=change.key, applies=change.applies)
        self._log.write("settings.read", changes=len(differing))
        reply(_answer(differing))


def _answer(differing: Sequence[Change]) -> wire.Table:
    """Return a row for each change; this table has no second page, so rows that do not fit are counted."""
    table = page(listed([change.row() for change in differing], ""))
    more = len(differing) - len(table.rows)
    if not more:
        return table
    last = {"key": "", "applies": AT_ONCE, "text": f"{more} more keys have changed: the log names them"}
    return wire.Table((*table.rows, last))
