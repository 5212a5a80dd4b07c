"""Locale catalogues: every text a person or a model reads, in ``en`` and ``vi``.

A catalogue is a folder ``<service>/wording/<locale>/*.yaml`` of nested keys; a text is named by its
dotted path and may hold ``{name}`` placeholders. Both locales have the same keys and placeholders;
a test holds them to it.
"""

from services.common.wording.catalogue import Catalogue, Locale, load, locale_of

__all__ = ["Catalogue", "Locale", "load", "locale_of"]
