"""Questions of an MCP server to a person, and the forms in which the answers go back.

A form may have several fields: each is a question of its own, in the order of the form, and the answers come
back in that order, one for each attempt at the turn. Anything but a form cannot be answered here.
"""

from typing import Any

from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequest, InputRequiredResult

from worker.errors import InputNeeded

_YES, _NO = "yes", "no"
_TRUE = frozenset({"yes", "y", "true", "ok", "1"})


class Unanswerable(Exception):
    """The server asks for something that no person can be asked for."""


def responses(result: InputRequiredResult, answers: list[str]) -> dict[str, Any]:
    """Returns the filled forms and takes the answers that they use.

    Raises InputNeeded for the first field without an answer.
    """
    return {key: _filled(request, answers) for key, request in (result.input_requests or {}).items()}


def _filled(request: InputRequest, answers: list[str]) -> ElicitResult:
    if not isinstance(request, ElicitRequest) or not isinstance(request.params, ElicitRequestFormParams):
        raise Unanswerable(f"the server asks for {request.method}, which this host does not offer")
    form = request.params
    fields: dict[str, Any] = form.requested_schema.get("properties") or {}
    if not fields:
        agrees = _answer(answers, form.message, (_YES, _NO)).strip().lower() in _TRUE
        return ElicitResult(action="accept" if agrees else "decline", content={} if agrees else None)
    content: dict[str, str | int | float | bool | list[str] | None] = {
        name: _value(field, _answer(answers, _text(form.message, name, field, len(fields)), _choices(field)))
        for name, field in fields.items()
    }
    return ElicitResult(action="accept", content=content)


def _answer(answers: list[str], text: str, choices: tuple[str, ...]) -> str:
    if not answers:
        raise InputNeeded(text, choices)
    return answers.pop(0)


def _text(message: str, name: str, field: dict[str, Any], fields: int) -> str:
    if fields == 1:
        return message
    return f"{message} ({field.get('title') or field.get('description') or name})"


def _choices(field: dict[str, Any]) -> tuple[str, ...]:
    if field.get("type") == "boolean":
        return (_YES, _NO)
    return tuple(map(str, field.get("enum", ())))


def _value(field: dict[str, Any], answer: str) -> str | int | float | bool:
    """An answer of another type goes back as it was typed: the server refuses it with its own words."""
    try:
        match field.get("type"):
            case "boolean":
                return answer.strip().lower() in _TRUE
            case "integer":
                return int(answer)
            case "number":
                return float(answer)
    except ValueError:
        pass
    return answer
