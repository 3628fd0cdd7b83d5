"""Import: the layouts of the collections, class maps, conversion, splits that stay."""

from __future__ import annotations

import csv
import json
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio import Audio, read_audio, write_audio
from earwitness.errors import DataError, UsageError
from earwitness.scenes.bank import Bank, load_bank
from earwitness.scenes.sound_growing import JOURNAL, GrowingLibrary
from earwitness.scenes.sound_import import (
    Imported,
    ImportSettings,
    convert_one,
    import_sounds,
    plan_jobs,
)
from earwitness.scenes.sound_maps import identity_map, known_maps, load_class_map
from earwitness.scenes.sound_sources import READERS, ReaderOptions, licence_name
from earwitness.scenes.sound_splits import TooFewTakesError
from earwitness.scenes.sounds import load_library

MAP = Path(__file__).with_name("environment_map.yaml")


@cache
def bank() -> Bank:
    return load_bank()


def burst(
    path: Path, seed: int, seconds: float = 0.8, rate: int = 22050, silence: float = 0.3
) -> None:
    quiet = np.zeros(round(silence * rate), np.float32)
    noise = np.random.default_rng(seed).normal(0, 0.1, round(seconds * rate)).astype(np.float32)
    write_audio(path, Audio(np.concatenate([quiet, noise, quiet]), rate))


