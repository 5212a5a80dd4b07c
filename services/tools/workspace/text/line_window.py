"""Reading a window of lines out of a file of any size, in bounded memory."""

from __future__ import annotations

import codecs
import hashlib

from services.tools.workspace.text.kinds import NotText, kind_of
from services.tools.workspace.text.marks import BOM

# Reading on past this to count lines costs more than the number is worth.
SCANNED_BYTES = 256 * 1024**2
# What a kind is told by; the first chunk is waited for until it has so many.
_HEAD_BYTES = 4096


class LineWindow:
    """Takes the bytes of a file and keeps the lines asked for.

    Args:
        offset: The first line wanted, from 1.
        limit: How many lines are wanted; None for all.
        room: The most characters to keep. A window that would hold more ends after its last whole
            line that fits, or within its first line when not even that fits.
        raw_room: Files of at most this many bytes are kept as they are besides.
    """

    def __init__(self, offset: int, limit: int | None, room: int, raw_room: int = 0) -> None:
        self._offset = offset
        self._last_wanted = None if limit is None else offset + limit - 1
        self._room = room
        self._raw_room = raw_room
        self._raw: list[bytes] = []
        self._hash = hashlib.sha256()
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        # The beginning of the file, until there is enough of it to be looked at.
        self._waiting: bytes | None = b""
        self._head = b""
        self._lines: list[str] = []
        self._line = ""
        self._kept = 0
        self._full = False
        # Complete lines passed so far.
        self._passed = 0
        self._open_line = False
        self.bytes = 0
        self.ended = False
        # The first line shown does not fit by itself: its characters so far, that many shown.
        self.line_cut = False

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; False when enough is known.

        Raises:
            NotText: The file holds a NUL byte or is not UTF-8.
        """
        if self._waiting is not None:
            chunk = self._waiting + chunk
            if len(chunk) < _HEAD_BYTES:
                self._waiting = chunk
                return True
            self._waiting = None
        self._feed(chunk)
        return not (self._full and self.bytes >= SCANNED_BYTES)

    def end(self) -> None:
        """The file has no more bytes.

        Raises:
            NotText: It ends in the middle of a character.
        """
        if self._waiting is not None:
            beginning, self._waiting = self._waiting, None
            self._feed(beginning)
        self._decoded(b"", final=True)
        self.ended = True
        if self._line and not self._full:
            self._keep_line("")

    @property
    def text(self) -> str:
        """The lines of the window, line ends as in the file."""
        return "".join(self._lines)

    @property
    def first(self) -> int:
        """Number of the first line wanted."""
        return self._offset

    @property
    def last(self) -> int:
        """Number of the last line in `text`; below `first` when there is none."""
        return self._offset + len(self._lines) - 1

    @property
    def total(self) -> int:
        """How many lines the file has; of one not read to its end, how many were seen."""
        return self._passed + self._open_line

    @property
    def sha256(self) -> str:
        """Of all bytes taken, in hexadecimal."""
        return self._hash.hexdigest()

    @property
    def raw(self) -> bytes | None:
        """The bytes themselves, if there are few enough."""
        return b"".join(self._raw) if self.bytes <= self._raw_room else None

    def _feed(self, chunk: bytes) -> None:
        if self.bytes == 0:
            self._head = chunk[:_HEAD_BYTES]
        if b"\0" in chunk:
            raise NotText(kind_of(self._head))
        self._hash.update(chunk)
        if self.bytes + len(chunk) <= self._raw_room:
            self._raw.append(chunk)
        text = self._decoded(chunk.removeprefix(BOM) if self.bytes == 0 else chunk, final=False)
        self.bytes += len(chunk)
        self._take(text)

    def _decoded(self, chunk: bytes, *, final: bool) -> str:
        try:
            return self._decoder.decode(chunk, final)
        except UnicodeDecodeError:
            raise NotText(kind_of(self._head)) from None

    def _take(self, text: str) -> None:
        if not text:
            return
        at = 0
        breaks = text.count("\n")
        if self._passed + breaks < self._offset - 1 or self._full:
            self._passed += breaks
            at = len(text)
        while at < len(text):
            end = text.find("\n", at) + 1
            piece = text[at : end or len(text)]
            at += len(piece)
            if self._wanted():
                self._keep(piece, ended=bool(end))
            if end:
                self._passed += 1
            if self._full or self._past_limit():
                self._full = True
                self._passed += text.count("\n", at)
                break
        self._open_line = not text.endswith("\n")

    def _wanted(self) -> bool:
        return not self._full and self._passed + 1 >= self._offset and not self._past_limit()

    def _past_limit(self) -> bool:
        return self._last_wanted is not None and self._passed + 1 > self._last_wanted

    def _keep(self, piece: str, *, ended: bool) -> None:
        if self._kept + len(self._line) + len(piece) > self._room:
            self._full = True
            if not self._lines:
                self._lines.append((self._line + piece)[: self._room])
                self.line_cut = True
            self._line = ""
            return
        if ended:
            self._keep_line(piece)
        else:
            self._line += piece

    def _keep_line(self, piece: str) -> None:
        whole = self._line + piece
        self._lines.append(whole)
        self._kept += len(whole)
        self._line = ""
