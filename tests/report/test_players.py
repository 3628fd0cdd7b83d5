from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.clips.corpus import EMOTIONS
from earwitness.errors import DataError, LicenceError, UsageError
from earwitness.report import players, write_report
from earwitness.report.boards import build
from earwitness.tasks.records import System
from tests.report.making import make_system, write_clips
from tests.report.reading import read

N_ITEMS = 14


@pytest.fixture
def system(tmp_path: Path) -> System:
    write_clips(tmp_path / "set", N_ITEMS)
    return make_system("m", n_items=N_ITEMS, folder=tmp_path / "set")


def test_bundle_copies_only_the_clips_of_the_report(system: System, tmp_path: Path) -> None:
    (tmp_path / "set" / "audio" / "unused.wav").write_bytes(b"RIFF")
    paths = write_report([system, replace(system, name="n")], tmp_path / "out", bundle=True)
    assert paths.html == tmp_path / "out" / "report" / "report.html"
    copies = sorted(p.name for p in (paths.html.parent / "clips").iterdir())
    assert copies == [f"clip-{k:05d}.wav" for k in range(N_ITEMS)]
    assert paths.clips == N_ITEMS
    rows = read(paths.html.read_text("utf-8")).rows
    assert rows["sounds"][rows["items"]["sound"][3]] == "clips/clip-00003.wav"
    original = tmp_path / "set" / "audio" / "00003.wav"
    assert (paths.html.parent / "clips" / "clip-00003.wav").read_bytes() == original.read_bytes()
    assert paths.csv.parent == tmp_path / "out"


def test_embedding_puts_the_bytes_into_the_page(system: System, tmp_path: Path) -> None:
    paths = write_report([system], tmp_path / "out", embed_audio=True)
    rows = read(paths.html.read_text("utf-8")).rows
    head, data = rows["sounds"][0].split(",", 1)
    assert head == "data:audio/wav;base64"
    assert base64.b64decode(data) == (tmp_path / "set" / "audio" / "00000.wav").read_bytes()
    assert not (tmp_path / "out" / "report").exists()


def test_without_either_no_audio_and_no_folder_of_the_machine(
    system: System, tmp_path: Path
) -> None:
    html = write_report([system], tmp_path / "out").html.read_text("utf-8")
    assert "data:audio" not in html
    assert str(tmp_path) not in html
    assert read(html).rows["items"]["path"][0] == "audio/00000.wav"


@pytest.mark.parametrize("option", ["bundle", "embed_audio"])
def test_licence_is_respected(system: System, tmp_path: Path, option: str) -> None:
    card = {
        **system.card,
        "clips": {**system.card["clips"], "redistribute": False, "licence": "CC-BY-NC-SA-4.0"},
    }  # type: ignore[dict-item]
    flag = "--bundle" if option == "bundle" else "--embed-audio"
    with pytest.raises(
        LicenceError,
        match=rf"clip set 'Voices 1.0': its licence \(CC-BY-NC-SA-4.0\) is not marked as allowing copies; wanted redistribute: true .* for {flag}\. Leave {flag} out",
    ):
        write_report([replace(system, card=card)], tmp_path / "out", **{option: True})  # type: ignore[arg-type]
    assert not (tmp_path / "out" / "report").exists()
    assert not (tmp_path / "out" / "report.html").exists()


def test_one_forbidden_set_among_allowed_ones_stops_all(system: System, tmp_path: Path) -> None:
    other = replace(
        system, name="n", card={**system.card, "clips": {"name": "Closed", "sha256": "1"}}
    )
    with pytest.raises(LicenceError, match=r"clip set 'Closed': its licence \(not named\)"):
        write_report([system, other], tmp_path / "out", bundle=True)


def test_truthy_words_are_no_permission(system: System, tmp_path: Path) -> None:
    card = {**system.card, "clips": {**system.card["clips"], "redistribute": "no"}}  # type: ignore[dict-item]
    with pytest.raises(LicenceError, match="not marked as allowing copies"):
        write_report([replace(system, card=card)], tmp_path / "out", bundle=True)


def test_predictions_without_clips_have_nothing_to_bundle(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"--bundle: the systems name no audio files\. Leave --bundle out"
    ):
        write_report([make_system("m", n_items=7, origin="predictions")], tmp_path, bundle=True)


def test_missing_clip_is_named(system: System, tmp_path: Path) -> None:
    (tmp_path / "set" / "audio" / "00005.wav").unlink()
    with pytest.raises(DataError, match=r"00005\.wav: the clip of item 'clip-00005' is missing"):
        write_report([system], tmp_path / "out", embed_audio=True)


def test_too_much_to_embed(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(players, "MAX_EMBEDDED_BYTES", 1000)
    with pytest.raises(UsageError, match=r"--embed-audio: 14 clips are 0 MB.*Use --bundle"):
        players.embed_clips(build([system], EMOTIONS))


def test_both_options_exclude_each_other(system: System, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="both --bundle and --embed-audio are given; wanted one of them"
    ):
        write_report([system], tmp_path, bundle=True, embed_audio=True)


def test_silence_has_no_player(system: System, tmp_path: Path) -> None:
    quiet = make_system("m", n_items=N_ITEMS, folder=tmp_path / "set", condition="silence")
    with pytest.raises(UsageError, match="the systems name no audio files"):
        write_report([quiet], tmp_path / "out", bundle=True)


def test_ids_that_are_no_file_names(system: System, tmp_path: Path) -> None:
    odd = ["../../etc/passwd", "a/b", "a:b", "A_B", "", "ü"]
    decisions = tuple(
        replace(d, item_id=odd[k]) for k, d in enumerate(system.decisions[: len(odd)])
    )
    paths = write_report([replace(system, decisions=decisions)], tmp_path / "out", bundle=True)
    names = sorted(p.name for p in (paths.html.parent / "clips").iterdir())
    assert names == [
        "A_B-3.wav",
        "a_b-2.wav",
        "a_b.wav",
        "clip-2.wav",
        "clip.wav",
        "etc_passwd.wav",
    ]
