"""The web application's files. They are public and hold no data (GTW-026)."""

from __future__ import annotations

import posixpath
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from services.common.wording import Catalogue, Locale, locale_of
from services.gateway.peer import header

_FOR_EVER = "public, max-age=31536000, immutable"
_REVALIDATE = "no-cache"
_ASSETS = "assets/"


class Pages:
    """Files of the built application; any other path is the application itself (GTW-002, GTW-009).

    Args:
        folder: Where the build is.
        catalogue: Of the gateway.
        language: For callers that name none.
    """

    def __init__(self, folder: Path, *, catalogue: Catalogue, language: Locale) -> None:
        self._built = (folder / "index.html").is_file()
        self._files = StaticFiles(directory=folder, check_dir=False)
        self._catalogue = catalogue
        self._language = language

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a file."""
        response = await self._response(scope)
        await response(scope, receive, send)

    async def _response(self, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("", status_code=405, headers={"Allow": "GET, HEAD"})
        if not self._built:
            locale = locale_of(header(scope, b"accept-language"), self._language)
            return PlainTextResponse(self._catalogue.text(locale, "page.not_built"), status_code=404)
        path = posixpath.normpath(scope["path"].lstrip("/"))
        if "\0" in path or path.startswith("."):
            path = "index.html"
        try:
            response = await self._files.get_response(path, scope)
        except HTTPException:
            if path.startswith(_ASSETS):
                # An asset of an older build: the page must not be taken for it.
                return PlainTextResponse("", status_code=404, headers={"Cache-Control": "no-store"})
            path = "index.html"
            response = await self._files.get_response(path, scope)
        response.headers["Cache-Control"] = _FOR_EVER if path.startswith(_ASSETS) else _REVALIDATE
        return response
