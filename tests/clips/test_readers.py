"""Readers: file names and tables of each corpus, with the oddities their published archives have."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import soundfile

from earwitness.clips.labels import load_label_map
from earwitness.clips.readers import READERS, Listing, Options, reader_for
from earwitness.clips.readers.tables import parse_columns, stable_id
from earwitness.errors import DataError, UsageError
from tests.clips.making import ravdess, record, samples


def read(kind: str, source: Path, **options: object) -> Listing:
    return reader_for(kind).read(source, Options(**options))  # type: ignore[arg-type]


def make(folder: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        record(folder / name, number)
    return folder


def test_every_kind_has_a_map_that_exists():
    for reader in READERS.values():
        assert load_label_map(reader.terms.label_map)
        assert reader.own or reader.terms.name
    with pytest.raises(UsageError, match="unknown; wanted one of vocal-affect-bench, ravdess"):
        reader_for("iemocap")


def test_ravdess_names(tmp_path):
    (clip,) = read("ravdess", make(tmp_path, "Actor_04/03-01-05-02-01-02-04.wav")).clips
    assert (clip.id, clip.source_label, clip.speaker) == (
        "03-01-05-02-01-02-04",
        "angry",
        "ravdess_04",
    )
    assert clip.metadata == {
        "intensity": "strong",
        "text": "Kids are talking by the door",
        "repetition": "2",
        "sex": "female",
    }


def test_ravdess_song_video_and_strangers_are_counted(tmp_path):
    make(tmp_path, "03-01-01-01-01-01-01.wav", "03-02-01-01-01-01-01.wav", "note.wav")
    make(
        tmp_path,
        "01-01-01-01-01-01-01.wav",
        "03-01-09-01-01-01-01.wav",
        "._03-01-01-01-01-01-02.wav",
    )
    (tmp_path / "02-01-01-01-01-01-01.mp4").write_bytes(b"video")
    (tmp_path / "README.txt").write_text("x")
    listing = read("ravdess", tmp_path)
    assert [clip.id for clip in listing.clips] == ["03-01-01-01-01-01-01"]
    assert listing.ignored == {
        "a RAVDESS name with unknown codes": 1,
        "not a RAVDESS name": 1,
        "song": 1,
        "with video": 2,
    }


def test_an_archive_that_contains_itself_is_read_once(tmp_path):
    ravdess(tmp_path, actors=1)
    ravdess(tmp_path / "audio_speech_actors_01-24", actors=1)
    listing = read("ravdess", tmp_path)
    assert len(listing.clips) == 7
    assert listing.ignored == {"the same recording under the same name again": 7}


def test_a_flac_beside_its_wav_is_the_same_recording(tmp_path):
    wav = record(tmp_path / "03-01-01-01-01-01-01.wav", 1)
    data, rate = soundfile.read(wav, dtype="int16")
    soundfile.write(tmp_path / "03-01-01-01-01-01-01.flac", data, rate, subtype="PCM_16")
    listing = read("ravdess", tmp_path)
    assert len(listing.clips) == 1
    assert listing.ignored == {"the same recording under the same name again": 1}


def test_two_recordings_of_one_name_are_an_error(tmp_path):
    make(tmp_path, "a/03-01-01-01-01-01-01.wav", "b/03-01-01-01-01-01-01.wav")
    with pytest.raises(
        DataError, match=r"b/03.*another recording than .*a/03.*one of the two folders only"
    ):
        read("ravdess", tmp_path)


def test_crema_d_names_and_sexes(tmp_path):
    audio = make(
        tmp_path / "AudioWAV", "1001_DFA_ANG_XX.wav", "1002_ITH_SAD_X.wav", "1003_ZZZ_ANG_XX.wav"
    )
    (tmp_path / "VideoDemographics.csv").write_text(
        "ActorID,Age,Sex,Race,Ethnicity\n1001,51,Male,Caucasian,Not Hispanic\n", encoding="utf-8"
    )
    listing = read("crema-d", audio)
    assert [(c.source_label, c.speaker) for c in listing.clips] == [
        ("ANG", "crema_d_1001"),
        ("SAD", "crema_d_1002"),
    ]
    assert listing.clips[0].metadata == {"text": "Don't forget a jacket", "sex": "male"}
    assert listing.ignored == {"a CREMA-D name with unknown codes": 1}


def test_tess_names(tmp_path):
    make(tmp_path, "OAF_angry/OAF_back_angry.wav", "YAF_pleasant_surprised/YAF_home_ps.wav")
    make(tmp_path, "OAF_neutral/OA_bite_neutral.wav")
    clips = {
        c.id: (c.source_label, c.speaker, c.metadata["text"]) for c in read("tess", tmp_path).clips
    }
    assert clips == {
        "OAF_back_angry": ("angry", "tess_oaf", "Say the word back"),
        "YAF_home_ps": ("ps", "tess_yaf", "Say the word home"),
        "OA_bite_neutral": ("neutral", "tess_oaf", "Say the word bite"),
    }


def test_savee_in_one_folder_or_by_speaker(tmp_path):
    flat = read("savee", make(tmp_path / "flat", "DC_a01.wav", "JE_sa02.wav", "KL_su03.wav"))
    deep = read("savee", make(tmp_path / "deep", "DC/a01.wav", "JE/sa02.wav", "KL/su03.wav"))
    for listing in (flat, deep):
        assert [(c.id, c.source_label, c.speaker) for c in listing.clips] == [
            ("DC_a01", "a", "savee_dc"),
            ("JE_sa02", "sa", "savee_je"),
            ("KL_su03", "su", "savee_kl"),
        ]
    with pytest.raises(DataError, match=r"without its speaker \(DC, JE, JK, KL\): 1"):
        read("savee", make(tmp_path / "lost", "wav/a01.wav"))


def test_emodb_names(tmp_path):
    clips = read("emodb", make(tmp_path, "03a01Fa.wav", "08b10Lb.wav", "99a01Fa.wav")).clips
    assert [(c.source_label, c.speaker, c.metadata["sex"]) for c in clips] == [
        ("Freude", "emodb_03", "male"),
        ("Langeweile", "emodb_08", "female"),
    ]
    assert clips[0].metadata["text"] == "Der Lappen liegt auf dem Eisschrank."
    assert READERS["emodb"].terms.language == "de"


@pytest.mark.parametrize("kind", ["ravdess", "crema-d", "tess", "savee", "emodb"])
def test_a_folder_without_clips_of_the_kind_is_refused(tmp_path, kind):
    with pytest.raises(DataError, match=r"no audio file, and no .* clip; wanted names such as"):
        read(kind, tmp_path)
    with pytest.raises(DataError, match=r"1 recordings \(not an? .* name: 1\)"):
        read(kind, make(tmp_path, "hello.wav"))
    with pytest.raises(UsageError, match="no such folder"):
        read(kind, tmp_path / "nowhere")


def release(folder: Path, labels: tuple[str, ...] = ("angry", "sad"), **extra: object) -> Path:
    """The release's layout as far as it is known; where the WAVs lie is this test's choice."""
    rows = []
    for number, label in enumerate(labels):
        audio_id = f"{number:02}ZVLUNEfdKHzvfglFHy"
        record(folder / "data" / "clips" / label / f"{audio_id}.wav", number)
        row = {
            "audio_id": audio_id,
            "required_emotion": label,
            "duration_seconds": 0.3,
            "sample_rate": 16000,
            "channels": 1,
        }
        rows.append(row | extra)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "data" / "metadata.jsonl").write_text(lines, encoding="utf-8")
    (folder / "LICENSE").write_text("No voice cloning.\n", encoding="utf-8")
    return folder


def test_the_published_release_is_found_by_audio_id(tmp_path):
    listing = read("vocal-affect-bench", release(tmp_path))
    assert [(c.id, c.source_label, c.speaker, c.seconds) for c in listing.clips] == [
        ("00ZVLUNEfdKHzvfglFHy", "angry", "", 0.3),
        ("01ZVLUNEfdKHzvfglFHy", "sad", "", 0.3),
    ]
    assert [path.name for path in listing.notices] == ["LICENSE"]
    terms = READERS["vocal-affect-bench"].terms
    assert (terms.use, terms.redistribute) == ("evaluation-only", False)


def test_a_speaker_column_is_read_when_one_is_named(tmp_path):
    folder = release(tmp_path, account="a7")
    assert {c.metadata["account"] for c in read("vocal-affect-bench", folder).clips} == {"a7"}
    named = read("vocal-affect-bench", folder, columns={"speaker": "account"})
    assert {c.speaker for c in named.clips} == {"a7"}


def test_a_release_without_its_audio_is_refused(tmp_path):
    folder = release(tmp_path)
    next(folder.rglob("01*.wav")).unlink()
    with pytest.raises(
        DataError, match=r"1 of 2 clips have no audio .*01ZVLUNEfdKHzvfglFHy.wav.*--audio-root"
    ):
        read("vocal-affect-bench", folder)
    with pytest.raises(DataError, match=r"has no data/metadata\.jsonl"):
        read("vocal-affect-bench", folder / "data" / "clips")


def test_a_release_with_other_columns_or_twice_the_same_clip_is_refused(tmp_path):
    folder = release(tmp_path)
    table = folder / "data" / "metadata.jsonl"
    lines = table.read_text(encoding="utf-8")
    table.write_text(lines + lines.splitlines()[0] + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"metadata.jsonl:3: '00ZV.*' is already on line 1"):
        read("vocal-affect-bench", folder)
    table.write_text(lines.replace("required_emotion", "emotion"), encoding="utf-8")
    with pytest.raises(DataError, match=r"metadata.jsonl:1: no 'required_emotion'"):
        read("vocal-affect-bench", folder)
    table.write_text(lines, encoding="utf-8")
    record(folder / "copy" / "00ZVLUNEfdKHzvfglFHy.wav", 5)
    with pytest.raises(DataError, match=r":1: 00ZV\w+ is there 2 times"):
        read("vocal-affect-bench", folder)


def test_the_published_rows_fit_the_reader(real_data, tmp_path):
    with (real_data / "vab_metadata_excerpt" / "metadata_excerpt.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    (tmp_path / "data").mkdir()
    lines = []
    for row in rows:
        record(tmp_path / "data" / f"{row['audio_id']}.wav", 1, seconds=0.1)
        values = {
            key: json.loads(row[key]) for key in ("duration_seconds", "sample_rate", "channels")
        }
        lines.append(json.dumps({**row, **values}) + "\n")
    (tmp_path / "data" / "metadata.jsonl").write_text("".join(lines), encoding="utf-8")
    listing = read("vocal-affect-bench", tmp_path)
    assert len(listing.clips) == len(rows) == 25
    assert listing.clips[0].seconds == float(rows[0]["duration_seconds"])
    label_map = load_label_map("vocal-affect-bench")
    assert {label_map.map(c.source_label)[0] for c in listing.clips} == {"anger"}


def table(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_with_a_mapping(tmp_path):
    make(tmp_path, "wav/a 1.wav", "wav/b.wav")
    source = table(
        tmp_path / "list.csv",
        '\ufefffile,label,spk,note\nwav/a 1.wav,angry,s1,"x, y"\nwav/b.wav,sad,s2,\n',
    )
    listing = read("csv", source, columns=parse_columns("path=file,emotion=label,speaker=spk"))
    assert [(c.id, c.source_label, c.speaker, dict(c.metadata)) for c in listing.clips] == [
        ("wav__a 1", "angry", "s1", {"note": "x, y"}),
        ("wav__b", "sad", "s2", {}),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_with_our_own_column_names_needs_no_mapping(tmp_path, delimiter):
    make(tmp_path, "a.wav")
    rows = [
        ["path", "emotion", "speaker", "language", "licence", "id"],
        ["a.wav", "fear", "s", "de", "CC0", "one"],
    ]
    source = table(tmp_path / "list.csv", "".join(delimiter.join(row) + "\r\n" for row in rows))
    (clip,) = read("csv", source).clips
    assert (clip.id, clip.language, clip.licence, clip.metadata) == ("one", "de", "CC0", {})


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (
            "file,emotion\na.wav,sad\n",
            r"list.csv:2: no column 'path' for path; there are file, emotion.*--map path=",
        ),
        ("path,emotion\na.wav\n", r"list.csv:2: has more or fewer cells"),
        ("path,emotion\na.wav,sad,x\n", r"list.csv:2: has more or fewer cells"),
        ("path,emotion\na.wav,\n", r"list.csv:2: 'emotion' is empty"),
        ("path,path,emotion\na.wav,a,b\n", r"list.csv:1: the column 'path' is there twice"),
        (
            "path,emotion\na.wav,sad\nno.wav,sad\n",
            r"1 of 2 files are not there, .*no.wav.*--audio-root",
        ),
        ("path,emotion\na.wav,sad\na.wav,fear\n", r"'a' is labelled 'sad' and 'fear'"),
        ("path,emotion\n", r"no row in it"),
        ("", r"is empty"),
        ("path,emotion,id\na.wav,sad,x/y\n", r"list.csv:2: the id 'x/y' has a character"),
        ('path,emotion\n"a.wav,sad\n', r"not CSV"),
    ],
)
def test_a_csv_that_does_not_fit_is_refused(tmp_path, text, match):
    make(tmp_path, "a.wav")
    with pytest.raises(DataError, match=match):
        read("csv", table(tmp_path / "list.csv", text))


def test_a_csv_in_another_encoding_is_refused_with_its_line(tmp_path):
    (tmp_path / "list.csv").write_bytes("path,emotion\nmädchen.wav,sad\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"list.csv:2: not UTF-8"):
        read("csv", tmp_path / "list.csv")


def test_jsonl(tmp_path):
    make(tmp_path / "audio", "a.wav")
    source = table(
        tmp_path / "list.jsonl",
        '{"file": "a.wav", "label": "sad", "age": 31, "tags": ["x"], "none": null}\n',
    )
    (clip,) = read(
        "jsonl",
        source,
        columns=parse_columns("path=file,emotion=label"),
        audio_root=tmp_path / "audio",
    ).clips
    assert clip.metadata == {"age": "31", "tags": '["x"]'}
    with pytest.raises(DataError, match=r"bad.jsonl:2: found list"):
        read("jsonl", table(tmp_path / "bad.jsonl", "\n[]\n"))
    with pytest.raises(UsageError, match="no such file"):
        read("jsonl", tmp_path / "nowhere.jsonl")


def test_audiofolder(tmp_path):
    make(tmp_path, "angry/s1/a.wav", "sad/s2/b.wav")
    listing = read("audiofolder", tmp_path, columns=parse_columns("emotion=part1,speaker=part2"))
    assert [(c.id, c.source_label, c.speaker) for c in listing.clips] == [
        ("angry__s1__a", "angry", "s1"),
        ("sad__s2__b", "sad", "s2"),
    ]
    assert [c.source_label for c in read("audiofolder", tmp_path).clips] == ["s1", "s2"]
    with pytest.raises(DataError, match=r"has 2 folders above it; wanted part3"):
        read("audiofolder", tmp_path, columns={"speaker": "part3"})
    with pytest.raises(UsageError, match=r"found 'folder'; wanted part1"):
        read("audiofolder", tmp_path, columns={"speaker": "folder"})
    make(tmp_path, "loose.wav")
    with pytest.raises(DataError, match="lies in no sub-folder"):
        read("audiofolder", tmp_path)


def test_audiofolder_with_a_table(tmp_path):
    make(tmp_path, "train/a.wav")
    table(tmp_path / "metadata.csv", "file_name,emotion\ntrain/a.wav,fear\n")
    (clip,) = read("audiofolder", tmp_path).clips
    assert (clip.id, clip.source_label) == ("train__a", "fear")


def test_column_mappings_are_checked():
    assert parse_columns("path=a\\,b,emotion = label") == {"path": "a,b", "emotion": "label"}
    for text, match in (
        ("path", "found 'path'"),
        ("file=path", "unknown field 'file'; wanted one of path, emotion"),
        ("path=a,path=b", "given twice"),
    ):
        with pytest.raises(UsageError, match=match):
            parse_columns(text)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.wav", "a"),
        ("x/y.z.wav", "x__y.z"),
        ("..hidden/a.wav", "_hidden__a"),
        ("a:b?.wav", "a_b_"),
        ("noend", "noend"),
    ],
)
def test_ids_come_from_paths_alone(path, expected):
    assert stable_id(path) == expected


def test_the_recordings_of_a_test_differ():
    assert (samples(1)[:10] != samples(2)[:10]).all()