def table(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def esc50(tmp_path: Path) -> Path:
    folder = tmp_path / "ESC-50-master"
    rows = []
    for n in range(9):
        clip = 100 + n // 2
        name = f"{1 + n % 5}-{clip}-{'ABC'[n % 3]}-0.wav"
        burst(folder / "audio" / name, n)
        category = "dog" if n < 6 else "crickets" if n < 8 else "sneezing"
        rows.append(
            {
                "filename": name,
                "fold": 1,
                "target": 0,
                "category": category,
                "esc10": "True" if n < 2 else "False",
                "src_file": clip,
                "take": "A",
            }
        )
    table(folder / "meta" / "esc50.csv", rows)
    return folder


@pytest.fixture
def urbansound8k(tmp_path: Path) -> Path:
    folder = tmp_path / "UrbanSound8K"
    rows = []
    for n in range(6):
        name = f"{200 + n // 2}-3-0-{n}.wav"
        burst(folder / "audio" / f"fold{1 + n % 2}" / name, 20 + n)
        rows.append(
            {
                "slice_file_name": name,
                "fsID": 200 + n // 2,
                "start": 0,
                "end": 4,
                "salience": 2 if n == 5 else 1,
                "fold": 1 + n % 2,
                "classID": 3,
                "class": "dog_bark" if n != 4 else "street_music",
            }
        )
    table(folder / "metadata" / "UrbanSound8K.csv", rows)
    return folder


@pytest.fixture
def fsd50k(tmp_path: Path) -> Path:
    folder = tmp_path / "FSD50K"
    for part, first in (("dev", 300), ("eval", 400)):
        rows, info = [], {}
        for n in range(3):
            clip = str(first + n)
            burst(folder / f"FSD50K.{part}_audio" / f"{clip}.wav", first + n)
            labels = "Bark,Dog,Domestic_animals_and_pets,Animal" if n else "Bark,Dog,Knock,Door"
            row = {"fname": clip, "labels": labels, "mids": "/m/x"}
            rows.append({**row, "split": "train"} if part == "dev" else row)
            info[clip] = {
                "title": f"bark {clip}",
                "license": "http://creativecommons.org/licenses/by/3.0/",
                "uploader": "anna",
                "tags": [],
                "description": "",
            }
        table(folder / "FSD50K.ground_truth" / f"{part}.csv", rows)
        path = folder / "FSD50K.metadata" / f"{part}_clips_info_FSD50K.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(info))
    return folder


def run(kind: str, source: Path, out: Path, settings: ImportSettings | None = None, few: str = "refuse", **options: object) -> Imported:  # fmt: skip
    listing = READERS[kind](source, ReaderOptions(**options))  # type: ignore[arg-type]
    mapped = load_class_map(kind, bank())
    return import_sounds(listing, mapped, bank(), out, settings=settings, few=few, workers=1)  # type: ignore[arg-type]


def test_esc50(esc50: Path, tmp_path: Path) -> None:
    imported = run("esc50", esc50, tmp_path / "lib", few="skip")
    takes = imported.library.sounds("dog_bark")
    assert len(takes) == 6
    assert Counter(t.licence for t in takes) == {"CC BY 3.0": 2, "CC BY-NC 3.0": 4}
    assert imported.left_out == {"sneezing: a voice": 1}
    # Two of three clips are of one recording: they stay together, and every split has one.
    splits: dict[str, set[str]] = {}
    for take in takes:
        splits.setdefault(take.group, set()).add(take.split)
        assert take.attribution.startswith("ESC-50 by Karol J. Piczak; Freesound recording 10")
    assert sorted(x for found in splits.values() for x in found) == ["test", "train", "validation"]
    # Two crickets are too few for three splits.
    assert imported.library.ids("ambience") == ()


def test_takes_are_converted_trimmed_and_measured(esc50: Path, tmp_path: Path) -> None:
    take = run("esc50", esc50, tmp_path / "lib", few="skip").library.sounds("dog_bark")[0]
    audio = read_audio(tmp_path / "lib" / take.path)
    assert (audio.rate, audio.channels) == (44100, 1)
    assert take.duration_s == pytest.approx(0.86, abs=0.03)
    assert take.prepared == "22050 Hz resampled to 44100 Hz; trimmed"
    assert not take.band_limited
    assert take.bandwidth_hz == pytest.approx(11_000, abs=500)
    assert take.loudness_lufs == pytest.approx(-18, abs=3)


def test_too_few_are_refused_before_any_work(esc50: Path, tmp_path: Path) -> None:
    with pytest.raises(
        TooFewTakesError, match=r"the ambience campsite \(1\).*--split-policy shared"
    ):
        run("esc50", esc50, tmp_path / "lib")
    assert not (tmp_path / "lib" / "sounds").exists()


def test_urbansound8k(urbansound8k: Path, tmp_path: Path) -> None:
    listing = READERS["urbansound8k"](urbansound8k, ReaderOptions())
    assert listing.left_out == {"in the background of its recording": 1}
    imported = import_sounds(
        listing,
        load_class_map("urbansound8k", bank()),
        bank(),
        tmp_path / "lib",
        policy="shared",
        workers=1,
    )
    assert len(imported.library.sounds("dog_bark", "test")) == 4
    assert imported.library.card.split_policy == "shared"
    assert imported.library.shared


def test_fsd50k(fsd50k: Path, tmp_path: Path) -> None:
    imported = run("fsd50k", fsd50k, tmp_path / "lib")
    takes = imported.library.sounds("dog_bark")
    assert len(takes) == 4
    assert imported.left_out == {"classes of several sounds": 2}
    assert takes[0].licence == "CC BY 3.0"
    assert takes[0].attribution.endswith("by anna (freesound.org/s/301), CC BY 3.0")
    assert takes[0].author == "anna"


def test_folders_of_classes(tmp_path: Path) -> None:
    for n in range(3):
        burst(tmp_path / "mine" / "Terrier" / f"{n}.wav", n)
    own = tmp_path / "map.yaml"
    own.write_text("id: mine\nsounds: {terrier: dog_bark}\n")
    with pytest.raises(UsageError, match="--licence"):
        READERS["folder"](tmp_path / "mine", ReaderOptions())
    listing = READERS["folder"](tmp_path / "mine", ReaderOptions(licence="CC0 1.0"))
    imported = import_sounds(
        listing, load_class_map(own, bank()), bank(), tmp_path / "lib", workers=1
    )
    assert {t.split for t in imported.library.sounds("dog_bark")} == {"train", "validation", "test"}


def test_tables_with_columns_of_their_own(tmp_path: Path) -> None:
    burst(tmp_path / "a.wav", 1)
    table(tmp_path / "t.csv", [{"path": "a.wav", "what": "dog", "rights": "http://creativecommons.org/licenses/by-sa/4.0/", "credit": "Anna"}])  # fmt: skip
    columns = {"file": "path", "class": "what", "licence": "rights", "attribution": "credit"}
    listing = READERS["folder"](tmp_path, ReaderOptions(Path("t.csv"), columns))
    assert listing.recordings[0].licence == "CC BY-SA 4.0"
    assert listing.recordings[0].attribution == "Anna"
    with pytest.raises(DataError, match="no column 'file'"):
        READERS["folder"](tmp_path, ReaderOptions(Path("t.csv")))
    with pytest.raises(UsageError, match="'colour'"):
        READERS["folder"](tmp_path, ReaderOptions(Path("t.csv"), {"colour": "x"}))
    table(tmp_path / "t.csv", [{"path": "b.wav", "what": "dog", "rights": "", "credit": ""}])
    with pytest.raises(DataError, match=r"line 2: no licence"):
        READERS["folder"](tmp_path, ReaderOptions(Path("t.csv"), columns))
    with pytest.raises(DataError, match=r"b\.wav is missing"):
        READERS["folder"](tmp_path, ReaderOptions(Path("t.csv"), columns, licence="CC0 1.0"))


def test_adding_takes_moves_none(esc50: Path, fsd50k: Path, tmp_path: Path) -> None:
    first = run("esc50", esc50, tmp_path / "lib", few="skip").library
    second = run("fsd50k", fsd50k, tmp_path / "lib").library
    before = {take.path: take.split for take in first.takes}
    after = {take.path: take.split for take in second.takes}
    assert len(after) == 10
    assert {path: after[path] for path in before} == before
    assert second.card.version == "2"
    again = run("fsd50k", fsd50k, tmp_path / "lib")
    assert (again.added, again.kept) == (0, 10)
    assert again.library.hash == second.hash


def test_an_import_that_was_stopped_goes_on(
    esc50: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run("esc50", esc50, tmp_path / "whole", few="skip").library
    made = []

    def stop(job: object) -> object:
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append(job)
        return convert_one(job)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr("earwitness.scenes.sound_import.convert_one", stop)
        with pytest.raises(KeyboardInterrupt):
            run("esc50", esc50, tmp_path / "lib", few="skip")
    assert (tmp_path / "lib" / JOURNAL).exists()
    counted = []
    monkeypatch.setattr(
        "earwitness.scenes.sound_import.convert_one",
        lambda job: counted.append(job) or convert_one(job),
    )
    library = run("esc50", esc50, tmp_path / "lib", few="skip").library
    assert len(counted) == 8 - 3
    assert library.hash == whole.hash
    assert not (tmp_path / "lib" / JOURNAL).exists()


def test_events_can_be_taken_apart_and_files_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    parts = [x for _ in range(3) for x in (rng.normal(0, 0.1, 22050), np.zeros(44100))]
    write_audio(tmp_path / "src/dog/a.wav", Audio(np.concatenate(parts).astype(np.float32), 44100))
    own = tmp_path / "map.yaml"
    own.write_text("sounds: {dog: dog_bark}\n")
    listing = READERS["folder"](tmp_path / "src", ReaderOptions(licence="CC0 1.0"))
    mapped = load_class_map(own, bank())

    def library(out: str, settings: ImportSettings) -> list[float]:
        done = import_sounds(
            listing, mapped, bank(), tmp_path / out, settings=settings, policy="shared", workers=1
        )
        return [round(t.duration_s, 1) for t in done.library.takes]

    assert len(library("split", ImportSettings(events="split"))) == 3
    assert library("whole", ImportSettings()) == [3.5]
    assert library("keep", ImportSettings(form="keep")) == [4.5]
    kept = next((tmp_path / "keep/sounds/dog_bark").iterdir())
    assert kept.read_bytes() == (tmp_path / "src/dog/a.wav").read_bytes()


def test_long_takes_are_cut_to_the_banks_longest(tmp_path: Path) -> None:
    burst(tmp_path / "src/dog/a.wav", 1, seconds=9)
    (tmp_path / "map.yaml").write_text("sounds: {dog: dog_bark}\n")
    listing = READERS["folder"](tmp_path / "src", ReaderOptions(licence="CC0 1.0"))
    mapped = load_class_map(tmp_path / "map.yaml", bank())
    done = import_sounds(listing, mapped, bank(), tmp_path / "lib", policy="shared", workers=1)
    assert done.library.takes[0].duration_s == 5.0
    assert done.library.takes[0].prepared.endswith("cut to 5 s")


def test_silent_and_broken_files_are_reported_and_left_out(tmp_path: Path) -> None:
    for n in range(3):
        burst(tmp_path / f"src/dog/{n}.wav", n)
    write_audio(tmp_path / "src/dog/silent.wav", Audio(np.zeros(44100, np.float32), 44100))
    (tmp_path / "src/dog/broken.wav").write_bytes(b"RIFF....")
    (tmp_path / "map.yaml").write_text("sounds: {dog: dog_bark}\n")
    listing = READERS["folder"](tmp_path / "src", ReaderOptions(licence="CC0 1.0"))
    done = import_sounds(
        listing, load_class_map(tmp_path / "map.yaml", bank()), bank(), tmp_path / "lib", workers=1
    )
    assert len(done.library.takes) == 3
    assert {Path(path).name for path in done.refused} == {"silent.wav", "broken.wav"}


def test_nothing_mapped_is_refused(tmp_path: Path) -> None:
    burst(tmp_path / "src/dragon/a.wav", 1)
    listing = READERS["folder"](tmp_path / "src", ReaderOptions(licence="CC0 1.0"))
    with pytest.raises(DataError, match=r"none of 1 recordings.*Found were dragon"):
        import_sounds(listing, load_class_map("esc50", bank()), bank(), tmp_path / "lib")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="is no sound library"):
        GrowingLibrary(tmp_path)


def test_another_policy_is_refused(esc50: Path, tmp_path: Path) -> None:
    run("esc50", esc50, tmp_path / "lib", few="skip")
    with pytest.raises(UsageError, match="never computed again"):
        GrowingLibrary(tmp_path / "lib", policy="shared")


def test_maps_that_ship_fit_the_bank() -> None:
    assert known_maps() == ("esc50", "fsd50k", "urbansound8k")
    for name in known_maps():
        load_class_map(name, bank())
    esc = load_class_map("esc50")
    assert len({*esc.sounds, *esc.ambiences, *esc.left_out}) == 50
    assert len({*(u := load_class_map("urbansound8k")).sounds, *u.left_out}) == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sounds: {dog: dog_brak}", "the unknown sound 'dog_brak'; wanted one of dog_bark"),
        ("ambiences: {dog: parc}", "the unknown location 'parc'; wanted one of park"),
        ("sounds: {dog: 3}", "wanted an id or a list of ids"),
        ("sounds: [dog]", "wanted a mapping"),
        ("sounds: {Dog: dog_bark, dog: dog_bark}", "is there twice"),
        ("colour: red", "the unknown key 'colour'"),
        ("id: x", "no sounds and no ambiences"),
        ("a: [", "not YAML"),
    ],
)
def test_maps_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        load_class_map(path, bank())


