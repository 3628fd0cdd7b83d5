"""``earwitness scenes listen``: a page to hear a corpus and see its timelines, without any run."""

from __future__ import annotations

from pathlib import Path

import typer


def register_listen(group: typer.Typer) -> None:
    """Add ``listen`` to the ``scenes`` group."""
    group.command("listen")(listen)


def listen(
    corpus: Path = typer.Argument(
        ..., metavar="CORPUS", help="Folder of a corpus with mixed scenes."
    ),
    out: Path | None = typer.Option(
        None, "--out", "-o", metavar="PAGE", help="Page to write (default: CORPUS/listen.html)."
    ),
    split: str | None = typer.Option(None, help="Only train, validation or test."),
    limit: int | None = typer.Option(
        None, min=1, help="Only N scenes, drawn by a hash of their ids."
    ),
    bundle: bool = typer.Option(
        False, "--bundle", help="Copy the mixes beside the page, to send on; out is then a folder."
    ),
    embed_audio: bool = typer.Option(
        False, "--embed-audio", help="Put the mixes into the page itself."
    ),
    bank: Path | None = typer.Option(
        None, metavar="DIR", help="Bank of the corpus (default: the one that ships)."
    ),
    title: str | None = typer.Option(None, help="Heading of the page."),
    open_page: bool = typer.Option(False, "--open", help="Open the page in the browser."),
) -> None:
    """Write a page to listen to scenes: waveform, who speaks when, sounds marked by reaction, and the words.

    Press anywhere in the picture to play from there. Twins (without a sound, with another one, the voices alone) can
    be chosen where they were made. By default the page refers to the files where they are: open it on this machine,
    or leave it inside the corpus folder and move both together. No server, no network.

    Examples:

      earwitness scenes listen corpus --open

      earwitness scenes listen corpus --split test --out test.html

      earwitness scenes listen corpus --limit 10 --bundle --out to-send
    """
    from rich.console import Console

    from earwitness.report.build import check_options
    from earwitness.report.listen import listen_page
    from earwitness.report.scene_corpora import bank_note
    from earwitness.tasks.scene_items import load_mixed

    check_options(bundle=bundle, embed_audio=embed_audio)
    mixed = load_mixed(corpus, bank=bank, split=split, limit=limit, any_bank=True)
    page = out if out is not None else corpus / "listen.html"
    if bundle:
        page = (out if out is not None else corpus / "listen") / "listen.html"
    console = Console(stderr=True)
    if note := bank_note(mixed):
        console.print(f"[yellow]note[/] {note}", highlight=False)
    if mixed.unmixed:
        console.print(
            f"[yellow]note[/] {mixed.unmixed} accepted scenes have no mix and are left out.",
            highlight=False,
        )
    with console.status("reading waveforms") as status:
        listen_page(
            mixed,
            page,
            way="bundle" if bundle else "embed" if embed_audio else "link",
            title=title,
            on_scene=lambda done, total: status.update(f"reading waveforms: {done}/{total}"),
        )
    typer.echo(str(page))
    if open_page:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
