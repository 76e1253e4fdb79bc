"""The endpoints of model servers and their keys, read from where the settings say at the moment of use."""

import os
import stat
from dataclasses import fields, is_dataclass
from pathlib import Path

from ipc.messages import ModelEndpoint
from supervisor.config.database_address import address_of, driver_secrets
from supervisor.config.key_remedies import handed_over_from, missing_variable
from supervisor.config.model_settings import DEFAULT_MODEL, EMBEDDED, Model
from supervisor.config.settings import Settings, Stt
from supervisor.config.toml_file import SettingsError

# A key is one line of text; a larger file was named by mistake.
_KEY_BYTES_MAX = 16 * 1024
# The folder in which systemd puts the files of LoadCredential=.
_CREDENTIALS = "CREDENTIALS_DIRECTORY"


def model_endpoint(settings: Settings) -> ModelEndpoint | None:
    """Return the address of the model, with its key; None for the embedded model."""
    model = settings.model
    return _endpoint(settings, "model", model, model.base_url) if model else None


def named_endpoints(settings: Settings) -> dict[str, ModelEndpoint]:
    """Return the endpoints of [models.NAME], with their keys, by name."""
    return {
        name: _endpoint(settings, f"models.{name}", model, endpoint_id(settings, name))
        for name, model in settings.models.items()
    }


def model_key_fault(settings: Settings, name: str) -> SettingsError | None:
    """Return why the key of a model cannot be had: of [models.NAME], or of DEFAULT_MODEL."""
    if name == DEFAULT_MODEL:
        return key_fault(settings, "model", settings.model) if settings.model else None
    return key_fault(settings, f"models.{name}", settings.models[name])


def key_fault(settings: Settings, table: str, holder: Model | Stt) -> SettingsError | None:
    """Return why the key of this table cannot be had; for a process that is not the service.

    Only the service itself has systemd's credentials; of those, the source is checked.
    """
    source = handed_over_from(settings.file, holder.api_key_file) if holder.api_key_file else None
    if source is not None:
        missing = SettingsError(f"the key file {source} is missing", f"install -m 600 key.txt {source}")
        return None if source.exists() else missing
    try:
        _api_key(settings, table, holder)
    except SettingsError as fault:
        return fault
    return None


def journal_password(settings: Settings) -> str:
    """Return the password of the journal's database; "" where none is named."""
    name = settings.journal.password_file
    return _secret_in(_key_path(settings, name), "[journal] password_file", "password") if name else ""


def endpoint_id(settings: Settings, name: str) -> str:
    """Return the name under which the outage of a model is known: two models of one server have two."""
    if name in settings.models:
        model = settings.models[name]
        return f"{model.name} at {model.base_url}"
    return settings.model.base_url if settings.model else EMBEDDED


def _endpoint(settings: Settings, table: str, model: Model, known_as: str) -> ModelEndpoint:
    api_key = _api_key(settings, table, model)
    return ModelEndpoint(
        model.base_url,
        model.name,
        api_key,
        id=known_as,
        price_in=model.price_in,
        price_out=model.price_out,
        context_tokens=model.context_tokens or 0,
    )


def stt_api_key(settings: Settings) -> str:
    """Return the key of the transcription server; empty when it needs none."""
    return _api_key(settings, "stt", settings.stt)


def cautions(settings: Settings) -> tuple[str, ...]:
    """Return sentences about settings that work but are better changed."""
    found = (settings.model, *settings.models.values(), settings.stt)
    holders = [holder for holder in found if holder is not None]
    names = [holder.api_key_file for holder in holders] + [settings.journal.password_file]
    paths = [_key_path(settings, name) for name in names if name]
    return tuple(
        f"the key file {path} can be read by every user of this machine: run `chmod 600 {path}`"
        for path in dict.fromkeys(paths)
        if _is_readable_by_all(path)
    )


def _is_readable_by_all(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def key_files(settings: Settings) -> tuple[Path, ...]:
    """Return the files with secrets, except systemd's credentials: settings whose names end in `_file`."""
    tables = [table for table in vars(settings).values() if is_dataclass(table)]
    tables += settings.models.values()
    names = [(table, each.name) for table in tables for each in fields(table) if each.name.endswith("_file")]
    values = [value for table, name in names if (value := getattr(table, name)) is not None]
    values += [settings.mcp_file] if settings.mcp_file is not None else []
    named = (_key_path(settings, value) for value in values if not value.startswith(f"${_CREDENTIALS}/"))
    return (*named, *(driver_secrets() if settings.journal.url is not None else ()))


def hidden_paths(settings: Settings) -> tuple[Path, ...]:
    """Return what no cell may see by these settings: files with secrets, and the sockets of the database."""
    url = settings.journal.url
    return (*key_files(settings), *(address_of(url).hidden if url is not None else ()))


def _key_path(settings: Settings, name: str) -> Path:
    """A relative key file is beside hermes.toml; systemd passes keys in a folder that it names."""
    folder = settings.file.parent if settings.file else Path()
    named, _, inside = name.partition("/")
    if named == f"${_CREDENTIALS}":
        if not os.environ.get(_CREDENTIALS):
            raise SettingsError(
                f'api_key_file = "{name}", and {_CREDENTIALS} is not set',
                "start the service through systemd, which sets it, or name another file",
            )
        return Path(os.environ[_CREDENTIALS]) / inside
    return folder / Path(name).expanduser()


def _api_key(settings: Settings, table: str, holder: Model | Stt) -> str:
    if holder.api_key_env is not None:
        secret = os.environ.get(holder.api_key_env, "").strip()
        if not secret:
            raise SettingsError(
                f"the environment variable {holder.api_key_env}, named by [{table}] api_key_env, is not set",
                missing_variable(settings.file, holder.api_key_env),
            )
        return secret
    if not holder.api_key_file:
        return ""
    return _secret_in(_key_path(settings, holder.api_key_file), f"[{table}] api_key_file", "key")


def _secret_in(path: Path, named_by: str, what: str) -> str:
    """Return the one line of a file."""
    try:
        with path.open("rb") as opened:
            content = opened.read(_KEY_BYTES_MAX + 1)
    except OSError as error:
        raise SettingsError(
            f"the {what} file {path}, named by {named_by}, cannot be read: {error.strerror}",
            f"write the {what} into that file, readable by this user only (chmod 600), or correct the path",
        ) from None
    secret = content.decode("ascii", "replace").strip()
    if not secret or len(content) > _KEY_BYTES_MAX or not secret.isascii() or not secret.isprintable():
        raise SettingsError(
            f"the {what} file {path}, named by {named_by}, does not hold one line with a {what}",
            f"write the {what} alone into that file",
        )
    return secret