def test_unknown_map() -> None:
    with pytest.raises(
        DataError, match="no class map 'nothing'; wanted esc50, fsd50k, urbansound8k or a YAML file"
    ):
        load_class_map("nothing")


def test_names_of_licences() -> None:
    assert licence_name("https://creativecommons.org/publicdomain/zero/1.0/") == "CC0 1.0"
    assert licence_name("http://creativecommons.org/licenses/by/4.0/") == "CC BY 4.0"
    assert licence_name("GPL-2+") == "GPL-2+"


def test_identity_map() -> None:
    assert identity_map("x", bank()).targets("ambience:train_carriage") == (
        ("ambience", "train_carriage"),
    )


def test_real_recordings_make_a_library(real_data: Path, tmp_path: Path) -> None:
    folder = real_data / "environment"
    options = ReaderOptions(Path("metadata.csv"), {"attribution": "credit"})
    listing = READERS["folder"](folder, options)
    mapped = load_class_map(MAP, bank())
    assert {
        label for r in listing.recordings for label in r.labels if not mapped.knows(label)
    } == set()
    jobs, unmapped, _ = plan_jobs(listing, mapped, bank(), tmp_path / "lib", ImportSettings())
    assert not unmapped
    assert len({job.of for job in jobs if job.kind == "sound"}) >= 55
    assert len({job.of for job in jobs if job.kind == "ambience"}) == 8
    # The whole folder takes half a minute; three classes and two places show the way.
    few = {"dog_bark", "rain", "glass_clink", "park", "office"}
    listing.recordings = [r for r in listing.recordings if r.labels[0] in few]
    done = import_sounds(listing, mapped, bank(), tmp_path / "lib", policy="shared", workers=1)
    assert len(done.library.sounds("dog_bark")) == 9
    assert done.library.ids("ambience") == ("office", "park")
    assert all(take.licence for take in done.library.takes)
    assert load_library(tmp_path / "lib", verify=True).hash == done.library.hash
