"""The state of a folder as plain values: for the organiser's page, ``status --json`` and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from earwitness.review.project import read_project, settings_of
from earwitness.review.results import finding_json, findings, progress, studies
from earwitness.review.store import opened


def state_of(folder: Path, resamples: int, *, pairs: bool = True) -> dict[str, Any]:
    """Progress and agreement as plain values; also what ``earwitness review status --json`` prints."""
    project = read_project(folder)
    with opened(folder) as db:
        far = progress(db, project)
        asked = studies(db, project)
    return {
        "project": settings_of(project),
        "items": far.items,
        "full": far.full,
        "answers": far.answers,
        "wanted": far.wanted,
        "people": [
            {
                "name": p.name,
                "done": p.done,
                "given": p.given,
                "median_seconds": p.median_seconds,
                "seen_at": p.seen_at,
                "last_at": p.last_at,
                "revoked": p.revoked,
            }
            for p in far.people
        ],
        "agreement": [
            finding_json(findings(study, pairs=pairs, seed=project.seed, resamples=resamples))
            for study in asked
        ],
    }
