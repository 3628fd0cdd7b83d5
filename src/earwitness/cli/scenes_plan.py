"""``earwitness scenes plan``: allocate every scene of a corpus before any words exist."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from earwitness.scenes.plan_report import PlanReport, PlanTable

PAGE = "plan-report.html"
LONGEST = 60
"""Rows of a table beyond which a terminal is no place for it."""


def register_plan(group: typer.Typer) -> None:
    """Add ``plan`` to the ``scenes`` group."""
    group.command("plan")(plan)


def plan(
    out: Path = typer.Option(
        ..., "--out", "-o", metavar="CORPUS", help="Folder of the corpus; made if absent."
    ),
    templates: int | None = typer.Option(
        None,
        "--templates",
        min=1,
        show_default="100, or what the corpus has",
        help="Situations to talk about; each belongs to one split.",
    ),
    per_template: int | None = typer.Option(
        None,
        "--per-template",
        min=1,
        show_default="10, or what the corpus has",
        help="Scenes of each situation.",
    ),
    seed: int | None = typer.Option(
        None, "--seed", show_default="0, or that of the corpus", help="Seed of all draws."
    ),
    preset: str | None = typer.Option(
        None,
        "--preset",
        show_default="balanced, or that of the corpus",
        help="balanced, paper, or a YAML file: how reactions are distributed.",
    ),
    bank: Path | None = typer.Option(
        None,
        "--bank",
        metavar="DIR",
        show_default="the bank that ships",
        help="What is drawn from.",
    ),
    sounds: Path | None = typer.Option(
        None,
        "--sounds",
        metavar="LIBRARY",
        help="Draw only sounds this library has takes of, at locations it has ambiences of.",
    ),
    min_takes: int = typer.Option(
        1, "--min-takes", min=1, help="Takes a sound needs in a split to be drawn there."
    ),
    voices: str | None = typer.Option(
        None,
        "--voices",
        metavar="CAST",
        help="Plan only conduct that every voice can render: default, kokoro, espeak or a file.",
    ),
    report: bool = typer.Option(
        False, "--report", help=f"Print every table of the plan and write {PAGE}."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Allocate every scene of a corpus: place, speakers, sounds, reactions, split. No words yet.

    The plan is pure: the same options give the same bytes. Asked again with more --templates, a corpus grows
    and nothing that exists changes; options left out are those of the corpus.

    There is no --shard: quotas and balance are of the whole plan, and 10,000 scenes take two seconds.

    [bold]Examples:[/]

      earwitness scenes plan --templates 100 --out corpus --report

      earwitness scenes plan --templates 200 --out corpus
    """
    import json

    from earwitness.scenes.bank import load_bank
    from earwitness.scenes.bank_library import read_library
    from earwitness.scenes.corpus import CONFIG, Corpus
    from earwitness.scenes.corpus_plan import library_used, plan_corpus, read_cast
    from earwitness.scenes.plan import load_preset
    from earwitness.scenes.plan_report import plan_report
    from earwitness.scenes.voices_cast import cast_path

    existing = Corpus(out).config if (out / CONFIG).is_file() else None
    loaded = load_bank(bank)
    library = library_used(read_library(sounds), min_takes, loaded) if sounds else None
    cast = read_cast(cast_path(voices), loaded) if voices else None
    if existing is not None:
        # What is left out is as it was; what is given must be as it was, or the plan is refused.
        library = library if sounds else existing.library
        cast = cast if voices else existing.cast
    planned = plan_corpus(
        out,
        loaded,
        templates=templates or (existing.templates if existing else 100),
        per_template=per_template or (existing.per_template if existing else 10),
        seed=seed if seed is not None else (existing.seed if existing else 0),
        preset=existing.preset
        if existing and preset is None
        else load_preset(preset or "balanced"),
        library=library,
        cast=cast,
    )
    config = planned.corpus.config
    tables = None
    if report:
        tables = plan_report(planned.scenarios, loaded)
        _write_page(out, tables, f"Plan of {out.name}")
    if as_json:
        summary: dict[str, Any] = {
            "corpus": str(out),
            "scenarios": len(planned.scenarios),
            "added": len(planned.scenarios) - planned.before,
            "templates": config.templates,
            "preset": config.preset.id,
            "seed": config.seed,
            "bank": config.bank.model_dump(),
            "locations_left_out": list(config.library.left_out) if config.library else [],
        }
        if tables is not None:
            summary["report"] = tables.to_json()
        typer.echo(json.dumps(summary, ensure_ascii=False, indent=2))
        return
    if tables is not None:
        _print_report(tables)
    left_out = config.library.left_out if config.library else ()
    if left_out:
        typer.echo(f"no scenes at {', '.join(left_out)}: the library has no ambience there")
    _print_summary(out, len(planned.scenarios), planned.before, tables is not None)


def _write_page(out: Path, tables: PlanReport, title: str) -> None:
    from earwitness.runs.folder import write_atomically
    from earwitness.scenes.plan_page import plan_page

    write_atomically(out / PAGE, plan_page(tables, title))


def _print_summary(out: Path, scenarios: int, before: int, with_page: bool) -> None:
    grown = f", {scenarios - before} of them new" if before else ""
    typer.echo(f"{out}: {scenarios} scenarios{grown}")
    if with_page:
        typer.echo(f"tables and plots: {out / PAGE}")
    typer.echo(f"next: earwitness scenes write {out}")


def _print_report(report: PlanReport) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(
        f"{report.scenarios} scenarios in {report.templates} templates, {report.events} events\n"
    )
    for table in report.tables:
        _print_table(console, table)


def _print_table(console: Any, table: PlanTable) -> None:
    from rich.table import Table

    console.print(f"[bold]{table.title}[/]")
    if len(table.rows) <= LONGEST:
        grid = Table("", box=None, padding=(0, 2, 0, 0))
        for column in table.columns:
            grid.add_column(column, justify="right")
        for label, counts in zip(table.rows, table.counts, strict=True):
            grid.add_row(label, *map(str, counts))
        console.print(grid)
    else:
        console.print(f"{len(table.rows)} rows: see the page, or --json")
    if table.guess is not None:
        console.print(
            f"best guess of the reaction from this alone: {table.guess:.1%} balanced accuracy; by lot "
            f"{table.chance:.1%}",
            soft_wrap=True,
        )
    console.print()
