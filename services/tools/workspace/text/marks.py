"""A text file's own marks: byte-order mark, dominant line end, final line break (FLD-068)."""

from __future__ import annotations

from dataclasses import dataclass

from services.tools.workspace.text.kinds import NotText, kind_of

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Marks:
    """What a file keeps when its text changes."""

    bom: bool = False
    crlf: bool = False
    # None: the file has no text yet and so no habit of its own.
    final_break: bool | None = None


NO_MARKS = Marks()


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file without its byte-order mark, line ends as they are."""

    text: str
    marks: Marks

    @classmethod
    def decode(cls, content: bytes) -> FileText:
        """Read the bytes of a file.

        Raises:
            NotText: They hold a NUL byte or are not UTF-8.
        """
        if b"\0" in content:
            raise NotText(kind_of(content))
        try:
            text = content.removeprefix(BOM).decode("utf-8")
        except UnicodeDecodeError:
            raise NotText(kind_of(content)) from None
        pairs = text.count("\r\n")
        return cls(
            text,
            Marks(
                bom=content.startswith(BOM),
                crlf=pairs > text.count("\n") - pairs,
                final_break=text.endswith("\n") if text else None,
            ),
        )

    def encode(self) -> bytes:
        """The bytes of a file with this text and these marks."""
        return (BOM if self.marks.bom else b"") + self.text.encode("utf-8")


def with_line_ends(text: str, *, crlf: bool) -> str:
    """`text` with all line breaks as CRLF, or all as LF; a lone CR is no line break."""
    plain = text.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if crlf else plain


def in_the_manner_of(text: str, marks: Marks) -> str:
    """A new text for a whole file whose marks stay as they were."""
    if marks.final_break is None:
        return text
    adapted = with_line_ends(text, crlf=marks.crlf)
    ending = "\r\n" if marks.crlf else "\n"
    if marks.final_break and adapted and not adapted.endswith("\n"):
        return adapted + ending
    if not marks.final_break and adapted.endswith(ending) and adapted != ending:
        return adapted.removesuffix(ending)
    return adapted
