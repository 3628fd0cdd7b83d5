"""``earwitness scenes check``: which rules does a dialogue break?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from earwitness.scenes.bank import Bank
    from earwitness.scenes.rules.linting import DialogueLint
    from earwitness.scenes.scenario import Scenario


def register_check(group: typer.Typer) -> None:
    """Add ``check`` to the ``scenes`` group."""
    group.command("check")(check)


def check(
    file: Path | None = typer.Argument(
        None,
        metavar="FILE",
        show_default="dialogues.jsonl of --corpus",
        help="Dialogues as JSON lines (or one JSON list): scenario, topic, timeline.",
    ),
    scenarios: Path | None = typer.Option(
        None, "--scenarios", metavar="FILE", help="The plan they carry out (scenarios.jsonl)."
    ),
    corpus: Path | None = typer.Option(
        None, "--corpus", metavar="DIR", help="Take the plan from this corpus folder."
    ),
    bank: Path | None = typer.Option(
        None, "--bank", metavar="DIR", show_default="the bank that ships", help="Bank of the plan."
    ),
    rules: bool = typer.Option(False, "--rules", help="List every rule with its code, and stop."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Check dialogues, whoever wrote them, against the rules of a scene.

    The scenario of each dialogue stands beside it (--scenarios or --corpus) or inside it: "scenario" may be
    a whole scenario instead of its id. Exits with 1 when a rule is broken. docs/dialogue-rules.md explains
    the codes.

    [bold]Example:[/] earwitness scenes check dialogues.jsonl --scenarios scenarios.jsonl
    """
    from earwitness.errors import UsageError

    if rules:
        _print_rules(as_json=as_json)
        return
    if scenarios is not None and corpus is not None:
        raise UsageError("--scenarios and --corpus", "both given", "one of them")
    if file is None:
        if corpus is None:
            raise UsageError(
                "FILE",
                "nothing to check",
                "a file of dialogues, or --corpus DIR",
                "List the rules: --rules",
            )
        file = corpus / "dialogues.jsonl"
    plan = corpus / "scenarios.jsonl" if corpus is not None else scenarios
    report, used = _lint(file, plan, bank, corpus)
    if as_json:
        import json

        typer.echo(json.dumps(_report_object(file, report, used), ensure_ascii=False, indent=2))
    else:
        _print_report(file, report, used, without_plan=plan is None)
    if report.violations:
        raise typer.Exit(1)


def _lint(
    file: Path, plan: Path | None, folder: Path | None, corpus: Path | None
) -> tuple[DialogueLint, Bank]:
    from earwitness.scenes.bank import load_bank
    from earwitness.scenes.corpus import CONFIG, Corpus
    from earwitness.scenes.rules.linting import lint, read_records, read_scenarios

    bank = load_bank(folder)
    told = bank
    if corpus is not None and (corpus / CONFIG).is_file():
        told = Corpus(corpus).for_cast(bank)
    scenarios: dict[str, Scenario] | None = None if plan is None else read_scenarios(plan)
    return lint(read_records(file), told, scenarios), bank


def _print_rules(*, as_json: bool) -> None:
    from earwitness.scenes.rules.linting import rule_table

    table = rule_table()
    if as_json:
        import json

        typer.echo(json.dumps([{"code": c, "rule": s} for c, s in table], indent=2))
        return
    width = max(len(code) for code, _ in table)
    for code, sentence in table:
        typer.echo(f"{code:{width}}  {sentence}")


def _report_object(file: Path, report: DialogueLint, bank: Bank) -> dict[str, Any]:
    from earwitness.scenes.dialogue import vocabulary_of

    return {
        "file": str(file),
        "bank": bank.id,
        "bank_hash": bank.hash,
        "dialogues": report.dialogues,
        "faulty": report.faulty,
        "counts": report.counts,
        "lists_missing": list(vocabulary_of(bank).missing),
        "violations": [
            {
                "line": found.line,
                "scenario": found.scenario,
                "code": found.violation.code,
                "where": found.violation.where,
                "message": found.violation.message,
            }
            for found in report.violations
        ],
    }


def _print_report(file: Path, report: DialogueLint, bank: Bank, *, without_plan: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from earwitness.scenes.dialogue import vocabulary_of
    from earwitness.scenes.rules.linting import rule_table

    console = Console(highlight=False, soft_wrap=True)
    for found in report.violations:
        violation = found.violation
        place = f"{file}:{found.line}" + (f" {found.scenario}" if found.scenario else "")
        console.print(
            f"[bold red]{violation.code}[/] {escape(place)}, {escape(violation.where)}: "
            f"{escape(violation.message)}"
        )
    if report.counts:
        sentences = dict(rule_table())
        table = Table("code", "broken", "rule", box=None)
        for code, count in report.counts.items():
            table.add_row(code, str(count), escape(sentences[code]))
        console.print()
        console.print(table)
    missing = vocabulary_of(bank).missing
    if missing:
        console.print(
            f"There are no words for {escape(bank.language)} in {', '.join(missing)}: those rules found "
            "nothing. Add them to rules.yaml of the bank."
        )
    if without_plan and "D102-scenario" in report.counts:
        console.print("Rules about events need the plan: --scenarios FILE or --corpus DIR.")
    verdict = f"{report.faulty} break a rule" if report.violations else "all keep the rules"
    console.print(f"{escape(str(file))}: {report.dialogues} dialogues, {verdict}")
