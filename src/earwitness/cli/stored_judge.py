"""The options of commands that read what a judge of summaries has said, and ask it nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from earwitness.tasks.summary import Judge

JudgeOption = Annotated[
    str,
    typer.Option(
        "--judge",
        help="Judge of summaries: naming (the bank's words), or the text model of run cares, whose kept replies are read.",
    ),
]
JudgeSettingsOption = Annotated[
    list[str] | None, typer.Option("-J", help="key=value, as given to run cares.")
]
BankOption = Annotated[
    Path | None,
    typer.Option(
        "--bank", metavar="DIR", help="Bank of the corpora (default: the one that ships)."
    ),
]


def stored_judge(
    name: str, options: Sequence[str], runs: Sequence[Path], bank: Path | None
) -> Judge | None:
    """The judge whose kept replies are read; None is the offline one with the bank that ships.

    Raises
    ------
    UsageError: this judge has judged nothing beside these runs.
    BankError: the bank cannot be read.
    """
    from earwitness.errors import UsageError
    from earwitness.models.registry import open_text_model, parse_options
    from earwitness.runs.folder import slug
    from earwitness.scenes.bank import load_bank
    from earwitness.tasks.summary import NamingJudge
    from earwitness.tasks.summary_judge import ChatJudge

    if name == "naming":
        return None if bank is None else NamingJudge(load_bank(bank))
    file = f"judge--{slug(name)}.jsonl"
    places = dict.fromkeys(place for run in runs for place in (run, run.parent))
    ledgers = [place / file for place in places if (place / file).is_file()]
    if not ledgers:
        raise UsageError(
            "--judge",
            f"no {file} beside the runs",
            "a judge that earwitness run cares has used",
            f"Let it judge first: earwitness run cares CORPUS --judge {name} ...",
        )
    model = open_text_model(name, parse_options(list(options)))
    return ChatJudge(model, load_bank(bank), ledgers[0], others=ledgers[1:])
