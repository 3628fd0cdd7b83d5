"""The plan's tables as one page: shaded counts, bars, no script and nothing from elsewhere."""

from __future__ import annotations

from html import escape

from earwitness.scenes.plan_report import CHANCE, PlanReport, PlanTable

_CSS = """
:root{--ink:#1b1f24;--paper:#fff;--soft:#5b6470;--rule:#d8dde3;--fill:49,99,156}
@media (prefers-color-scheme:dark){:root{--ink:#e8ebee;--paper:#15181c;--soft:#9aa4af;--rule:#343a41;--fill:96,158,224}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:0 auto;padding:24px 16px;max-width:1080px}
h1{font-size:1.5rem;margin:0 0 4px}h2{font-size:1.15rem;margin:32px 0 4px}h3{font-size:1rem;margin:22px 0 4px}
p{color:var(--soft);margin:0 0 8px;max-width:70ch}
div.table{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:3px 10px;border-bottom:1px solid var(--rule);text-align:right;font-weight:400}
th{color:var(--soft)}tbody th,thead th:first-child{text-align:left}
svg{max-width:100%;height:auto}svg text{fill:var(--ink);font:12px system-ui,sans-serif}
.bar{fill:rgb(var(--fill))}.chance{stroke:var(--ink);stroke-dasharray:3 3}.axis{stroke:var(--rule)}.mark{stroke:var(--ink);stroke-width:3}
"""
_BARS = 40
"""Rows of the longest table that is also drawn; beyond it a table alone is easier to read."""


def plan_page(report: PlanReport, title: str) -> str:
    """One HTML page with every table of a report."""
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{report.scenarios} scenarios in {report.templates} templates, {report.events} events.</p>",
        "<h2>How far each feature alone would tell the reaction</h2>",
        "<p>Balanced accuracy over this plan of somebody who knows nothing but the feature. The dashed line is "
        f"chance, {CHANCE:.0%}; the short mark is what the same feature would give if "
        "reactions were dealt out by lot. A bar that does not pass its mark tells nothing.</p>",
        guess_figure(report),
        "<h2>Reactions</h2>",
        *(_section(table) for table in report.joints),
        "<h2>Marginals</h2>",
        *(_section(table) for table in report.marginals),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_CSS}</style></head><body><main>"
        + "\n".join(parts)
        + "</main></body></html>\n"
    )


def guess_figure(report: PlanReport) -> str:
    """How far each feature alone would tell the reaction, as SVG."""
    tables = [table for table in report.joints if table.guess is not None]
    left, right, row = 250, 700, 24
    height = row * len(tables) + 30

    def x(share: float) -> float:
        return left + (right - left) * share

    words = "; ".join(f"{t.title.removeprefix('Reaction by ')} {t.guess:.1%}" for t in tables)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" role="img" '
        f'aria-label="{escape("Balanced accuracy by feature: " + words)}">'
    ]
    for number, table in enumerate(tables):
        guess = table.guess or 0.0
        top = 8 + row * number
        label = table.title.removeprefix("Reaction by ")
        lines.append(
            f'<text x="{left - 10}" y="{top + 12}" text-anchor="end">{escape(label)}</text>'
        )
        lines.append(
            f'<rect class="bar" x="{left}" y="{top}" width="{x(guess) - left:.1f}" height="16"/>'
        )
        mark = x(table.chance or 0.0)
        lines.append(
            f'<line class="mark" x1="{mark:.1f}" x2="{mark:.1f}" y1="{top}" y2="{top + 16}"/>'
        )
        end = max(x(guess), mark) + 6
        lines.append(f'<text x="{end:.1f}" y="{top + 12}">{guess:.1%}</text>')
    bottom = 8 + row * len(tables)
    lines.append(
        f'<line class="chance" x1="{x(CHANCE):.1f}" x2="{x(CHANCE):.1f}" y1="2" y2="{bottom}"/>'
    )
    lines.append(f'<line class="axis" x1="{left}" x2="{left}" y1="2" y2="{bottom}"/>')
    lines.extend(
        f'<text x="{x(share):.1f}" y="{bottom + 16}" text-anchor="middle">{share:.0%}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    return "".join(lines) + "</svg>"


def _section(table: PlanTable) -> str:
    note = ""
    if table.guess is not None:
        note = f"<p>Best guess from this alone: {table.guess:.1%}; by lot {table.chance:.1%}.</p>"
    drawn = ""
    if table.guess is None and len(table.rows) <= _BARS and table.name != "sounds_per_location":
        drawn = _bars(table)
    body = _table(table)
    return f'<h3 id="{escape(table.name)}">{escape(table.title)}</h3>{note}{drawn}{body}'


def _table(table: PlanTable) -> str:
    peak = max((count for row in table.counts for count in row), default=0) or 1
    # Ranges and counts of different kinds stand in this one; shading would compare them.
    shaded = table.name != "sounds_per_location"
    head = "".join(f"<th>{escape(label)}</th>" for label in table.columns)
    rows = []
    for label, counts in zip(table.rows, table.counts, strict=True):
        cells = "".join(
            f'<td style="background:rgba(var(--fill),{0.45 * count / peak:.3f})">{count}</td>'
            if shaded
            else f"<td>{count}</td>"
            for count in counts
        )
        total = f"<td>{sum(counts)}</td>" if shaded else ""
        rows.append(f"<tr><th>{escape(label)}</th>{cells}{total}</tr>")
    last = "<th>all</th>" if shaded else ""
    return (
        f'<div class="table"><table><thead><tr><th></th>{head}{last}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _bars(table: PlanTable) -> str:
    totals = [sum(row) for row in table.counts]
    peak = max(totals, default=0) or 1
    height = 18 * len(totals)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" role="img" '
        f'aria-label="{escape(table.title)}">'
    ]
    for number, (label, total) in enumerate(zip(table.rows, totals, strict=True)):
        top = 18 * number
        width = 440 * total / peak
        lines.append(f'<text x="240" y="{top + 12}" text-anchor="end">{escape(label)}</text>')
        lines.append(f'<rect class="bar" x="250" y="{top + 2}" width="{width:.1f}" height="13"/>')
        lines.append(f'<text x="{256 + width:.1f}" y="{top + 12}">{total}</text>')
    return "".join(lines) + "</svg>"
