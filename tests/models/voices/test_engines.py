"""Engines on this machine: eSpeak NG and hibari are always here, Kokoro only where it was installed."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from earwitness.audio.io import read_audio
from earwitness.audio.types import Audio
from earwitness.errors import DataError, MissingExtraError, UsageError
from earwitness.models.assets import asset_of, is_installed
from earwitness.models.prosody.pitch import track_pitch
from earwitness.models.protocols import Pause, Phrase, Spoken, Vocalisation, Voice
from earwitness.models.voices import espeak, hibari, kokoro
from earwitness.models.voices.onnx_graph import with_output
from earwitness.models.voices.registry import list_engines, open_voice
from earwitness.models.voices.shaping import BREATHS, MANNERS

TEXT = "We could take the early train and be back before dinner."
SEGMENTS = (Phrase("Well, of the 42 people I told"), Pause(0.7), Phrase("none were well-known."))
WORDS = ["Well", "of", "the", "42", "people", "I", "told", "none", "were", "well-known"]


def pitch_of(audio: Audio) -> float:
    """Median pitch in Hz of what is voiced."""
    track = track_pitch(audio.samples.astype(float), audio.rate)
    return float(np.median(track.f0_hz[track.voiced]))


def level_db(spoken: Spoken) -> float:
    return float(20 * np.log10(np.sqrt(np.mean(spoken.audio.samples.astype(float) ** 2))))


def check_words(spoken: Spoken) -> None:
    """Words in order, none of them in the pause, sound in each."""
    assert [word.text for word in spoken.words] == WORDS
    (pause,) = [mark for mark in spoken.marks if mark.kind == "pause"]
    assert pause.end_s - pause.start_s == pytest.approx(0.7, abs=1e-3)
    for before, after in itertools.pairwise(spoken.words):
        assert before.start_s < before.end_s <= after.start_s + 1e-6
    told, none = spoken.words[6], spoken.words[7]
    assert told.end_s <= pause.start_s + 1e-6
    assert none.start_s >= pause.end_s - 1e-6
    rate = spoken.audio.rate
    for word in spoken.words:
        heard = spoken.audio.samples[round(word.start_s * rate) : round(word.end_s * rate)]
        assert np.abs(heard).max() > 0.02


@pytest.fixture(scope="module")
def heart() -> Voice:
    return open_voice("hibari/heart")


class TestEspeak:
    def test_words_and_pause(self) -> None:
        voice = open_voice("espeak/en-us+m3")
        try:
            check_words(voice.speak(SEGMENTS))
        finally:
            voice.close()

    def test_it_repeats_and_reads_no_markup(self) -> None:
        voice = open_voice("espeak/en-us+f2")
        try:
            first = voice.speak([Phrase("Fish & <chips> for two.")])
            voice.speak([Phrase("Something else in between.")])
            again = voice.speak([Phrase("Fish & <chips> for two.")])
        finally:
            voice.close()
        assert np.array_equal(first.audio.samples, again.audio.samples)
        assert [word.text for word in first.words] == ["Fish", "chips", "for", "two"]

    def test_genders_and_languages(self) -> None:
        assert open_voice("espeak/en-us+f2").gender == "F"
        assert open_voice("espeak/en+m3").gender == "M"
        assert open_voice("espeak/en+m3").language == "en-GB"

    def test_every_listed_voice_exists(self) -> None:
        for info in (espeak.INFO.voices[0], espeak.INFO.voices[-1]):
            voice = espeak.open(info.name, {})
            try:
                assert voice.speak([Phrase("Yes.")]).audio.seconds > 0.1
            finally:
                voice.close()

    def test_a_voice_that_does_not_exist(self) -> None:
        voice = open_voice("espeak/xx-nowhere")
        try:
            with pytest.raises(DataError, match=r"no voice 'xx-nowhere'; wanted a voice such as"):
                voice.speak([Phrase("Hello.")])
        finally:
            voice.close()

    def test_without_the_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(espeak, "find_spec", lambda _: None)
        with pytest.raises(MissingExtraError, match=r"pip install \"earwitness\[espeak\]\""):
            open_voice("espeak/en-us")


class TestHibari:
    def test_words_and_pause(self, heart: Voice) -> None:
        check_words(heart.speak(SEGMENTS))

    def test_it_repeats(self, heart: Voice) -> None:
        first, again, other = (heart.speak([Phrase(TEXT)], seed=seed) for seed in (3, 3, 4))
        assert np.array_equal(first.audio.samples, again.audio.samples)
        assert not np.array_equal(first.audio.samples, other.audio.samples)

    @pytest.mark.parametrize("name", ["heart-f2", "heart-f3", "heart-m1", "heart-m2", "heart-m3"])
    def test_derived_voices_have_the_pitch_they_claim(self, heart: Voice, name: str) -> None:
        preset = hibari.presets()[name]
        voice = open_voice(f"hibari/{name}")
        assert voice.gender == preset.gender
        ratio = pitch_of(voice.speak([Phrase(TEXT)]).audio) / pitch_of(
            heart.speak([Phrase(TEXT)]).audio
        )
        assert ratio == pytest.approx(preset.pitch, rel=0.06)

    def test_formants_move_without_the_pitch(self, heart: Voice) -> None:
        moved = open_voice("hibari/heart", {"formant": "0.8"})
        plain, low = (voice.speak([Phrase(TEXT)]).audio for voice in (heart, moved))
        assert len(plain.samples) == pytest.approx(len(low.samples), abs=0.06 * plain.rate)
        assert pitch_of(low) == pytest.approx(pitch_of(plain), rel=0.06)
        assert centroid(low) < 0.92 * centroid(plain)

    def test_a_whisper_has_no_voice_in_it(self, heart: Voice) -> None:
        plain = heart.speak([Phrase(TEXT)])
        whispered = heart.speak([Phrase(TEXT, "whisper")])
        assert voiced_share(plain.audio) > 0.5
        assert voiced_share(whispered.audio) < 0.15
        assert level_db(whispered) < level_db(plain) - 4
        assert len(whispered.words) == len(plain.words)

    def test_loud_is_louder_and_higher(self, heart: Voice) -> None:
        plain, loud = heart.speak([Phrase(TEXT)]), heart.speak([Phrase(TEXT, "loud")])
        assert level_db(loud) > level_db(plain) + 3
        assert pitch_of(loud.audio) > 1.12 * pitch_of(plain.audio)

    def test_tired_is_slow_and_low(self, heart: Voice) -> None:
        plain, tired = heart.speak([Phrase(TEXT)]), heart.speak([Phrase(TEXT, "tired")])
        assert tired.audio.seconds > 1.12 * plain.audio.seconds
        assert pitch_of(tired.audio) < 0.93 * pitch_of(plain.audio)

    @pytest.mark.parametrize("tag", sorted(BREATHS))
    def test_a_breath_is_heard_and_has_no_voice_in_it(self, heart: Voice, tag: str) -> None:
        spoken = heart.speak([Phrase("I saw"), Vocalisation(tag, tag), Phrase("it there.")])
        (mark,) = spoken.marks
        rate = spoken.audio.rate
        breath = spoken.audio.samples[round(mark.start_s * rate) : round(mark.end_s * rate)]
        voice = spoken.audio.samples[: round(mark.start_s * rate)]
        under = 20 * np.log10(np.sqrt(np.mean(breath**2)) / np.sqrt(np.mean(voice**2)))
        assert -22 < under < -5
        assert voiced_share(Audio(breath.copy(), rate)) < 0.2

    def test_it_declares_what_it_renders(self, heart: Voice) -> None:
        assert heart.renders == {"pause", "long_pause", *MANNERS, *BREATHS}
        assert "laugh" not in heart.renders

    def test_weights_are_in_the_settings(self, heart: Voice) -> None:
        assert heart.settings["weights"].startswith("5f70741d")
        assert open_voice("hibari/heart-m1").settings != heart.settings

    def test_another_name(self) -> None:
        with pytest.raises(
            UsageError, match=r"hibari/hart.*there is no such voice; wanted heart, "
        ):
            open_voice("hibari/hart")

    def test_weights_out_of_reach(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        import urllib.error
        import urllib.request

        def unreachable(*_: object, **__: object) -> None:
            raise urllib.error.URLError("no network")

        monkeypatch.setenv("HIBARI_HOME", str(tmp_path))
        monkeypatch.setattr(urllib.request, "urlopen", unreachable)
        with pytest.raises(
            DataError, match=r"cannot be fetched.*hibari/heart and the voices derived"
        ):
            open_voice("hibari/fenrir").speak([Phrase("Hello.")])


def centroid(audio: Audio) -> float:
    power = np.abs(np.fft.rfft(audio.samples)) ** 2
    hz = np.fft.rfftfreq(len(audio.samples), 1 / audio.rate)
    band = hz < 4000
    return float((power[band] ** 0.5 * hz[band]).sum() / (power[band] ** 0.5).sum())


def voiced_share(audio: Audio) -> float:
    return float(np.mean(track_pitch(audio.samples.astype(float), audio.rate).voiced))


class TestKokoro:
    @pytest.fixture
    def onyx(self) -> Voice:
        if not is_installed(asset_of("kokoro")):
            pytest.skip("Kokoro is not installed here: earwitness voices install kokoro")
        return open_voice("kokoro/am_onyx")

    def test_words_and_pause(self, onyx: Voice) -> None:
        check_words(onyx.speak(SEGMENTS))

    def test_it_repeats(self, onyx: Voice) -> None:
        first, again = (onyx.speak([Phrase("Good morning.")]) for _ in range(2))
        assert np.array_equal(first.audio.samples, again.audio.samples)
        assert 70 < pitch_of(first.audio) < 125

    def test_there_are_28_voices(self) -> None:
        assert len(kokoro.INFO.voices) == 28
        assert {f"voices/{name}.bin" for name in kokoro.NAMES} < {
            f.name for f in asset_of("kokoro").files
        }
        assert open_voice("kokoro/bf_emma").gender == "F"
        assert open_voice("kokoro/bm_george").language == "en-GB"

    def test_not_installed(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("EARWITNESS_HOME", str(tmp_path))
        kokoro._styles.cache_clear()
        kokoro._session.cache_clear()
        with pytest.raises(DataError, match=r"is not installed.*earwitness voices install kokoro"):
            open_voice("kokoro/af_sky").speak([Phrase("Hello.")])


WRITER = """
import sys, wave
text = sys.stdin.read()
with wave.open(sys.argv[1], "wb") as file:
    file.setnchannels(1); file.setsampwidth(2); file.setframerate(16000)
    file.writeframes(b"\\x00\\x10\\x00\\xf0" * (400 * len(text)))
