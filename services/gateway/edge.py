"""What every answer carries, and what becomes of a fault that nobody handled (GTW-010, GTW-011)."""

from __future__ import annotations

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.common.wording import Catalogue, Locale, locale_of
from services.gateway.http.problems import Problem
from services.gateway.peer import header

_log = structlog.get_logger(__name__)

# Scripts and connections of the page itself alone; styles may stand in elements, as React writes them.
# Pictures of other sites: the page asks the person before it loads one (GTW-234).
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob: https: http:; font-src 'self'; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class Edge:
    """The outermost layer.

    Args:
        app: What stands behind.
        catalogue: Of the gateway.
        language: For callers that name none.
    """

    def __init__(self, app: ASGIApp, *, catalogue: Catalogue, language: Locale) -> None:
        self._app = app
        self._catalogue = catalogue
        self._language = language

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with the headers on it."""
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                present = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    present.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            _log.exception("a request failed", method=scope["method"], path=scope["path"][:200])
            if started:
                # Cut off, so that the client does not take a part for the whole.
                raise
            locale = locale_of(header(scope, b"accept-language"), self._language)
            sentence = self._catalogue.text(locale, "error.unexpected")
            await Problem(500, sentence).response()(scope, receive, send_with_headers)
