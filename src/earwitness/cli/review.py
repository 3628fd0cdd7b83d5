"""``earwitness review``: people record, review and label in a local web app."""

from __future__ import annotations

from pathlib import Path

import typer

group = typer.Typer(
    help="Ask people: record clips, review them, label reactions; and see whether they agree.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
create = typer.Typer(
    help="Make a review folder from what there is.", no_args_is_help=True, rich_markup_mode="rich"
)


def register(app: typer.Typer) -> None:
    """Add this group's commands to the program."""
    if not any(entry.name == "create" for entry in group.registered_groups):
        group.add_typer(create, name="create")
    app.add_typer(group, name="review")


@group.callback()
def about() -> None:
    """Ask people: record clips, review them, label reactions; and see whether they agree.

    [bold]From nothing to a figure[/]

      earwitness review create label corpus --out study --limit 200 --per-item 3

      earwitness review links study --annotators 3

      earwitness review serve study

      earwitness review report study

    Everything of a piece of work lies in one folder: project.yaml, review.db, recordings. It needs no network.
    """


_OUT = typer.Option(..., "--out", "-o", help="The review folder; made if absent.")
_TITLE = typer.Option("", "--title", help="What people see on top of every page.")
_SEED = typer.Option(0, "--seed", help="Seed of what is drawn and of who gets what.")


@create.command("record")
def create_record(
    assignments: Path = typer.Argument(
        ..., help="assignments.jsonl of earwitness clips assign, or the folder that holds it."
    ),
    out: Path = _OUT,
    title: str = _TITLE,
    consent: Path | None = typer.Option(
        None, help="Text speakers agree to before they record (default: a packaged one)."
    ),
    consent_version: str = typer.Option(
        "", help="Version of that text; kept with every recording."
    ),
    seconds: str = typer.Option("0.5-30", help="Shortest and longest recording: MIN-MAX."),
    seed: int = _SEED,
) -> None:
    """Speakers record the scripts assigned to them.

    Example: earwitness review create record scripts/assignments.jsonl --out recording
    """
    from earwitness.review import sources

    project = sources.create_record(
        assignments,
        out,
        title=title,
        consent=consent,
        consent_version=consent_version,
        seconds=_seconds(seconds),
        seed=seed,
    )
    _made(out, project.kind)


@create.command("review")
def create_review(
    source: Path = typer.Argument(
        ..., help="A clip set, or a record folder whose recordings are to be reviewed."
    ),
    out: Path = _OUT,
    title: str = _TITLE,
    per_item: int = typer.Option(1, "--per-item", "-n", min=1, help="Reviewers a clip."),
    blind: bool = typer.Option(
        False,
        "--blind",
        help="Ask which of the seven emotions is heard; tell nothing about the clip.",
    ),
    limit: int | None = typer.Option(None, help="Only N clips, drawn with the seed."),
    seed: int = _SEED,
) -> None:
    """Reviewers hear clips and say whether the sound is good and the emotion right.

    Example: earwitness review create review sets/ravdess --out study --blind --per-item 3 --limit 60
    """
    from earwitness.review import sources

    project = sources.create_review(
        source, out, title=title, per_item=per_item, blind=blind, limit=limit, seed=seed
    )
    _made(out, project.kind)


@create.command("label")
def create_label(
    corpus: Path = typer.Argument(..., help="A corpus of scenes with dialogues."),
    out: Path = _OUT,
    title: str = _TITLE,
    per_item: int = typer.Option(3, "--per-item", "-n", min=1, help="Annotators a scene."),
    show: str = typer.Option(
        "transcript", help="transcript, audio or both; the last two need mixed scenes."
    ),
    split: str | None = typer.Option(None, help="train, validation or test (default: all)."),
    bank: Path | None = typer.Option(
        None, help="Folder of the corpus's bank, if not the packaged."
    ),
    limit: int | None = typer.Option(None, help="Only N scenes, drawn with the seed."),
    seed: int = _SEED,
) -> None:
    """Annotators say for each sound of a scene how the speakers react to it.

    Example: earwitness review create label corpus --out study --split test --limit 200

    The labels of the corpus are never sent to a browser.
    """
    from earwitness.errors import UsageError
    from earwitness.review import sources
    from earwitness.review.project import SHOWN

    shown = next((known for known in SHOWN if known == show), None)
    if shown is None:
        raise UsageError("--show", repr(show), ", ".join(SHOWN))
    project = sources.create_label(
        corpus,
        out,
        title=title,
        per_item=per_item,
        show=shown,
        split=split,
        bank=bank,
        limit=limit,
        seed=seed,
    )
    _made(out, project.kind)


@group.command()
def links(
    folder: Path = typer.Argument(..., help="A review folder."),
    annotators: int = typer.Option(0, "--annotators", "-n", min=0, help="Add N people."),
    names: str = typer.Option("", help="Add these people: ann,bob,cem."),
    renew: str = typer.Option("", metavar="NAME", help="A new link for NAME; the old one ends."),
    revoke: str = typer.Option(
        "", metavar="NAME", help="End the link of NAME; what they left open goes to the others."
    ),
    base_url: str = typer.Option(
        "http://127.0.0.1:8642", help="Where people reach the server; goes before every link."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print {name: link} as JSON."),
) -> None:
    """Make a link for each annotator, and deal the items out among them.

    Links are shown once: only a hash of each is kept. A record folder gets one link for each account.

    Add everybody at once where you can: the items are dealt out evenly among those there are. When people are added or
    leave, what is open is dealt out again; answers stay.
    """
    import json

    from earwitness.errors import UsageError
    from earwitness.review import people
    from earwitness.review.project import read_project

    if (renew or revoke) and (annotators or names or (renew and revoke)):
        raise UsageError(
            "links", "too much at once", "one of --annotators, --names, --renew, --revoke"
        )
    named = [name.strip() for name in names.split(",") if name.strip()]
    if revoke:
        people.revoke(folder, revoke)
        typer.echo(f"the link of {revoke} has ended; open items were dealt out again", err=True)
        return
    if renew:
        tokens = {renew: people.renew(folder, renew)}
    else:
        if read_project(folder).kind != "record" and not annotators and not named:
            raise UsageError("links", "nobody named", "--annotators N or --names ann,bob")
        tokens = people.add_people(folder, 0 if named else annotators, named)
    found = {name: f"{base_url.rstrip('/')}/a/{token}" for name, token in tokens.items()}
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    for name, link in found.items():
        typer.echo(f"{name}\t{link}")
    if found:
        typer.echo("These links are shown once. Give each to one person.", err=True)
    else:
        typer.echo("every account has a link already; a new one: --renew NAME", err=True)


@group.command()
def serve(
    folder: Path = typer.Argument(..., help="A review folder."),
    host: str = typer.Option("127.0.0.1", help="Address to listen on; 0.0.0.0 for the network."),
    port: int = typer.Option(8642, min=0, max=65535, help="0 takes a free one."),
    tls_cert: Path | None = typer.Option(None, "--tls-cert", help="Certificate (PEM), for https."),
    tls_key: Path | None = typer.Option(None, "--tls-key", help="Its key (PEM)."),
) -> None:
    """Serve the app until Ctrl-C. Every answer is on the disk before it is confirmed.

    Only this machine can reach it unless --host says otherwise. For phones and other machines use https (--tls-cert,
    --tls-key): browsers give no microphone over plain http, and links would travel in the clear.
    """
    from earwitness.review.project import read_project
    from earwitness.review.serve import Served
    from earwitness.review.serve import serve as run

    kind = read_project(folder).kind

    def on_start(served: Served) -> None:
        make = f"earwitness review links {folder}"
        make += "" if kind == "record" else " --annotators N"
        typer.echo(f"serving {folder} ({kind}) at {served.address}   Ctrl-C stops")
        typer.echo(f"organiser  {served.organiser}")
        typer.echo(f"annotators {make} --base-url {served.address}")
        if not served.loopback and not served.secure:
            typer.echo(
                "note: plain http on the network: links travel in the clear, and browsers give no microphone. Use "
                "--tls-cert and --tls-key.",
                err=True,
            )

    run(folder, host=host, port=port, certificate=tls_cert, key=tls_key, on_start=on_start)


@group.command()
def status(
    folder: Path = typer.Argument(..., help="A review folder."),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON on standard output."),
) -> None:
    """How far people are, and whether they agree so far."""
    import json

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from earwitness.review.results import LIVE_RESAMPLES
    from earwitness.review.state import state_of

    state = state_of(folder, LIVE_RESAMPLES)
    if as_json:
        typer.echo(json.dumps(state, ensure_ascii=False, indent=2))
        return
    console = Console()
    console.print(
        f"{state['full']} of {state['items']} items have all their answers; {state['answers']} of "
        f"{state['wanted']} answers are in",
        highlight=False,
    )
    table = Table(
        "person", "done", "of", "median s", "last answer", "link", box=None, pad_edge=False
    )
    for person in state["people"]:
        median = person["median_seconds"]
        link = "ended" if person["revoked"] else "opened" if person["seen_at"] else "not opened"
        table.add_row(
            Text(person["name"]), str(person["done"]), str(person["given"]),
            "-" if median is None else f"{median:.1f}", person["last_at"] or "-", link,
        )  # fmt: skip
    console.print(table)
    _print_agreement(console, state)


@group.command()
def export(
    folder: Path = typer.Argument(..., help="A review folder."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Folder (default: FOLDER/export)."),
    predictions: Path | None = typer.Option(
        None, help="Write people as a system for: earwitness score --predictions FILE."
    ),
    each: bool = typer.Option(
        False, "--each", help="With --predictions: also a file for each person."
    ),
) -> None:
    """Write what people answered as JSON lines and CSV.

    With --predictions FILE.csv people become a row of the leaderboard: the label most of them gave each item.

      earwitness review export study --predictions people.csv

      earwitness score --predictions people.csv --clips sets/ravdess

    Cells that a spreadsheet would run as a formula get an apostrophe in front.
    """
    from earwitness.errors import UsageError
    from earwitness.review import export as exporting

    if each and predictions is None:
        raise UsageError("--each", "goes with --predictions", "--predictions FILE.csv")
    if predictions is None:
        for path in exporting.export(folder, out):
            typer.echo(path)
        return
    from earwitness.audio.files import atomic_write_text
    from earwitness.runs.folder import slug

    for name, table in exporting.predictions(folder, each=each).items():
        path = predictions
        if name != "people":
            path = predictions.with_name(f"{predictions.stem}--{slug(name)}{predictions.suffix}")
        atomic_write_text(path, exporting.to_csv(table))
        typer.echo(path)


@group.command()
def report(
    folder: Path = typer.Argument(..., help="A review folder."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Folder (default: FOLDER/export)."),
    as_json: bool = typer.Option(False, "--json", help="Print the figures as JSON."),
) -> None:
    """Write the page that tells whether people agree, with the labels and with each other.

    Cohen's, Fleiss' and Krippendorff's coefficients, per class and pairwise, with bootstrap intervals over whole scenes
    or speakers; accuracy of people; and what they confuse.
    """
    from rich.console import Console

    from earwitness.review.report import write_report

    page, data = write_report(folder, out)
    if as_json:
        typer.echo(data.read_text(encoding="utf-8").rstrip("\n"))
        return
    import json

    _print_agreement(Console(), json.loads(data.read_text(encoding="utf-8")))
    typer.echo(page)


def _print_agreement(console: object, state: dict[str, object]) -> None:
    from rich.console import Console
    from rich.table import Table

    assert isinstance(console, Console)
    found = state["agreement"]
    assert isinstance(found, list)
    for study in found:
        counts = study["counts"]
        console.print(
            f"\n[bold]{study['title']}[/]  {counts['ratings']} answers, {counts['people']} people, "
            f"{counts['items']} items",
            highlight=False,
        )
        table = Table("", "value", "95% interval", box=None, pad_edge=False, show_header=False)
        beside, between = study["with_labels"], study["between_people"]
        lines = []
        if beside:
            lines += [
                ("κ with the labels, mean of people", beside["mean_cohen"]),
                ("κ of the majority with the labels", beside["majority_cohen"]),
                ("right", beside["percent"]),
                ("balanced accuracy", beside["balanced_accuracy"]),
            ]
        if between:
            lines += [
                ("κ between people, mean of pairs", between["mean_cohen"]),
                ("Fleiss' κ", between["fleiss"]),
                ("Krippendorff's α", between["krippendorff"]),
                ("same answer", between["percent"]),
            ]
        for words, value in lines:
            if value is not None and value["value"] is not None:
                shown = (
                    "-" if value["low"] is None else f"{value['low']:.3f} to {value['high']:.3f}"
                )
                table.add_row(words, f"{value['value']:.3f}", shown)
        console.print(table)


def _made(out: Path, kind: str) -> None:
    from earwitness.review.store import count, opened

    with opened(out) as db:
        number = count(db, "items")
    who = "" if kind == "record" else " --annotators N"
    typer.echo(f"{out}: {number} items to {kind}")
    typer.echo(f"next: earwitness review links {out}{who}, then earwitness review serve {out}")


def _seconds(text: str) -> tuple[float, float]:
    from earwitness.errors import UsageError

    low, sign, high = text.partition("-")
    try:
        found = (float(low), float(high))
    except ValueError:
        found = (0.0, 0.0)
    if not sign or not 0 < found[0] < found[1] <= 600:
        raise UsageError("--seconds", f"found {text!r}", "MIN-MAX in seconds, such as 0.5-30")
    return found
