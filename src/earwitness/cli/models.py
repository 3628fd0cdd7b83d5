"""``earwitness models``: what can be asked, and what one model can take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from earwitness.models.adapter import AdapterInfo
    from earwitness.models.options import Option
    from earwitness.models.protocols import Limits
    from earwitness.models.registry import ModelEntry

group = typer.Typer(
    help="What can be asked: adapters, their options and limits.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    app.add_typer(group, name="models")


@group.command("list")
def list_models(
    models_file: Path | None = typer.Option(
        None, help="File of named models (default: models.yaml)."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON on standard output."),
) -> None:
    """List the adapters, what they take, what is missing to use them, and the named models of models.yaml.

    A model is named adapter/name, such as openai/gpt-audio or baseline/majority. A key that is not set is only
    missing where the service wants one.

    Examples:

      earwitness models list

      earwitness models list --json
    """
    from earwitness.models.registry import MODELS_FILE, list_adapters, read_models_file

    adapters = list_adapters()
    file = models_file or (MODELS_FILE if MODELS_FILE.is_file() else None)
    entries = read_models_file(file) if file else {}
    if as_json:
        _print_json(
            {
                "adapters": [
                    {
                        "origin": each.origin,
                        "installed": each.installed,
                        "missing": each.missing,
                        **_info_fields(each.info),
                    }
                    for each in adapters
                ],
                "descriptions": _descriptions(),
                "entries": [_entry_fields(entry) for entry in entries.values()],
            }
        )
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for each in adapters:
        origin = "" if each.origin == "built in" else f" (from {each.origin})"
        console.print(Text(each.info.form + origin, style="bold"), soft_wrap=True)
        grid = Table.grid(padding=(0, 2))
        grid.add_row("  asks", Text(each.info.summary))
        grid.add_row("  takes", Text(_takes(_limit_fields(each.info.limits))))
        grid.add_row("  missing", Text(each.missing or "nothing"))
        for example in each.info.examples:
            grid.add_row("  such as", Text(f"--model {example}"))
        console.print(grid)
    console.print("[bold]described services that ship with the package[/]")
    for service in _descriptions():
        line = f"  endpoint/{service['name']}: "
        if service["template"]:
            line += "a template to copy"
        else:
            missing = service["missing"] or "nothing"
            line += f"{service['summary']}; takes {_takes(service['limits'])}; missing: {missing}"
        console.print(Text(line))
    if entries:
        console.print(f"[bold]named in[/] {file}")
        for entry in entries.values():
            console.print(
                f"  {entry.name}: {entry.model}", markup=False, highlight=False, soft_wrap=True
            )
    console.print("Options of one model: earwitness models show NAME", highlight=False)


@group.command()
def show(
    name: str = typer.Argument(help="adapter/name, an entry of models.yaml, or an adapter."),
    option: list[str] = typer.Option([], "-M", help="key=value, as for earwitness run."),
    models_file: Path | None = typer.Option(
        None, help="File of named models (default: models.yaml)."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON on standard output."),
) -> None:
    """Show a model's limits, the settings that enter its replies' keys, and every option it has.

    Nothing is asked and no key is needed.

    Examples:

      earwitness models show openai

      earwitness models show openai/gpt-audio -M temperature=0

      earwitness models show endpoint/my_vendor.yaml
    """
    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from earwitness.models.batching import batch_api
    from earwitness.models.registry import adapter_info, list_adapters, open_model, parse_options

    options = parse_options(option)
    console = Console()
    if name in {each.info.name for each in list_adapters()} and not options:
        info = adapter_info(name)
        if as_json:
            _print_json(_info_fields(info))
            return
        console.print(Text(f"{info.form}\n{info.summary}"))
        _print_options(info.options)
        return
    model = open_model(name, options, models_file=models_file)
    facts: dict[str, Any] = {
        "name": model.name,
        "limits": _limit_fields(model.limits),
        "settings": dict(model.settings),
    }
    api = batch_api(model)
    if api is not None:
        facts["batch_jobs"] = asdict(api.limits)
    if as_json:
        _print_json(facts)
        return
    console.print(Text(model.name, style="bold"), soft_wrap=True)
    for part in ("limits", "batch_jobs", "settings"):
        title, rows = part.replace("_", " "), facts.get(part, {})
        if not rows:
            continue
        grid = Table.grid(padding=(0, 2))
        for key, value in rows.items():
            grid.add_row(f"  {key}", Text(_shown(value), overflow="fold"))
        console.print(title)
        console.print(grid)
    own = getattr(model, "options", None)
    adapter = str(model.settings.get("model", name)).partition("/")[0]
    if own is not None:
        _print_options(own)
    elif adapter in {each.info.name for each in list_adapters()}:
        _print_options(adapter_info(adapter).options)


@group.command()
def probe(
    name: str = typer.Argument(help="adapter/name, or an entry of models.yaml."),
    option: list[str] = typer.Option([], "-M", help="key=value, as for earwitness run."),
    models_file: Path | None = typer.Option(
        None, help="File of named models (default: models.yaml)."
    ),
    seed: int = typer.Option(0, min=0, help="Another seed says other numbers."),
    keep: Path | None = typer.Option(None, help="Folder in which the clips are kept."),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON on standard output."),
) -> None:
    """Find out with eight calls whether sound reaches a model: hearing, deaf or unclear.

    A server that drops the audio still answers, and its answers look like answers. The probe plays two spoken
    numbers, a tone, silence, a sentence and two voices, all made by eSpeak (the extra \\[espeak]).
    Ends with 0 for hearing, 1 for deaf and 3 for unclear.

    Examples:

      earwitness models probe openai/gpt-audio

      earwitness models probe openai/Qwen/Qwen2.5-Omni-7B -M base_url=http://localhost:8000/v1
    """
    import asyncio
    import tempfile

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from earwitness.models.probe import CALLS, ProbeResult, make_clips
    from earwitness.models.probe import probe as ask_all
    from earwitness.models.registry import open_model, parse_options

    model = open_model(name, parse_options(option), models_file=models_file)
    progress = Console(stderr=True)

    async def run(folder: Path) -> ProbeResult:
        clips = await asyncio.to_thread(make_clips, folder, seed)
        with progress.status(f"asking {model.name}, {CALLS} calls"):
            try:
                return await ask_all(model, clips)
            finally:
                await model.aclose()

    with tempfile.TemporaryDirectory(prefix="earwitness-probe-") as folder:
        result = asyncio.run(run(keep or Path(folder)))
    if as_json:
        _print_json(
            {
                "model": model.name,
                "verdict": result.verdict,
                "reason": result.reason,
                "answers": [
                    {
                        "played": answer.clip.name,
                        "asked": answer.clip.prompt.user,
                        "right_answer": answer.clip.truth,
                        "read_as": answer.read,
                        "text": answer.reply.text if answer.reply else None,
                        "scores": answer.reply.scores if answer.reply else None,
                        "error": answer.error,
                    }
                    for answer in result.answers
                ],
            }
        )
    else:
        console = Console()
        table = Table(box=None, padding=(0, 2), header_style="bold")
        for title in ("played", "right answer", "answer", ""):
            table.add_column(title, overflow="fold")
        for answer in result.answers:
            said = answer.error
            if answer.reply is not None:
                said = answer.reply.text if answer.reply.text is not None else "scores"
            mark = "failed" if answer.reply is None else "right" if answer.right else ""
            table.add_row(
                answer.clip.name, answer.clip.truth, Text(" ".join(said.split())[:120]), mark
            )
        console.print(table)
        console.print(Text(f"{model.name}: {result.verdict}", style="bold"), soft_wrap=True)
        console.print(Text(result.reason), soft_wrap=True)
    if result.verdict != "hearing":
        raise typer.Exit(1 if result.verdict == "deaf" else 3)


def _print_options(options: Sequence[Option]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from earwitness.models.pace import PACE_OPTIONS

    if not options:
        return
    console = Console()
    options = (*options, *PACE_OPTIONS)
    console.print("options")
    grid = Table.grid(padding=(0, 2))
    for option in options:
        kind = ", ".join(option.choices) if option.choices else option.kind
        default = "" if option.default is None else f"; default {_shown(option.default)}"
        grid.add_row(f"  -M {option.name}=", Text(f"{option.help} ({kind}{default})"))
    console.print(grid)


def _shown(value: Any) -> str:
    if value is None or value == () or value == []:
        return "-"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _limit_fields(limits: Limits) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(limits)


def _takes(limits: Mapping[str, Any]) -> str:
    """Limits in words, as far as any are known."""
    if not limits["formats"]:
        return "words only"
    said = ", ".join(limits["formats"])
    if limits["rates"]:
        said += " at " + " or ".join(str(rate) for rate in limits["rates"]) + " Hz"
    if limits["min_seconds"]:
        said += f", from {limits['min_seconds']:g} s"
    if limits["max_seconds"]:
        said += f", up to {limits['max_seconds']:g} s"
    if limits["max_bytes"]:
        said += f", up to {limits['max_bytes'] / 1e6:.3g} MB"
    return said


def _descriptions() -> list[dict[str, Any]]:
    """The vendors' services whose descriptions ship, with what each takes and what is missing to use it."""
    from earwitness.models.endpoint_schema import load_description, missing_key, shipped

    described = [(name, load_description(name)) for name in shipped()]
    return [
        {
            "name": name,
            "summary": each.summary,
            "documented": each.documented,
            "template": each.template,
            "missing": "" if each.template else missing_key(each),
            "limits": each.limits.model_dump(mode="json"),
        }
        for name, each in described
    ]


def _info_fields(info: AdapterInfo) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(info)


def _entry_fields(entry: ModelEntry) -> dict[str, Any]:
    return {"name": entry.name, "model": entry.model, "options": dict(entry.options)}


def _print_json(value: Any) -> None:
    import json

    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
