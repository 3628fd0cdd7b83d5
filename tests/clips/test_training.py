"""Training and cross-validation on clip sets."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.clips.corpus import ClipSet, SetCard, load_clip_set, write_clip_set
from earwitness.clips.training import _shuffled, evaluate_prosody, train_prosody
from earwitness.errors import DataError, LicenceError, UsageError
from earwitness.models.prosody.evaluation import Predictions, gain, joined, result
from tests.models.prosody.voices import make_set


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> ClipSet:
    return make_set(tmp_path_factory.mktemp("sets") / "voices", takes=2)


def changed(clip_set: ClipSet, **fields: object) -> ClipSet:
    """The set with fields of every clip replaced, on paper only."""
    return replace(clip_set, clips=tuple(replace(c, **fields) for c in clip_set.clips))  # type: ignore[arg-type]


def test_an_evaluation_only_set_is_refused(voices: ClipSet, tmp_path: Path) -> None:
    kept = replace(voices, card=replace(voices.card, use="evaluation-only"))
    out = tmp_path / "x.model"
    with pytest.raises(LicenceError, match="voices is marked evaluation-only"):
        train_prosody([kept], out, workers=1)
    with pytest.raises(LicenceError, match="evaluation-only"):
        evaluate_prosody([kept], folds=2, workers=1)
    assert not out.exists()


def test_one_evaluation_only_set_among_others_is_enough(voices: ClipSet, tmp_path: Path) -> None:
    kept = replace(voices, card=replace(voices.card, use="evaluation-only"))
    with pytest.raises(LicenceError, match="evaluation-only"):
        train_prosody([voices, kept], tmp_path / "x.model", workers=1)


def test_clips_without_a_speaker_are_refused(voices: ClipSet, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="24 of 24 clips have no speaker, such as voice0_anger_0"):
        train_prosody([changed(voices, speaker="")], tmp_path / "x.model", workers=1)


def test_a_recording_in_two_sets_is_used_once(voices: ClipSet, tmp_path: Path) -> None:
    trained = train_prosody([voices, voices], tmp_path / "x.model", workers=1)
    assert (trained.repeated, len(trained.model.examples)) == (24, 24)


@pytest.mark.parametrize("field", ["speaker", "emotion"])
def test_a_recording_under_two_names_is_refused(
    field: str, voices: ClipSet, tmp_path: Path
) -> None:
    other = changed(voices, **{field: "fear"})
    with pytest.raises(DataError, match=r"the same recording as voice0_\w+ of voices, but .*fear"):
        train_prosody([voices, other], tmp_path / "x.model", workers=1)


@pytest.mark.parametrize(
    ("speakers", "folds", "message"),
    [
        (1, 2, "1 speakers; wanted at least 3"),
        (2, 2, "2 speakers; wanted at least 3"),
        (3, 2, "2 folds leave a single speaker of 3 to train on.*Use --folds 3"),
        (4, 5, "4 speakers for 5 folds.*Use --folds 4 or fewer"),
    ],
)
def test_too_few_speakers_are_said_to_be_too_few(
    speakers: int, folds: int, message: str, voices: ClipSet, tmp_path: Path
) -> None:
    names = {f"voice{i}" for i in range(speakers)}
    few = replace(voices, clips=tuple(c for c in voices.clips if c.speaker in names))
    with pytest.raises(DataError, match=message):
        train_prosody([few], tmp_path / "x.model", folds=folds, workers=1)


def test_progress_counts_clips_and_classifiers(voices: ClipSet, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    train_prosody(
        [voices],
        tmp_path / "new" / "x.model",
        folds=2,
        workers=1,
        on_progress=lambda *step: seen.append(step),
    )
    assert seen[23] == ("features", 24, 24)
    assert seen[-1] == ("classifiers", 3, 3)


def test_a_changed_file_stops_the_training(tmp_path: Path) -> None:
    clip_set = make_set(tmp_path / "set", speakers=3, takes=1)
    path = clip_set.folder / clip_set.clips[0].path
    path.write_bytes((clip_set.folder / clip_set.clips[1].path).read_bytes())
    with pytest.raises(DataError, match="has changed since the set was made"):
        train_prosody([clip_set], tmp_path / "x.model", workers=1)


def test_cross_validation_divides_speakers_and_repeats(voices: ClipSet) -> None:
    found = evaluate_prosody([voices], folds=2, workers=1)
    assert sorted(s for group in found.held_out for s in group) == [f"voice{i}" for i in range(4)]
    prosody, reference = found.systems
    assert (prosody.name, reference.name) == ("prosody", "mfcc-svm")
    assert prosody.accuracy.value > 0.6
    assert sum(row.right for row in prosody.by_speaker) == prosody.right
    assert prosody.support == (8, 8, 8)
    (paired,) = found.gains
    difference = prosody.accuracy.value - reference.accuracy.value
    assert paired.difference.value == pytest.approx(difference)
    assert paired.only_a_right - paired.only_b_right == prosody.right - reference.right
    assert evaluate_prosody([voices], folds=2, workers=1) == found


def test_an_unknown_reference_is_refused(voices: ClipSet) -> None:
    with pytest.raises(UsageError, match="--against: 'hubert'; wanted one of mfcc-svm"):
        evaluate_prosody([voices], folds=2, against=["hubert"], workers=1)


def test_shuffling_keeps_each_speaker_its_labels() -> None:
    labels = ["anger"] * 6 + ["fear"] * 2 + ["neutral"] * 4
    speakers = ["a", "b"] * 6
    mixed = _shuffled(labels, speakers, 0)
    assert list(mixed) != labels
    for person in "ab":
        mine = [i for i, s in enumerate(speakers) if s == person]
        assert sorted(mixed[i] for i in mine) == sorted(labels[i] for i in mine)
    assert _shuffled(labels, speakers, 0) == mixed


def test_answers_of_folds_are_put_back_in_their_places() -> None:
    parts = [Predictions(("a", "b"), (0.1, 0.2)), Predictions(("c",), (0.3,))]
    assert joined(parts, [0, 1, 0]) == Predictions(("a", "c", "b"), (0.1, 0.3, 0.2))


def test_a_gain_is_counted_by_speaker() -> None:
    speakers = [f"s{i // 10}" for i in range(160)]
    gold = ["anger"] * 160
    better = Predictions(tuple("anger" if i % 10 < 7 else "fear" for i in range(160)))
    worse = Predictions(tuple("anger" if i % 10 < 4 else "fear" for i in range(160)))
    found = gain(("a", "b"), gold, (better, worse), speakers)
    assert found.difference.value == pytest.approx(0.3)
    # Every speaker gains the same: nothing varies between speakers.
    assert (found.difference.low, found.difference.high) == pytest.approx((0.3, 0.3))
    assert found.p_sign_flip == pytest.approx(2 / 2**16)
    assert (found.only_a_right, found.only_b_right) == (48, 0)
    same = gain(("a", "a"), gold, (better, better), speakers)
    assert (same.difference.value, same.p_sign_flip, same.p_mcnemar) == (0.0, 1.0, 1.0)


def test_an_answer_that_is_no_label_of_the_set_is_wrong_and_stays_counted() -> None:
    found = result("x", ["anger", "fear"], Predictions(("anger", "surprise")), ["a", "b"])
    assert (found.n, found.right, found.accuracy.value) == (2, 1, 0.5)
    assert found.confusion == ((1, 0), (0, 0))
    assert found.calibration_error is None


def test_six_real_speakers_are_recognised_far_above_chance(real_data: Path, tmp_path: Path) -> None:
    """Actors 01 to 06 of RAVDESS, seven labels: chance is 14 %."""
    import soundfile

    from earwitness.audio.io import file_sha256
    from earwitness.clips.corpus import Clip

    folder = real_data / "emotional_speech"
    (tmp_path / "audio").mkdir()
    clips = []
    with (folder / "metadata.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row["file"].startswith("ravdess_flac") or int(row["speaker"][-2:]) > 6:
                continue
            path = shutil.copy(folder / row["file"], tmp_path / "audio")
            info = soundfile.info(path)
            clips.append(
                Clip(
                    id=Path(path).stem,
                    path=f"audio/{Path(path).name}",
                    sha256=file_sha256(path),
                    emotion=row["label7"],  # type: ignore[arg-type]
                    speaker=row["speaker"],
                    language="en",
                    seconds=info.duration,
                    rate=info.samplerate,
                    channels=1,
                    source_label=row["corpus_label"],
                    licence="CC BY-NC-SA 4.0",
                )
            )
    write_clip_set(
        tmp_path, SetCard("RAVDESS part", "1", "CC BY-NC-SA 4.0", "non-commercial"), clips
    )
    found = evaluate_prosody([load_clip_set(tmp_path)], folds=3, workers=2)
    prosody, reference = found.systems
    assert prosody.n == len(clips) > 90
    assert prosody.accuracy.low > 0.3
    assert prosody.accuracy.value > reference.accuracy.value
    assert prosody.calibration_error is not None
    assert prosody.calibration_error < 0.25
