"""The sound of scenes on a page: licences, addresses, copies, outlines."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from earwitness.audio import encode_audio
from earwitness.audio.io import Audio
from earwitness.errors import DataError, LicenceError, UsageError
from earwitness.report import scene_audio as module
from earwitness.report.listen import listen_page
from earwitness.report.scene_audio import library_of, may_travel, outline, scene_audio
from earwitness.tasks.scene_items import MixedCorpus, load_mixed
from tests.report.reading import read


@pytest.fixture
def mixed(scene_folder: Path) -> MixedCorpus:
    return load_mixed(scene_folder)


def cards(folder: Path, licence: str = "CC0 1.0", voice: str = "hibari/heart") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "mixes.yaml").write_text(
        f"library: {{name: lib, version: '2', licences: {{{licence}: 3}}}}\n"
    )
    (folder / "voices.yaml").write_text(f"voices: {{{voice}: {{gender: F}}}}\n")
    return folder


@pytest.mark.parametrize("licence", ["CC0 1.0", "CC0-1.0", "Public Domain Mark"])
def test_public_takes_and_local_voices_may_travel(tmp_path: Path, licence: str) -> None:
    assert may_travel(cards(tmp_path, licence))[0]
    assert library_of(tmp_path) == f"lib 2 ({licence})"


@pytest.mark.parametrize(
    ("licence", "voice", "why"),
    [
        ("CC BY 4.0", "hibari/heart", "takes under CC BY 4.0"),
        ("CC BY-NC 3.0", "hibari/heart", "takes under CC BY-NC 3.0"),
        ("CC0 1.0", "elevenlabs/v3", "voices of elevenlabs"),
    ],
)
def test_others_may_not(tmp_path: Path, licence: str, voice: str, why: str) -> None:
    assert may_travel(cards(tmp_path, licence, voice)) == (False, why, "")


def test_nothing_said_is_no(tmp_path: Path) -> None:
    assert may_travel(tmp_path) == (False, "mixes.yaml names no licences of its takes", "")
    (cards(tmp_path) / "voices.yaml").unlink()
    assert may_travel(tmp_path) == (False, "voices.yaml names no voices", "")


def test_the_owner_of_a_corpus_decides(tmp_path: Path) -> None:
    cards(tmp_path, "CC BY 4.0")
    own = tmp_path / "licence.yaml"
    own.write_text("licence: CC BY 4.0\nredistribute: true\ncredit: Sounds by Ann.\n")
    yes, _, credit = may_travel(tmp_path)
    assert (yes, credit) == (True, "Sounds by Ann.")
    own.write_text("licence: in house\nredistribute: 'yes'\n")
    assert not may_travel(tmp_path)[0], "only a plain true counts"
    own.write_text("licence: [")
    with pytest.raises(DataError, match=r"licence\.yaml: cannot be read"):
        may_travel(tmp_path)


def test_copies_that_are_not_allowed_stop_before_anything_is_written(
    scene_folder: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(scene_folder, corpus)
    (corpus / "licence.yaml").write_text("licence: closed\nredistribute: false\n")
    with pytest.raises(LicenceError, match=r"not marked as allowing copies .*--link-audio"):
        listen_page(load_mixed(corpus), tmp_path / "out" / "page.html", way="bundle")
    assert not (tmp_path / "out").exists()


def test_links_lead_to_every_version(mixed: MixedCorpus, tmp_path: Path) -> None:
    page = tmp_path / "a b" / "page.html"
    found = scene_audio({"k": mixed}, "link", page)
    assert found.total_bytes == 0
    sounds = found.sounds["k", "hosting.01.00"]
    names = [sound.variant for sound in sounds]
    assert names == [
        "audible",
        "mute-e1",
        "mute-e2",
        "mute-all",
        "swap-e1",
        "swap-e2",
        "speech-only",
    ]
    for sound in sounds:
        assert not sound.source.startswith("/")
        assert (page.parent / unquote(sound.source)).resolve().is_file()


def test_twins_of_an_older_mix_are_not_offered(scene_folder: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(scene_folder, corpus)
    twin = corpus / "twins" / "mute-e1" / "hosting.01.00.json"
    text = twin.read_text("utf-8")
    sha256 = load_mixed(corpus).scenes[0].manifest.audio.sha256
    assert sha256 in text
    twin.write_text(text.replace(sha256, "0" * 64), "utf-8")
    found = scene_audio({"k": load_mixed(corpus)}, "link", tmp_path / "page.html")
    assert "mute-e1" not in [sound.variant for sound in found.sounds["k", "hosting.01.00"]]


def test_bundles_are_copies_of_the_mixes_alone(scene_folder: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(scene_folder, corpus)
    (corpus / "licence.yaml").write_text("licence: CC0\nredistribute: true\n")
    mixed = load_mixed(corpus)
    page = tmp_path / "out" / "page.html"
    found = scene_audio({"k": mixed}, "bundle", page)
    copies = sorted(p.name for p in (tmp_path / "out" / "scenes" / "k").iterdir())
    assert copies == [f"hosting.01.{n:02d}.wav" for n in range(8)]
    for scene in mixed.scenes:
        (sound,) = found.sounds["k", scene.id]
        assert (page.parent / sound.source).read_bytes() == (
            corpus / scene.manifest.audio.file
        ).read_bytes()
    assert found.total_bytes == sum(scene.manifest.audio.bytes for scene in mixed.scenes)


def test_embedding_has_a_limit(
    scene_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(scene_folder, corpus)
    (corpus / "licence.yaml").write_text("redistribute: true\nlicence: CC0\n")
    mixed = load_mixed(corpus)
    (sound,) = scene_audio({"k": mixed}, "embed", tmp_path / "p.html").sounds["k", "hosting.01.00"]
    assert sound.source.startswith("data:audio/wav;base64,")
    monkeypatch.setattr(module, "MAX_EMBEDDED_BYTES", 1_000_000)
    with pytest.raises(UsageError, match="Use --bundle, which writes a folder"):
        scene_audio({"k": mixed}, "embed", tmp_path / "p.html")


def test_an_outline_is_the_largest_sample_of_every_stretch(tmp_path: Path) -> None:
    samples = np.zeros(60_000, dtype=np.float32)
    samples[100], samples[30_050], samples[-1] = 0.5, -1.0, 0.25
    path = tmp_path / "a.wav"
    path.write_bytes(encode_audio(Audio(samples, 8000), format="wav", subtype="PCM_16"))
    found = base64.b64decode(outline(path))
    assert len(found) == 600
    loud = {k: byte for k, byte in enumerate(found) if byte}
    assert loud == {1: 128, 300: 255, 599: 64}


@pytest.mark.parametrize("frames", [1, 7, 599, 601])
def test_outlines_of_short_files(tmp_path: Path, frames: int) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(
        encode_audio(Audio(np.full(frames, 0.5, np.float32), 8000), format="wav", subtype="PCM_16")
    )
    found = base64.b64decode(outline(path))
    assert len(found) == min(frames, 600)
    assert set(found) == {128}


def test_no_outline_without_a_file_and_an_error_for_what_is_none(tmp_path: Path) -> None:
    assert outline(tmp_path / "absent.wav") == ""
    (tmp_path / "text.wav").write_text("no audio")
    with pytest.raises(DataError, match="cannot be read"):
        outline(tmp_path / "text.wav")


def test_a_page_to_listen_with(mixed: MixedCorpus, tmp_path: Path) -> None:
    path = listen_page(mixed, tmp_path / "listen.html")
    html = path.read_text("utf-8")
    assert listen_page(mixed, tmp_path / "listen.html").read_text("utf-8") == html
    page = read(html)
    rows = page.rows_of("scene-data")
    assert [scene["id"] for scene in rows["scenes"]] == [f"hosting.01.{n:02d}" for n in range(8)]
    first = rows["scenes"][0]
    assert [event["reaction"] for event in first["events"]] == ["pivot", "verbal"]
    assert len(first["turns"]) == 8
    assert first["turns"][0][3].startswith("[sighs] Well, hosting.01.00")
    assert rows["answers"] == []
    assert "Model" not in {e.text for e in page.all("label")}
    assert str(tmp_path) not in html
    policy = next(e.attributes["content"] for e in page.all("meta") if "http-equiv" in e.attributes)
    assert policy.startswith("default-src 'none'")
