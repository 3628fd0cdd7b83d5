"""Reading a page back: a strict little parser on the standard library."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "input", "br", "hr", "img", "link", "circle", "rect", "line", "polyline", "path"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """Elements in order, with all text inside each; unclosed tags are an error."""

    elements: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {key: value or "" for key, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    @property
    def text(self) -> str:
        """What a reader may see: everything but scripts and styles."""
        (body,) = self.all("body")
        text = body.text
        for element in self.all("script"):
            text = text.replace(element.text, "")
        return " ".join(text.split())

    @property
    def rows(self) -> dict[str, Any]:
        return self.rows_of("data")

    def rows_of(self, name: str) -> dict[str, Any]:
        """A block of data of the page."""
        found = next(e for e in self.all("script") if e.attributes.get("id") == name)
        rows: dict[str, Any] = json.loads(found.text)
        return rows


def read(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    assert not page._open, f"never closed: {[element.tag for element in page._open]}"
    return page
