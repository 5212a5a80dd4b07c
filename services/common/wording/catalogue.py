"""Loading catalogues and making sentences from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from ruamel.yaml import YAML

Locale = Literal["en", "vi"]
LOCALES: tuple[Locale, ...] = get_args(Locale)
DEFAULT_LOCALE: Locale = "en"


class MissingText(KeyError):
    """No catalogue holds this key: a bug of the caller, never of a person's input."""


class Catalogue:
    """The texts of one or several services, looked up by locale and dotted key.

    Args:
        texts: For each locale, dotted keys and their texts.
    """

    def __init__(self, texts: Mapping[Locale, Mapping[str, str]]) -> None:
        self._texts = texts

    def text(self, locale: Locale, key: str, /, **values: object) -> str:
        """Return the text of `key` with its placeholders filled.

        Raises:
            MissingText: The key does not exist.
            KeyError: A placeholder has no value.
        """
        try:
            text = self._texts[locale][key]
        except KeyError:
            raise MissingText(f"{locale}: {key}") from None
        return text.format_map(values) if values or "{{" in text or "}}" in text else text

    def has(self, key: str) -> bool:
        """Whether the key exists in the default locale."""
        return key in self._texts[DEFAULT_LOCALE]

    def keys(self, locale: Locale, prefix: str = "") -> list[str]:
        """All keys of a locale that begin with `prefix`."""
        return [key for key in self._texts[locale] if key.startswith(prefix)]


@cache
def load(*services: str) -> Catalogue:
    """Load the catalogues of the named services, such as ``load("common", "tools")``.

    Raises:
        FileNotFoundError: A named service has no catalogue.
        ValueError: Two of them define the same key.
    """
    texts: dict[Locale, dict[str, str]] = {}
    root = Path(__file__).parents[2]
    for locale in LOCALES:
        merged: dict[str, str] = {}
        for service in services:
            folder = root / service / "wording" / locale
            if not folder.is_dir():
                raise FileNotFoundError(f"no catalogue at {folder}")
            for path in sorted(folder.glob("*.yaml")):
                for key, text in _flatten(YAML(typ="safe").load(path.read_text("utf-8")) or {}):
                    if key in merged:
                        raise ValueError(f"{key} is defined twice ({path})")
                    merged[key] = text
        texts[locale] = merged
    return Catalogue(texts)


def locale_of(accept_language: str | None, default: Locale = DEFAULT_LOCALE) -> Locale:
    """The locale a caller asks for, from an ``Accept-Language`` value; else `default`."""
    for part in (accept_language or "").split(","):
        tag = part.split(";")[0].strip().lower().split("-")[0]
        for locale in LOCALES:
            if tag == locale:
                return locale
    return default


def _flatten(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{key}.")
        elif isinstance(value, str):
            yield key, value
        else:
            raise ValueError(f"{key} is neither text nor a group of texts")
