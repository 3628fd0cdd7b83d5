"""Drawing SVG by hand: real text, fixed rounding, colours by class, so that one picture serves light, dark and print.

A picture is deterministic: no clock, no random ids, coordinates rounded to a tenth of a pixel.
"""

from __future__ import annotations

from html import escape
from importlib import resources

from markupsafe import Markup

from earwitness.report.numbers import clean

_PATTERNS = {
    "hatched": '<line class="hatch-line" x1="0" y1="0" x2="0" y2="5"/>',
    "dotted": '<circle class="spot" cx="2.5" cy="2.5" r="1"/>',
}


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    text = f"{value:.1f}"
    text = text.removesuffix(".0")
    return "0" if text == "-0" else text


class Canvas:
    """One picture with its title and description for those who do not see it.

    Parameters
    ----------
    name: prefix of every id inside, unique on a page.
    width, height: size in CSS pixels at which the text is drawn as designed.
    title: what the picture is, in one line.
    description: what it shows, with the figures in words.
    """

    def __init__(
        self, name: str, width: float, height: float, title: str, description: str
    ) -> None:
        self.name = name
        self.width = width
        self.height = height
        self.title = title
        self.description = description
        self._parts: list[str] = []
        self._patterns: set[str] = set()

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        css: str,
        *,
        opacity: float | None = None,
        radius: float = 0,
    ) -> None:
        extra = "" if opacity is None else f' fill-opacity="{opacity:.3f}"'
        extra += f' rx="{number(radius)}"' if radius else ""
        self._parts.append(
            f'<rect class="{css}" x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}"'
            f' height="{number(max(height, 0))}"{extra}/>'
        )

    def patterned(self, x: float, y: float, width: float, height: float, pattern: str) -> None:
        """A rectangle filled with a pattern, ``hatched`` or ``dotted``: told apart without colour."""
        self._patterns.add(pattern)
        self._parts.append(
            f'<rect class="{pattern}" x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}"'
            f' height="{number(max(height, 0))}" fill="url(#{self.name}-{pattern})"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, css: str) -> None:
        self._parts.append(
            f'<line class="{css}" x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"/>'
        )

    def circle(self, x: float, y: float, radius: float, css: str) -> None:
        self._parts.append(
            f'<circle class="{css}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>'
        )

    def path(self, corners: list[tuple[float, float]], css: str) -> None:
        text = " ".join(f"{number(x)},{number(y)}" for x, y in corners)
        self._parts.append(f'<polyline class="{css}" points="{text}"/>')

    def text(
        self,
        x: float,
        y: float,
        words: str,
        css: str = "t",
        *,
        anchor: str = "start",
        turn: float = 0,
    ) -> None:
        extra = "" if anchor == "start" else f' text-anchor="{anchor}"'
        if turn:
            extra += f' transform="rotate({number(turn)} {number(x)} {number(y)})"'
        self._parts.append(
            f'<text class="{css}" x="{number(x)}" y="{number(y)}"{extra}>{escape(clean(words))}</text>'
        )

    def _definitions(self) -> str:
        if not self._patterns:
            return ""
        patterns = "".join(
            f'<pattern id="{self.name}-{pattern}" width="5" height="5" patternUnits="userSpaceOnUse"'
            f' patternTransform="rotate(45)"><rect class="hatch-ground" width="5" height="5"/>{_PATTERNS[pattern]}</pattern>'
            for pattern in sorted(self._patterns)
        )
        return f"<defs>{patterns}</defs>"

    def inline(self, css: str = "") -> Markup:
        """The picture for the inside of a page; colours come from the page's style sheet."""
        return Markup(self._render(f' class="figure {css}"'.replace(' "', '"'), ""))

    def standalone(self) -> str:
        """The picture as a file of its own, for a paper or a slide."""
        style = (
            resources.files("earwitness.report")
            .joinpath("templates/figures.css")
            .read_text("utf-8")
        )
        size = f' width="{number(self.width)}" height="{number(self.height)}" class="figure"'
        ground = '<rect class="ground" width="100%" height="100%"/>'
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + self._render(
            size, f"<style>{style}</style>{ground}"
        )

    def _render(self, attributes: str, head: str) -> str:
        name = self.name
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(self.width)} {number(self.height)}"'
            f'{attributes} role="img" aria-labelledby="{name}-title {name}-desc">'
            f'<title id="{name}-title">{escape(clean(self.title))}</title>'
            f'<desc id="{name}-desc">{escape(clean(self.description))}</desc>'
            f"{head}{self._definitions()}{''.join(self._parts)}</svg>"
        )
