"""The fence at the edge: which host is called, from which page, by whose doing (GTW-012 to 022).

It keeps other websites in the owner's browser away (rebinding, forged requests). It is not access
control: a login is asked behind it, never instead of it.
"""

from __future__ import annotations

import html
import ipaddress
import re
from collections.abc import Sequence

import structlog
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from services.common.errors import Forbidden
from services.common.wording import Catalogue, Locale, locale_of
from services.gateway.http.problems import problem_of
from services.gateway.peer import Network, find_peer, header, headers

_log = structlog.get_logger(__name__)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")
_ORIGIN = re.compile(r"(https?)://([^/?#@\s]+)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_MAX_LOGGED_HOSTS = 1_000


class Fence:
    """Refuses requests for names that are not ours and requests that other pages start.

    Args:
        app: What stands behind.
        allowed_hosts: Names besides IP addresses and ``localhost``; lower case, without port.
        trusted_proxies: See `find_peer`.
        catalogue: Of the gateway.
        language: For callers that name none.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        allowed_hosts: Sequence[str],
        trusted_proxies: Sequence[Network],
        catalogue: Catalogue,
        language: Locale,
    ) -> None:
        self._app = app
        self._allowed = frozenset({"localhost", *(name.lower() for name in allowed_hosts)})
        self._trusted = tuple(trusted_proxies)
        self._catalogue = catalogue
        self._language = language
        self._logged: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through or answer 403."""
        refusal = self._judge(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        locale = locale_of(header(scope, b"accept-language"), self._language)
        if _under_api(scope):
            await problem_of(refusal, self._catalogue, locale).response()(scope, receive, send)
        else:
            await self._page(refusal, locale)(scope, receive, send)

    def _judge(self, scope: Scope) -> Forbidden | None:
        host = find_peer(scope, self._trusted).host
        parsed = _AUTHORITY.fullmatch(host or "")
        if host is None or parsed is None or int(parsed[2] or 0) > 65535:
            return Forbidden("HOST", "error.fence.no_host")
        name = parsed[1].lower()
        if name not in self._allowed and not _is_address(name):
            self._log_once(name)
            return Forbidden("HOST", "error.fence.host", host=name[:255])
        for origin in headers(scope, b"origin"):
            if not _same_origin(origin, host):
                return Forbidden("ORIGIN", "error.fence.origin", origin=_printable(origin))
        if _under_api(scope):
            for site in headers(scope, b"sec-fetch-site"):
                if site.strip().lower() not in ("same-origin", "none"):
                    return Forbidden("FETCH_SITE", "error.fence.fetch_site")
        return None

    def _log_once(self, name: str) -> None:
        if name not in self._logged and len(self._logged) < _MAX_LOGGED_HOSTS:
            self._logged.add(name)
            _log.warning("refused host", host=name[:255], setting="MY_AGENT_ALLOWED_HOSTS")

    def _page(self, refusal: Forbidden, locale: Locale) -> HTMLResponse:
        title = html.escape(self._catalogue.text(locale, "error.fence.title"))
        text = html.escape(self._catalogue.text(locale, refusal.key, **refusal.values))
        return HTMLResponse(
            f'<!doctype html><html lang="{locale}"><meta charset="utf-8"><title>{title}</title>'
            f"<h1>{title}</h1><p>{text}</p></html>",
            status_code=refusal.http_status,
            headers={"Cache-Control": "no-store"},
        )


def _under_api(scope: Scope) -> bool:
    path = scope["path"]
    return bool(path == "/api" or path.startswith("/api/"))


def _is_address(name: str) -> bool:
    """Whether it is an IPv4 address or an IPv6 address in brackets, in its standard spelling."""
    bracketed = name.startswith("[")
    try:
        address = ipaddress.ip_address(name[1:-1] if bracketed else name)
    except ValueError:
        return False
    return bracketed == (address.version == 6)


def _same_origin(origin: str, host: str) -> bool:
    """Whether `origin` is the host and port being called, whatever its scheme (GTW-017)."""
    parsed = _ORIGIN.fullmatch(origin)
    if parsed is None:
        return False
    default = f":{_DEFAULT_PORTS[parsed[1].lower()]}"
    ours, theirs = host.lower(), parsed[2].lower()
    return ours.removesuffix(default) == theirs.removesuffix(default)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text[:200])
