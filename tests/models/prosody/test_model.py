"""``baseline/prosody`` as a model: what it answers, and what it refuses to be scored on."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earwitness.clips.corpus import ClipSet, audio_ref
from earwitness.clips.training import Trained
from earwitness.errors import DataError, ModelError, UsageError
from earwitness.models.prosody.model import Prosody, open_prosody
from earwitness.models.protocols import AudioModel, Preflight, Prompt, Reply, Request
from earwitness.models.registry import open_model
from tests.models.prosody.voices import RATE


def opened(trained: Trained, **options: str) -> Prosody:
    return open_prosody({"weights": str(trained.path), **options})


def requests_of(clip_set: ClipSet, speaker: str | None = None) -> list[Request]:
    return [
        Request(
            item_id=clip.id,
            prompt=Prompt("Which emotion?"),
            audio=audio_ref(clip_set, clip),
            metadata={"speaker": clip.speaker if speaker is None else speaker},
        )
        for clip in clip_set.clips
    ]


def ask(model: AudioModel, request: Request) -> Reply:
    return asyncio.run(model.ask(request))


def copied(request: Request, folder: Path, *, gain: float = 1.0, rate: int = RATE) -> Request:
    """The same recording as another file: other bytes, another hash, another name."""
    import soxr

    assert request.audio is not None
    samples, old_rate = soundfile.read(request.audio.path)
    path = folder / f"copy-{rate}-{gain}.wav"
    soundfile.write(path, gain * soxr.resample(samples, old_rate, rate), rate, subtype="PCM_16")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return replace(
        request, item_id="copy", audio=replace(request.audio, path=path, sha256=sha256, rate=rate)
    )


def test_it_is_a_model_that_wants_to_see_all_first(folded: Trained) -> None:
    model = open_model("baseline/prosody", {"weights": str(folded.path)})
    assert isinstance(model, AudioModel)
    assert isinstance(model, Preflight)
    assert model.name == "baseline/prosody"
    assert model.limits.needs_audio


def test_folds_answer_the_very_set_they_were_trained_on(folded: Trained, voices: ClipSet) -> None:
    model = opened(folded)
    requests = requests_of(voices)
    model.preflight(requests)
    right = 0
    for request, clip in zip(requests, voices.clips, strict=True):
        reply = ask(model, request)
        assert reply.scores is not None
        assert sum(reply.scores.values()) == pytest.approx(1, abs=1e-5)
        right += max(reply.scores, key=reply.scores.__getitem__) == clip.emotion
        held_out = next(
            f.held_out for f in folded.model.fitted if f.name == reply.raw["classifier"]
        )
        assert clip.speaker in held_out
    assert right / len(requests) > 0.6


def test_new_speakers_are_answered_by_the_classifier_of_all_clips(
    folded: Trained, other_voices: ClipSet
) -> None:
    model = opened(folded)
    requests = requests_of(other_voices)
    model.preflight(requests)
    assert ask(model, requests[0]).raw["classifier"] == "all"


def test_a_run_over_speakers_it_heard_is_refused(single: Trained, voices: ClipSet) -> None:
    model = opened(single)
    with pytest.raises(UsageError, match=r"was trained on 4 of the speakers .*: voice0, .*--folds"):
        model.preflight(requests_of(voices))
    with pytest.raises(ModelError, match="was trained on 1 of the speakers") as caught:
        ask(model, requests_of(voices)[0])
    assert not caught.value.retryable


def test_a_run_over_recordings_it_heard_under_another_name_is_refused(
    folded: Trained, single: Trained, voices: ClipSet
) -> None:
    for trained in (single, folded):
        with pytest.raises(UsageError, match=r"trained on 36 of the recordings .* another speaker"):
            opened(trained).preflight(requests_of(voices, "somebody-else"))


@pytest.mark.parametrize(("gain", "rate"), [(1.0, 48_000), (0.25, RATE), (0.5, 44_100)])
def test_a_converted_copy_under_another_name_is_refused_when_asked(
    single: Trained, voices: ClipSet, tmp_path: Path, gain: float, rate: int
) -> None:
    model = opened(single)
    request = copied(requests_of(voices, "somebody-else")[0], tmp_path, gain=gain, rate=rate)
    model.preflight([request])  # another hash: not visible before the sound is read
    with pytest.raises(ModelError, match="copy is a recording it was trained on: voice0_anger_0"):
        ask(model, request)


def test_a_copy_of_a_held_out_clip_is_answered(
    folded: Trained, voices: ClipSet, tmp_path: Path
) -> None:
    request = copied(requests_of(voices)[0], tmp_path, rate=48_000)
    assert ask(opened(folded), request).scores


def test_clips_without_a_speaker_are_refused_unless_vouched_for(
    folded: Trained, other_voices: ClipSet
) -> None:
    nameless = requests_of(other_voices, "")
    with pytest.raises(UsageError, match=r"18 of 18 clips have no speaker.*unknown_speakers=allow"):
        opened(folded).preflight(nameless)
    with pytest.raises(ModelError, match="no speaker"):
        ask(opened(folded), replace(nameless[0], metadata={}))
    vouched = opened(folded, unknown_speakers="allow")
    vouched.preflight(nameless)
    assert ask(vouched, nameless[0]).raw["classifier"] == "all"


def test_silence_is_heard_as_silence(folded: Trained, voices: ClipSet) -> None:
    model = opened(folded)
    scores = []
    for request in requests_of(voices)[:2]:
        assert request.audio is not None
        silent = replace(request, audio=replace(request.audio, transform="silence"))
        scores.append(ask(model, silent).scores)
    assert scores[0] == scores[1]
    assert scores[0] != ask(model, requests_of(voices)[0]).scores


def test_the_settings_name_the_weights_and_the_features(folded: Trained, single: Trained) -> None:
    settings = opened(folded).settings
    assert settings["weights_sha256"] == folded.sha256
    assert settings["feature_version"] == "prosody-1"
    assert settings["trained_on"] == ["voices 1"]
    assert settings != opened(single).settings


def test_asking_twice_gives_the_same_scores(folded: Trained, other_voices: ClipSet) -> None:
    model = opened(folded)
    request = requests_of(other_voices)[3]
    assert ask(model, request).scores == ask(model, request).scores


def test_no_audio_and_a_changed_file_are_errors_that_do_not_pass(
    folded: Trained, voices: ClipSet, tmp_path: Path
) -> None:
    model = opened(folded)
    request = requests_of(voices)[0]
    with pytest.raises(ModelError, match="needs audio"):
        ask(model, replace(request, audio=None))
    assert request.audio is not None
    other = tmp_path / "other.wav"
    soundfile.write(other, np.zeros(800), RATE)
    with pytest.raises(ModelError, match="has changed since the set was made"):
        ask(model, replace(request, audio=replace(request.audio, path=other)))
    gone = replace(request.audio, path=tmp_path / "gone.wav")
    with pytest.raises(ModelError, match=r"gone\.wav: cannot be read"):
        ask(model, replace(request, audio=gone))


def test_weights_are_asked_for_and_looked_at(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no weights given; wanted -M weights=FILE"):
        open_prosody({})
    with pytest.raises(UsageError, match=r"unknown option 'weigths'.*Did you mean 'weights'"):
        open_prosody({"weigths": "x"})
    with pytest.raises(DataError, match="cannot be read"):
        open_prosody({"weights": str(tmp_path / "none")})
    with pytest.raises(UsageError, match="unknown_speakers='maybe'; wanted one of refuse, allow"):
        open_prosody({"weights": "x", "unknown_speakers": "maybe"})
