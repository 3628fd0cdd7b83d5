"""What was recorded and reviewed in the app is what the commands for collections read."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from earwitness.cli import build_app
from earwitness.review import people, sources
from earwitness.review.export import export
from earwitness.review.recordings import recordings_of
from earwitness.review.store import opened, rows
from tests.review.making import assignments, served, wav
from tests.review.test_recordings import agree, send


def test_from_assignments_over_recordings_and_reviews_to_the_pool(tmp_path: Path) -> None:
    path = assignments(tmp_path / "collection", 2, 3)
    sources.create_record(path, tmp_path / "record")
    hz = iter(range(200, 400, 10))
    with served(tmp_path / "record") as site:
        for token in people.add_people(tmp_path / "record", 0).values():
            speaker = site.visitor(token)
            agree(speaker)
            speaker.page("/work/next")
            for position in (1, 2, 3):
                assert send(speaker, position, wav(1.0, hz=next(hz))).status_code == 200
    sources.create_review(tmp_path / "record", tmp_path / "review")
    with served(tmp_path / "review") as site:
        (reviewer,) = site.annotators(1).values()
        for position, match in enumerate(("yes", "yes", "no", "unclear", "yes", "yes"), start=1):
            reviewer.page(f"/work/item/{position}")
            saved = reviewer.post(
                f"/work/item/{position}",
                audio_quality="poor" if position == 5 else "good",
                match=match,
            )
            assert saved.status_code == 200
    export(tmp_path / "review")
    result = CliRunner().invoke(
        build_app(),
        [
            "clips", "pool", str(tmp_path / "collection"), "--recordings", str(tmp_path / "record"),
            "--reviews", str(tmp_path / "review" / "export" / "reviews.jsonl"),
        ],
    )  # fmt: skip
    assert result.exit_code == 0, (result.output, result.exception)
    pool = (tmp_path / "collection" / "pool.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line)["status"] for line in pool]
    assert sorted(found) == ["accepted"] * 3 + ["no_match", "poor_audio", "unclear"]

    forgotten = CliRunner().invoke(
        build_app(),
        [
            "clips", "forget", "spk-01", "--in", str(tmp_path / "collection"), "--recordings", str(tmp_path / "record"),
            "--review", str(tmp_path / "review"), "--yes",
        ],
    )  # fmt: skip
    assert forgotten.exit_code == 0, (forgotten.output, forgotten.exception)
    assert [row["account"] for row in recordings_of(tmp_path / "record")] == ["spk-02"] * 3
    with opened(tmp_path / "review") as db:
        assert rows(db, "SELECT DISTINCT cluster FROM items") == [("spk-02",)]
    # The app still starts on what is left.
    with served(tmp_path / "record") as site, served(tmp_path / "review"):
        assert site.visitor().client.get("/").status_code == 200
