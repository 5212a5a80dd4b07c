"""Tags of an HTML page that do not match: what browsers repair silently, and seldom as it was meant."""

from __future__ import annotations

from html.parser import HTMLParser

from services.tools.workspace.checks.finding import Finding

_VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905
)
# Elements whose end tag may be left out.
_OPTIONAL_END = frozenset(
    "html head body li dt dd p rt rp optgroup option colgroup caption thead tbody tfoot tr td th".split()  # noqa: SIM905
)
_MOST_OPEN = 2000


def unbalanced_tags(text: str) -> list[Finding]:
    """End tags without a beginning, and beginnings without an end that needs one."""
    page = _Page()
    page.feed(text)
    page.close()
    page.end()
    return page.findings


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.findings: list[Finding] = []
        self._open: list[tuple[str, int, int]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID and len(self._open) < _MOST_OPEN:
            line, column = self.getpos()
            self._open.append((tag, line, column + 1))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # In HTML the slash means nothing; in SVG and MathML it closes. Both are fine.
        return

    def handle_endtag(self, tag: str) -> None:
        line, column = self.getpos()
        if tag in _VOID:
            return
        if not any(name == tag for name, _, _ in self._open):
            if tag != "p":
                self._add(line, column + 1, f"end tag </{tag}> without a beginning")
            return
        while self._open:
            name, at_line, at_column = self._open.pop()
            if name == tag:
                return
            if name not in _OPTIONAL_END:
                self._add(at_line, at_column, f"<{name}> is not closed before </{tag}>")

    def end(self) -> None:
        for name, line, column in self._open:
            if name not in _OPTIONAL_END:
                self._add(line, column, f"<{name}> is never closed")

    def _add(self, line: int, column: int, message: str) -> None:
        self.findings.append(Finding.at(line, column, "tag", message))
