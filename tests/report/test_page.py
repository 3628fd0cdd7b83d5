from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.report.boards import ReportData, build
from earwitness.report.page import render_page
from earwitness.report.players import Players
from earwitness.runs.outcomes import Outcome
from earwitness.tasks.records import Decision, System
from tests.report.making import HOSTILE, PROMPT, make_system, make_systems
from tests.report.reading import read


def page_of(*systems: System, title: str | None = None) -> str:
    return render_page(build(systems, EMOTIONS), Players(), title=title)


def test_structure(html: str) -> None:
    page = read(html)
    ids = [e.attributes["id"] for e in page.elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    levels = [int(e.tag[1]) for e in page.elements if re.fullmatch(r"h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    labelled = {e.attributes["for"] for e in page.all("label")}
    fields = {e.attributes["id"] for e in page.elements if e.tag in {"select", "input"}}
    assert fields
    assert fields == labelled
    targets = [e.attributes["href"] for e in page.all("a")]
    assert all(target.startswith("#") and target[1:] in ids for target in targets)
    for element in page.elements:
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(element.attributes.get(name, "").split()) <= set(ids)
    regions = [
        e.attributes.get("aria-label")
        for e in page.elements
        if e.attributes.get("role") == "region"
    ]
    assert len(regions) == len(set(regions)), "regions need names of their own"


def test_every_table_has_caption_and_scoped_headers(html: str) -> None:
    page = read(html)
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(e.attributes.get("scope") in {"row", "col"} for e in page.all("th"))


def test_nothing_comes_from_a_network(html: str) -> None:
    page = read(html)
    for element in page.elements:
        for name in ("src", "href", "action", "poster", "data"):
            assert not re.match(r"(https?:)?//", element.attributes.get(name, ""))
    assert not page.all("link")
    assert not page.all("img")
    assert not page.all("iframe")
    assert "@import" not in html
    assert "url(http" not in html
    policy = next(e.attributes["content"] for e in page.all("meta") if "http-equiv" in e.attributes)
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy


def test_no_figure_is_nan(html: str) -> None:
    assert not re.search(r"\b(nan|NaN|inf|None|undefined)\b", read(html).text)


def test_headline_and_sections(html: str) -> None:
    text = read(html).text
    assert (
        "5 systems asked for the emotion a voice expresses, one of 7 labels, on 140 clips by 14 speakers of Voices 1.0 (CC-BY-4.0)"
        in text
    )
    assert "Asked on 2026-11-02." in text
    for heading in (
        "Pairwise comparisons",
        "All 5 models together",
        "Does the sound matter?",
        "Signs of not listening",
        "Every reply",
        "Run cards",
        "How to read this",
        "Commands",
    ):
        assert heading in text
    assert "p McNemar (items independent)" in text


def test_prompt_settings_and_commands_are_printed(html: str) -> None:
    text = read(html).text
    assert PROMPT in text
    assert "ab12" * 16 in text
    assert "temperature 0 · max_tokens 64" in text
    assert "finished 2026-11-02 10:12 UTC" in text
    assert (
        "earwitness run emotion --clips voices --prompt-set vab --conditions audio,silence --model openai/gpt-audio-large"
        in text
    )
    assert "/data/voices" not in html, "folders of the machine stay out"


def test_label_map_is_printed_with_its_words(html: str) -> None:
    text = read(html).text
    assert "vendor-default version 1" in text
    assert "anxiety" in text


def test_changed_label_map_is_not_passed_off_as_the_one_used() -> None:
    system = make_system("m", n_items=14)
    used = {"id": "vendor-default", "version": "1", "hash": "0" * 64}
    changed = replace(system, card={**system.card, "label_map": used})
    assert "has changed since" in read(page_of(changed)).text
    missing = replace(system, card={**system.card, "label_map": {**used, "id": "own.yaml"}})
    assert "its file is not packaged" in read(page_of(missing)).text


def test_incomplete_run_has_badge_and_bounds(html: str) -> None:
    text = read(html).text
    assert "Incomplete: 1 run with items the model never answered." in text
    assert re.search(
        r"unlucky \(audio\): 9 items never answered, accuracy between \d+\.\d and \d+\.\d%", text
    )


def test_accepted_failures_close_the_run() -> None:
    system = replace(make_system("m", n_items=28, failed=3), accept_failed=True)
    assert "badge incomplete" not in page_of(system)
    assert "badge incomplete" in page_of(replace(system, accept_failed=False))


def test_synthetic_sets_are_marked() -> None:
    text = read(page_of(make_system("m", n_items=14, synthetic=True))).text
    assert "Synthetic clips: plumbing only. This is not emotion recognition." in text
    assert "Synthetic clips" not in read(page_of(make_system("m", n_items=14))).text


def test_replies_cannot_become_markup() -> None:
    decisions = tuple(
        Decision(
            f"{HOSTILE}{k}",
            EMOTIONS[k],
            Outcome("unmapped", rule=HOSTILE, native=HOSTILE + "n", detail=""),
            HOSTILE,
            reply=HOSTILE,
            groups={HOSTILE: HOSTILE},
        )
        for k in range(7)
    )
    system = System(
        HOSTILE,
        decisions,
        "run",
        {
            **make_system("m", n_items=7).card,
            "prompt": {"id": HOSTILE, "text": HOSTILE, "hash": "h"},
            "settings": {HOSTILE: HOSTILE},
        },
    )
    html = page_of(system, replace(system, name="b"), title=HOSTILE)
    page = read(html)
    assert len(page.all("script")) == 2
    assert not page.all("img")
    assert "{{7*7}}" in page.text
    assert HOSTILE in page.rows["texts"]
    data_block = next(e for e in page.all("script") if e.attributes.get("id") == "data")
    assert "<" not in data_block.text
    assert "\u2028" not in data_block.text


def test_lone_surrogates_do_not_break_the_page() -> None:
    decision = Decision("a", "fear", Outcome("unmapped", native="\ud800"), "s", reply="\udfff text")
    page_of(System("m", (decision,))).encode("utf-8")


def test_rows_say_what_happened(data: ReportData, html: str) -> None:
    rows = read(html).rows
    assert len(rows["systems"]) == 7
    system = next(s for s in rows["systems"] if s["name"] == "unlucky")
    assert system["item"] == 140
    assert rows["kinds"][system["kind"][0]] == "failed"
    assert rows["texts"][system["note"][0]] == "rate_limit: 429"
    decisions = next(s for s in data.boards[0].systems if s.name == "unlucky").decisions
    assert [rows["labels"][number] if number >= 0 else None for number in system["label"]] == [
        d.outcome.label for d in decisions
    ]
    assert len(rows["items"]["id"]) == 140, "a clip is listed once, whatever the condition"
    assert rows["sounds"] == []


def test_no_item_answered() -> None:
    decisions = tuple(
        Decision(f"c{k}", label, Outcome("failed", detail="timeout"), f"s{k}")
        for k, label in enumerate(EMOTIONS)
    )
    text = read(page_of(System("m", decisions))).text
    assert "No run is complete, so there are bounds and no accuracy yet." in text
    assert "0.0 to 100.0" in text
    assert "–" in text


def test_predictions_have_a_card_that_says_so() -> None:
    text = read(page_of(make_system("table", n_items=14, origin="predictions"))).text
    assert "a table of predictions: prompt, settings and dates are not known" in text
    assert "earwitness score --predictions FILE.csv --out REPORT" in text


def test_priors_are_shown() -> None:
    data = build([make_system("m", n_items=70)], EMOTIONS, priors={"neutral": 0.8, "anger": 0.2})
    assert "At your priors" in read(render_page(data, Players())).text


@pytest.mark.parametrize("labels", [("yes", "no"), tuple(f"label-{k:02d}" for k in range(20))])
def test_other_sets_of_labels(labels: tuple[str, ...]) -> None:
    system = make_system("m", n_items=40, labels=labels, bias=labels[0])
    html = render_page(build([system], labels, task="sound"), Players())
    assert "Which way the answers lean" not in read(html).text


def test_same_systems_same_bytes(html: str) -> None:
    assert render_page(build(make_systems(), EMOTIONS), Players()) == html
