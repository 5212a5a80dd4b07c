"""Which language a file is in, as far as there is a checker for it."""

from __future__ import annotations

import posixpath
from typing import Literal

Language = Literal[
    "python", "json", "json_lines", "yaml", "toml", "xml", "html", "shell", "javascript", "module"
]

_ENDINGS: dict[str, Language] = {
    ".py": "python",
    ".pyi": "python",
    ".json": "json",
    ".webmanifest": "json",
    ".ipynb": "json",
    ".geojson": "json",
    ".jsonl": "json_lines",
    ".ndjson": "json_lines",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".xml": "xml",
    ".svg": "xml",
    ".xsl": "xml",
    ".xhtml": "xml",
    ".rss": "xml",
    ".html": "html",
    ".htm": "html",
    ".sh": "shell",
    ".bash": "shell",
    ".js": "javascript",
    ".cjs": "javascript",
    ".mjs": "module",
}
# JSON by name, JSON with comments by custom.
_WITH_COMMENTS = ("tsconfig", "jsconfig", "devcontainer", "settings", "launch", "tasks", "extensions")


def language_of(path: str, text: str) -> Language | None:
    """The language of a file by its ending, or by its first line for scripts without one."""
    name = posixpath.basename(path).lower()
    stem, ending = posixpath.splitext(name)
    if ending:
        language = _ENDINGS.get(ending)
        if language == "json" and stem.startswith(_WITH_COMMENTS):
            return None
        if language == "javascript" and _is_module(text):
            return "module"
        return language
    first = text.split("\n", 1)[0]
    if first.startswith("#!"):
        program = first[2:].split()
        names = [posixpath.basename(word) for word in program[:2]]
        if any(word.startswith("python") for word in names):
            return "python"
        if any(word in {"sh", "bash", "dash"} for word in names):
            return "shell"
    return None


def _is_module(text: str) -> bool:
    """Whether a ``.js`` file is written as a module; node decides by a file that is not at hand."""
    return any(line.startswith(("import ", "import{", "export ", "export{")) for line in text.split("\n"))