"""


class TestCommand:
    def test_any_program(self, tmp_path: Path) -> None:
        script = tmp_path / "speak it.py"
        script.write_text(WRITER)
        run = f"{sys.executable} '{script}' {{out}}"
        voice = open_voice("command/mine", {"run": run, "gender": "M", "weights": str(script)})
        spoken = voice.speak([Phrase("Hello"), Pause(0.5), Phrase("you.")])
        assert spoken.audio.rate == 16_000
        assert voice.gender == "M"
        assert list(voice.settings["weights"]) == ["speak it.py"]
        assert not voice.deterministic

    def test_sound_on_standard_output_and_text_as_an_argument(self) -> None:
        code = (
            "import sys,struct; d=b'\\x00\\x10\\x00\\xf0'*2000; "
            "sys.stdout.buffer.write(b'RIFF\\xff\\xff\\xff\\xffWAVEfmt '+struct.pack('<IHHIIHH',16,1,1,16000,32000,2,16)"
            "+b'data\\xff\\xff\\xff\\xff'+d) if sys.argv[1]=='a b; echo' else sys.exit(3)"
        )
        voice = open_voice("command/mine", {"run": f'{sys.executable} -c "{code}" {{text}}'})
        assert voice.speak([Phrase("a b; echo")]).audio.frames > 1000

    @pytest.mark.parametrize(
        ("run", "what"),
        [
            ("no-such-program-here {out}", "cannot be run"),
            (
                f"{sys.executable} -c \"import sys; sys.exit('no voice')\"",
                "ended with code 1: no voice",
            ),
            (f'{sys.executable} -c "print(1)"', "wrote no usable sound"),
        ],
    )
    def test_failures(self, run: str, what: str) -> None:
        with pytest.raises(DataError, match=what):
            open_voice("command/mine", {"run": run}).speak([Phrase("Hello.")])

    def test_no_program(self) -> None:
        with pytest.raises(UsageError, match="no program is given; wanted the option run"):
            open_voice("command/mine")


def test_engines_are_listed_with_what_is_missing() -> None:
    found = {status.info.name: status for status in list_engines()}
    assert list(found) == ["hibari", "kokoro", "espeak", "elevenlabs", "openai", "command"]
    assert found["hibari"].missing == ""
    for status in found.values():
        assert status.info.summary


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("hibbari/heart", "Did you mean 'hibari'"),
        ("hibari", "names an engine and no voice"),
        ("nobody/x", "there is no engine 'nobody'"),
    ],
)
def test_names_that_are_none(name: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        open_voice(name)


def test_an_output_more_and_long_names() -> None:
    name = "x" * 200
    added = with_output(b"model", name)
    assert added.startswith(b"model")
    assert name.encode() in added
    assert added[5:9] == b"\x3a\xce\x01\x62"


def test_espeak_writes_files_for_others(tmp_path: Path) -> None:
    with espeak.Espeak() as engine:
        seconds = engine.speak(
            '<prosody rate="slow">Hello.</prosody>', "en-us+f2", tmp_path / "a.wav"
        )
    assert read_audio(tmp_path / "a.wav").seconds == pytest.approx(seconds)
