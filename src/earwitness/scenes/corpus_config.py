"""``corpus.yaml``: everything a corpus depends on, and no dates.

The file is compared between runs, so what changes from run to run (times, costs, counts of calls) is kept
in the logs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from earwitness.errors import DataError
from earwitness.scenes.plan import Preset
from earwitness.scenes.scenario import Split

FORMAT: Literal[1] = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BankUsed(_Part):
    """The bank, by content."""

    id: str
    version: str
    language: str
    hash: str = Field(description="SHA-256 of what the bank says.")


class LibraryUsed(_Part):
    """What of a sound library the plan depends on."""

    hash: str = Field(description="SHA-256 of how many takes there are of what, in which split.")
    min_takes: int = Field(
        ge=1, description="Takes a sound must have in a split to be drawn there."
    )
    drawable: dict[Split, tuple[str, ...]] = Field(description="Sounds with enough takes.")
    left_out: tuple[str, ...] = Field(
        default=(), description="Locations without an ambience in some split: no scene is there."
    )


class CastUsed(_Part):
    """What of a cast of voices the plan depends on."""

    hash: str
    tags: tuple[str, ...] = Field(description="Delivery tags that every voice can render.")


class WriterUsed(_Part):
    """Who wrote, with everything that changes what is written (never a key)."""

    name: str
    family: str | None = Field(default=None, description="Family of models, to keep judges apart.")
    options: dict[str, Any] = Field(default_factory=dict, description="As given with -M.")
    settings: dict[str, Any] = Field(default_factory=dict)
    prompts: dict[str, str] = Field(default_factory=dict, description="Prompt and version -> hash.")


class LoopUsed(_Part):
    """How often a scenario is tried before it is abandoned, and a place before it is left empty."""

    max_attempts: int = Field(default=5, ge=1)
    max_refills: int = Field(default=3, ge=0)


class CorpusConfig(_Part):
    """The whole of ``corpus.yaml``."""

    format: Literal[1] = FORMAT
    seed: int
    preset: Preset
    templates: int = Field(ge=1)
    per_template: int = Field(ge=1)
    bank: BankUsed
    library: LibraryUsed | None = None
    cast: CastUsed | None = None
    writer: WriterUsed | None = Field(default=None, description="Of the dialogues.")
    topic_writer: WriterUsed | None = Field(default=None, description="Where it is another one.")
    templates_writer: WriterUsed | None = Field(default=None, description="Where it is a model.")
    loop: LoopUsed | None = None
    judge: dict[str, Any] | None = Field(
        default=None, description="Judge, embedder and tau; none before the filter has run."
    )
    versions: dict[str, str] = Field(default_factory=dict, description="Of the software.")

    def to_yaml(self) -> str:
        """The file's text."""
        return yaml.safe_dump(
            self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100
        )


def read_config(path: Path) -> CorpusConfig:
    """Read ``corpus.yaml``.

    Raises
    ------
    DataError: it is missing, no YAML, or says what no corpus may say.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(str(path), f"cannot be read ({error.strerror})", "a corpus.yaml") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise DataError(str(path), f"is no valid YAML ({reason})", "a corpus.yaml") from None
    try:
        return CorpusConfig.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise DataError(f"{path}: {where}", first["msg"], "a corpus.yaml of format 1") from None


def versions_in_use() -> dict[str, str]:
    """Versions of what the plan and the words depend on."""
    from importlib import metadata

    from earwitness import __version__

    return {"earwitness": __version__, "numpy": metadata.version("numpy")}
