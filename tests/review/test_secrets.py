"""Labels of the data set never reach a browser; nor do ids, names or dates of files that tell them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.clips.corpus import EMOTIONS, load_clip_set, write_clip_set
from earwitness.review import people, sources
from earwitness.scenes.corpus import Corpus, write_scenarios
from tests.review.making import Site, always, clip_set, scene_corpus, served

CSRF = re.compile(rb"[0-9a-f]{64}")


def everything(
    site: Site, token: str, answers: dict[str, str]
) -> list[tuple[str, bytes, dict[str, str]]]:
    """Every response somebody can get, from first page to last, with the words of the session taken out."""
    visitor = site.visitor(token)
    seen: list[tuple[str, bytes, dict[str, str]]] = []

    def keep(name: str, response: object) -> None:
        body = CSRF.sub(b"WORD", response.content)  # type: ignore[attr-defined]
        headers = {
            k: v for k, v in response.headers.items() if k not in ("date", "content-length", "etag")
        }  # type: ignore[attr-defined]
        seen.append((name, body, headers))

    keep("start", visitor.page("/work")[0])
    while True:
        response, page = visitor.page("/work/next")
        keep("item", response)
        if not page.action:
            break
        if 'src="' in response.text and "/audio" in response.text:
            keep("audio", visitor.client.get(page.action + "/audio"))
            part = {"range": "bytes=0-9", "if-range": '"other"'}
            keep("part", visitor.client.get(page.action + "/audio", headers={"range": "bytes=0-9"}))
            keep("whole", visitor.client.get(page.action + "/audio", headers=part))
        keep("wrong", visitor.post(page.action))
        fields = {
            name: answers.get(name.partition(".")[0], values[0])
            for name, values in page.names.items()
        }
        keep("saved", visitor.post(page.action, **fields, note="x"))
        keep("again", visitor.page(page.action)[0])
    keep("undo", visitor.post("/work/undo"))
    return seen


def relabelled_corpus(folder: Path, other: Path) -> None:
    """The same talk and sounds with other reactions and registers."""
    import shutil

    shutil.copytree(folder, other)
    turn = {"pivot": "ambient", "verbal": "pivot", "behavioral": "verbal", "ambient": "behavioral"}
    scenarios = [
        replace(
            scenario,
            events=tuple(
                replace(event, reaction=turn[event.reaction], register=None)
                for event in scenario.events
            ),
        )
        for scenario in Corpus(folder).scenarios()
    ]
    write_scenarios(other / "scenarios.jsonl", scenarios)


def same_tokens(folder: Path) -> str:
    return people.add_people(folder, 1)["ann-01"]


def test_other_reactions_give_the_very_same_pages(tmp_path: Path) -> None:
    corpus = scene_corpus(tmp_path / "a", 6)
    relabelled_corpus(corpus, tmp_path / "b")
    seen = []
    for name, source in (("one", corpus), ("two", tmp_path / "b")):
        sources.create_label(source, tmp_path / name, per_item=1)
        with served(tmp_path / name) as site:
            seen.append(everything(site, same_tokens(tmp_path / name), {"label": "verbal"}))
    assert len(seen[0]) > 15
    assert seen[0] == seen[1]
    # And the labels do differ, or this would prove nothing.
    assert [s.events for s in Corpus(corpus).scenarios()] != [
        s.events for s in Corpus(tmp_path / "b").scenarios()
    ]


def test_other_emotions_give_the_very_same_blind_pages(tmp_path: Path) -> None:
    clip_set(tmp_path / "a", 7)
    first = load_clip_set(tmp_path / "a")
    (tmp_path / "b" / "audio").mkdir(parents=True)
    moved = []
    for number, clip in enumerate(first.clips):
        emotion = EMOTIONS[(EMOTIONS.index(clip.emotion) + 3) % 7]
        path = f"audio/{emotion}-other.wav"
        (tmp_path / "b" / path).write_bytes((tmp_path / "a" / clip.path).read_bytes())
        # The order of lists comes from keys, so these stay; everything that tells the emotion changes.
        moved.append(
            replace(
                clip, emotion=emotion, path=path, source_label=emotion, metadata={"n": str(number)}
            )
        )
    write_clip_set(tmp_path / "b", first.card, moved)
    seen = []
    for name in "ab":
        sources.create_review(tmp_path / name, tmp_path / f"work-{name}", blind=True)
        with served(tmp_path / f"work-{name}") as site:
            seen.append(everything(site, same_tokens(tmp_path / f"work-{name}"), {}))
    for one, two in zip(*seen, strict=True):
        assert one == two
    dates = {headers["last-modified"] for name, _, headers in seen[0] if name == "audio"}
    assert dates == {"Thu, 01 Jan 1970 00:00:00 GMT"}


def test_metadata_inside_a_file_stays_behind(tmp_path: Path) -> None:
    clip_set(tmp_path / "set", 1)
    path = next((tmp_path / "set" / "audio").iterdir())
    plain = path.read_bytes()
    told = b"INFOINAM\x06\x00\x00\x00anger\x00"
    chunk = b"LIST" + len(told).to_bytes(4, "little") + told
    whole = plain[:4] + (len(plain) - 8 + len(chunk)).to_bytes(4, "little") + plain[8:] + chunk
    path.write_bytes(whole)
    import hashlib

    clips = load_clip_set(tmp_path / "set")
    digest = hashlib.sha256(whole).hexdigest()
    write_clip_set(tmp_path / "set", clips.card, [replace(clips.clips[0], sha256=digest)])
    sources.create_review(tmp_path / "set", tmp_path / "work", blind=True)
    with served(tmp_path / "work") as site:
        (visitor,) = site.annotators(1).values()
        response = visitor.client.get("/work/item/1/audio")
        again = visitor.client.get("/work/item/1/audio")
    assert b"anger" not in response.content
    assert response.content == again.content == plain
    assert b"INAM" in path.read_bytes()


def test_an_open_review_tells_what_was_asked_and_nothing_more(tmp_path: Path) -> None:
    clip_set(tmp_path / "set", 1)
    sources.create_review(tmp_path / "set", tmp_path / "work")
    with served(tmp_path / "work") as site:
        (visitor,) = site.annotators(1).values()
        text = visitor.page("/work/next")[0].text
    assert "anger" in text
    assert "The train leaves at 0." in text
    for hidden in ("anger-000", "sp0", ".wav", "audio/anger"):
        assert hidden not in text


@pytest.mark.parametrize("kind", ["label", "blind"])
def test_an_annotator_cannot_read_what_is_the_organisers(tmp_path: Path, kind: str) -> None:
    if kind == "label":
        sources.create_label(scene_corpus(tmp_path / "c", 4), tmp_path / "work", per_item=1)
    else:
        sources.create_review(clip_set(tmp_path / "c", 4), tmp_path / "work", blind=True)
    with served(tmp_path / "work") as site:
        (visitor,) = site.annotators(1).values()
        if kind == "label":
            visitor.answer_label(always("pivot"))
        name = "labels" if kind == "label" else "reviews"
        token = visitor.client.cookies["earwitness_work"]
        pages = ["", "/live.json", "/report", f"/export/{name}.csv", f"/export/{name}.jsonl"]
        for page in pages:
            assert visitor.client.get(f"/organiser{page}").status_code == 401
            forged = visitor.client.get(
                f"/organiser{page}", headers={"cookie": f"earwitness_organiser={token}"}
            )
            assert forged.status_code == 401
        assert visitor.client.get(f"/o/{token}").status_code == 404
        organiser = site.organiser()
        for page in pages:
            assert organiser.client.get(f"/organiser{page}").status_code == 200
        json.loads(organiser.client.get("/organiser/live.json").text)
        # The organiser is nobody's annotator either.
        assert organiser.client.get("/work").status_code == 401
