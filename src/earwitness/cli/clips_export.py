"""``earwitness clips export``: a selection as a public clip set."""

from __future__ import annotations

from pathlib import Path

import typer


def register_export(group: typer.Typer) -> None:
    """Add ``export`` to the ``clips`` group."""
    group.command("export")(export)


def export(
    folder: Path = typer.Argument(..., metavar="COLLECTION", help="Folder with selection.json."),
    out: Path = typer.Option(..., "--out", "-o", help="Folder of the set; new, empty or its own."),
    name: str = typer.Option(..., "--name", help="Name of the set."),
    version: str = typer.Option("1.0.0", help="Version of the set; a new one for every change."),
    use: str = typer.Option(
        "evaluation-only", help="Permitted use: evaluation-only, non-commercial or any."
    ),
    licence: str = typer.Option("", help="Name of the licence (default: one by --use)."),
    licence_file: Path | None = typer.Option(
        None, metavar="FILE", help="Text of your licence (default: the text for --use that ships)."
    ),
    redistribute: bool | None = typer.Option(
        None,
        "--redistribute/--no-redistribute",
        help="Whether a report may carry the audio along (default: yes under the texts that ship, else no).",
    ),
    split: list[str] = typer.Option(
        [], "--split", help="NAME=SHARE, such as dev=0.25; repeatable (default: test=1)."
    ),
    text: bool = typer.Option(True, "--text/--no-text", help="Publish the scripts with the clips."),
    url: str = typer.Option("", help="Where the set will be found."),
    creator: str = typer.Option("", help="Who made it."),
    contact: str = typer.Option("", help="Whom speakers and users write to."),
    citation: str = typer.Option("", help="How to cite it."),
    published: str = typer.Option("", help="Date of publication, such as 2026-11-30."),
    seed: int = typer.Option(0, help="Seed of speakers' names and of splits."),
    overwrite: bool = typer.Option(False, help="Replace the export that is in --out."),
    workers: int | None = typer.Option(None, min=1, help="Processes (default: one per processor)."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
) -> None:
    """Write the selected recordings as a public clip set.

    16 kHz mono 16-bit WAV, resampled once and recorded; not denoised, not normalised, not augmented. Beside it a
    data card with front matter for data hubs, the licence, a Croissant file, tables and SHA256SUMS. Ids and speakers'
    names are made up. A set for evaluation only carries a canary string. Recordings without consent on record are
    refused. The result is a clip set like any other.

    [bold]Examples:[/]

      earwitness clips export collection --out sets/ours --name ours

      earwitness clips export collection -o sets/ours --name ours --use any --split train=0.8 --split test=0.2

      earwitness run emotion --clips sets/ours --model baseline/energy --out runs
    """
    from typing import get_args

    from rich.console import Console

    from earwitness.cli.clips_progress import steps
    from earwitness.clips.corpus import Use
    from earwitness.clips.exporting import export as write
    from earwitness.clips.exporting_documents import ExportInfo
    from earwitness.errors import UsageError

    uses: dict[str, Use] = {value: value for value in get_args(Use)}
    if use not in uses:
        raise UsageError("--use", f"found {use!r}", f"one of {', '.join(uses)}")
    if not name.strip():
        raise UsageError("--name", "is empty", "a name for the set")
    info = ExportInfo(
        name=name.strip(),
        version=version,
        use=uses[use],
        licence=licence,
        licence_text=_text(licence_file),
        redistribute=licence_file is None if redistribute is None else redistribute,
        url=url,
        creator=creator,
        contact=contact,
        citation=citation,
        published=published,
        splits=_splits(split),
        with_text=text,
        seed=seed,
    )
    with steps(Console(stderr=True), "exporting") as on_progress:
        made = write(folder, out, info, overwrite=overwrite, workers=workers, on_done=on_progress)
    if as_json:
        import json

        summary = {
            "folder": str(made.folder),
            "converted": made.converted,
            "kept": made.kept,
            "sets": {
                split: {
                    "folder": str(clip_set.folder),
                    "clips": len(clip_set.clips),
                    "counts": dict(clip_set.card.counts),
                    "speakers": len({clip.speaker for clip in clip_set.clips}),
                    "sha256": clip_set.sha256,
                }
                for split, clip_set in made.sets.items()
            },
        }
        typer.echo(json.dumps(summary, ensure_ascii=False, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    for split_name, clip_set in made.sets.items():
        counts = ", ".join(f"{label} {n}" for label, n in clip_set.card.counts.items())
        speakers = len({clip.speaker for clip in clip_set.clips})
        console.print(
            f"{clip_set.folder} ({split_name}): {len(clip_set.clips)} clips of {speakers} speakers; {counts}",
            markup=False,
        )
    console.print(
        f"{made.converted} converted, {made.kept} kept; use: {info.use}; "
        "README.md, LICENSE.txt, croissant.json, metadata.jsonl and SHA256SUMS are beside the clips",
        markup=False,
    )


def _text(path: Path | None) -> str:
    from earwitness.errors import DataError

    if path is None:
        return ""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(str(path), f"cannot be read ({error})", "the licence as text") from None
    if not text.strip():
        raise DataError(str(path), "is empty", "the licence as text")
    return text


def _splits(given: list[str]) -> dict[str, float]:
    import re

    from earwitness.errors import UsageError

    found: dict[str, float] = {}
    for text in given or ["test=1"]:
        match = re.fullmatch(r"([a-z][a-z0-9_]{0,20})=(\d*\.?\d+)", text)
        if match is None or match[1] in found or match[1] == "audio":
            raise UsageError("--split", f"found {text!r}", "NAME=SHARE once each, such as dev=0.25")
        found[match[1]] = float(match[2])
    return found
