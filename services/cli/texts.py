"""The words of the command line, and the language they are said in."""

from __future__ import annotations

import os
import sys
from functools import cache

from services.common.wording import Catalogue, Locale, load, locale_of


@cache
def texts() -> Catalogue:
    """The catalogue of the command line and of what all services say."""
    return load("common", "cli")


def language() -> Locale:
    """``MY_AGENT_LANGUAGE``, else English; the configured language once it is read."""
    return _chosen or locale_of(os.environ.get("MY_AGENT_LANGUAGE"))


def speak(locale: Locale) -> None:
    """Say everything from here on in `locale`."""
    global _chosen
    _chosen = locale


def say(key: str, /, **values: object) -> None:
    """Print a sentence of the catalogue."""
    print(texts().text(language(), key, **values), flush=True)


def complain(sentence: str) -> None:
    """Print a sentence about what went wrong to standard error."""
    print(sentence, file=sys.stderr, flush=True)


_chosen: Locale | None = None
