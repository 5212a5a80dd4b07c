"""Telling what a file is that holds no text, so that the refusal can name it (TLS-222)."""

from __future__ import annotations

from typing import Literal

Kind = Literal[
    "pdf",
    "image",
    "sound",
    "video",
    "archive",
    "program",
    "database",
    "office",
    "utf16",
    "binary",
    "not_utf8",
]

_SIGNATURES: tuple[tuple[bytes, Kind], ...] = (
    (b"%PDF-", "pdf"),
    (b"\x89PNG\r\n\x1a\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF8", "image"),
    (b"BM", "image"),
    (b"II*\0", "image"),
    (b"MM\0*", "image"),
    (b"ID3", "sound"),
    (b"OggS", "sound"),
    (b"fLaC", "sound"),
    (b"\x1aE\xdf\xa3", "video"),
    (b"\x1f\x8b", "archive"),
    (b"BZh", "archive"),
    (b"\xfd7zXZ\0", "archive"),
    (b"7z\xbc\xaf\x27\x1c", "archive"),
    (b"\x28\xb5\x2f\xfd", "archive"),
    (b"\x7fELF", "program"),
    (b"MZ", "program"),
    (b"\xcf\xfa\xed\xfe", "program"),
    (b"SQLite format 3\0", "database"),
    (b"\xd0\xcf\x11\xe0", "office"),
    (b"\xff\xfe", "utf16"),
    (b"\xfe\xff", "utf16"),
)


class NotText(Exception):
    """The bytes are no UTF-8 text."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.kind: Kind = kind


def kind_of(head: bytes) -> Kind:
    """What a file is that begins with `head` and is known not to be UTF-8 text."""
    if head.startswith(b"RIFF"):
        return "image" if head[8:12] == b"WEBP" else "sound" if head[8:12] == b"WAVE" else "video"
    if head[4:8] == b"ftyp":
        return "image" if head[8:12] in {b"heic", b"avif", b"mif1"} else "video"
    if head.startswith(b"PK\x03\x04"):
        return "office" if b"word/" in head[:4096] or b"[Content_Types]" in head[:4096] else "archive"
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    return "binary" if b"\0" in head else "not_utf8"
