"""Errors as HTTP answers: a status, a fault that a person understands, and a hint that mends it."""

CODES = {
    400: "invalid",
    401: "unauthorized",
    403: "denied",
    404: "unknown",
    405: "method",
    409: "conflict",
    413: "too_large",
    415: "invalid",
    416: "invalid",
    421: "host",
    422: "failed",
    429: "full",
    500: "internal",
    503: "unavailable",
}


class HttpError(Exception):
    """Ends a request with this answer."""

    def __init__(
        self,
        status: int,
        fault: str,
        hint: str,
        *,
        retry_after_seconds: float | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(fault)
        self.status = status
        self.fault = fault
        self.hint = hint
        self.retry_after_seconds = retry_after_seconds
        self._headers = headers

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        if self.retry_after_seconds is None:
            return self._headers
        # The header has whole seconds; zero would mean at once.
        seconds = max(1, round(self.retry_after_seconds))
        return (*self._headers, (b"retry-after", str(seconds).encode()))

    @property
    def code(self) -> str:
        """The word for programs; the sentences are for people."""
        return CODES[self.status]


class Unavailable(HttpError):
    """The supervisor is away or does not answer: nothing is known of the request's effect."""

    def __init__(self, fault: str = "the supervisor is not there at the moment") -> None:
        super().__init__(503, fault, "try again in a moment", retry_after_seconds=1.0)
