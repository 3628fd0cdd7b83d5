"""The deafness probe: a few calls that say whether sound reaches a model at all.

Eight calls about made clips: two spoken numbers of three digits, a tone (twice), silence and a sentence,
and the same sentence by a man's and a woman's voice. Each question has the same words for every clip, so that
only the sound can tell the answers apart.

``hearing``: a number was understood (1 in 250 by guessing), or everything else was told apart (1 in 108), or
scores follow the sound. ``deaf``: no number, and one answer to each other question
whatever is played, or the model says it gets no audio. ``unclear``: anything between, and calls that failed.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from earwitness.errors import ModelError
from earwitness.models.patience import retry_wait_s
from earwitness.models.protocols import (
    AudioModel,
    AudioRef,
    Phrase,
    Preflight,
    Prompt,
    Reply,
    Request,
)

Verdict = Literal["hearing", "deaf", "unclear"]
VOICES = {"man": "espeak/en-us+m3", "woman": "espeak/en-us+f2"}
SENTENCE = "The train for the coast leaves at noon from the second platform."
CALLS = 8
RATE_HZ = 16_000
_LONGEST_WAIT_S = 20.0
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_KINDS = ("speech", "tone", "silence")
_SEXES = ("man", "woman")
_ASKED = {
    "number": Prompt(
        "Somebody says three digits in this recording. Which ones, in order? Answer with the three digits only."
    ),
    "kind": Prompt(
        "What is in this recording? Answer with one word: speech, tone or silence.", choices=_KINDS
    ),
    "voice": Prompt(
        "Who speaks in this recording? Answer with one word: man or woman.", choices=_SEXES
    ),
}
_NO_AUDIO = re.compile(
    r"(?i)\b(?:no|any|the|an?) (?:audio|recording|sound|file)(?: file| clip| recording)?\b[^.]{0,40}"
    r"\b(?:attached|provided|received|included|uploaded|available)"
    r"|\b(?:can ?not|can['’]?t|unable to|not able to|don['’]?t have the ability to) "
    r"(?:hear|listen|process|play|access)\b"
)


@dataclass(frozen=True, slots=True)
class ProbeClip:
    """One question of the probe with its truth."""

    name: str
    about: Literal["number", "kind", "voice"]
    truth: str
    audio: AudioRef

    @property
    def prompt(self) -> Prompt:
        return _ASKED[self.about]


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """What came back. ``read`` is the answer as it was understood; ``error`` says why there is none."""

    clip: ProbeClip
    reply: Reply | None
    read: str
    error: str = ""

    @property
    def right(self) -> bool:
        return bool(self.read) and self.read == self.clip.truth


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Answers, verdict and its reason in words."""

    verdict: Verdict
    reason: str
    answers: tuple[ProbeAnswer, ...]


def make_clips(folder: Path, seed: int = 0) -> tuple[ProbeClip, ...]:
    """Write the clips of a probe; another seed says other numbers.

    Raises
    ------
    MissingExtraError: the voices of [espeak] are not installed.

    Examples
    --------
    >>> len(make_clips(Path("probe")))  # doctest: +SKIP
    8
    """
    import numpy as np

    from earwitness.audio.convert import resample
    from earwitness.audio.fades import fade
    from earwitness.audio.types import Audio
    from earwitness.models.voices.registry import open_voice

    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(f"deafness probe {seed}")
    numbers = ["".join(chance.sample("123456789", 3)) for _ in range(2)]
    voices = {sex: open_voice(name) for sex, name in VOICES.items()}
    try:
        spoken = {
            number: voices["woman"].speak(
                [Phrase(", ".join(_DIGITS[int(digit)] for digit in number) + ".")]
            )
            for number in numbers
        }
        said = {sex: voice.speak([Phrase(SENTENCE)]) for sex, voice in voices.items()}
    finally:
        for voice in voices.values():
            voice.close()
    at = np.arange(2 * RATE_HZ) / RATE_HZ
    wave = (0.1 * np.sin(2 * np.pi * 440.0 * at)).astype(np.float32)
    tone = fade(Audio(wave, RATE_HZ), in_s=0.05, out_s=0.05)
    silence = Audio(np.zeros(2 * RATE_HZ, dtype=np.float32), RATE_HZ)

    wanted: list[tuple[str, Any, str, Audio]] = [
        *(("a spoken number", "number", each, spoken[each].audio) for each in numbers),
        ("a tone", "kind", "tone", tone),
        ("the tone again", "kind", "tone", tone),
        ("silence", "kind", "silence", silence),
        ("a sentence", "kind", "speech", said["man"].audio),
        *((f"a {sex}'s voice", "voice", sex, said[sex].audio) for sex in _SEXES),
    ]
    return tuple(
        ProbeClip(name, about, truth, _written(folder / f"{at}.wav", resample(audio, RATE_HZ)))
        for at, (name, about, truth, audio) in enumerate(wanted)
    )


async def probe(
    model: AudioModel,
    clips: Sequence[ProbeClip],
    on_answer: Callable[[ProbeAnswer], None] = lambda _: None,
) -> ProbeResult:
    """Ask a model about the clips, each once (once more where that may help), and judge.

    Raises
    ------
    EarwitnessError: the model refuses before the first call (no key, say).
    """
    requests = [
        Request(f"probe-{number}", each.prompt, each.audio) for number, each in enumerate(clips)
    ]
    if isinstance(model, Preflight):
        model.preflight(requests)
    gate = asyncio.Semaphore(2)

    async def one(clip: ProbeClip, request: Request) -> ProbeAnswer:
        async with gate:
            answer = await _answer(model, clip, request)
        on_answer(answer)
        return answer

    answers = await asyncio.gather(*map(one, clips, requests))
    verdict, reason = judge(answers)
    return ProbeResult(verdict, reason, tuple(answers))


def judge(answers: Sequence[ProbeAnswer]) -> tuple[Verdict, str]:
    """The verdict over all answers, and why."""
    failed = [answer for answer in answers if answer.reply is None]
    if len(failed) == len(answers):
        return "unclear", f"every call failed: {failed[0].error if failed else 'nothing was asked'}"
    by_kind: Mapping[str, list[ProbeAnswer]] = {
        about: [answer for answer in answers if answer.clip.about == about] for about in _ASKED
    }
    if all(answer.reply is None or answer.reply.scores is not None for answer in answers):
        return _judge_scores(by_kind["kind"], len(failed))
    understood = sum(answer.right for answer in by_kind["number"])
    if understood:
        return "hearing", f"{understood} of {len(by_kind['number'])} spoken numbers were understood"
    told = [*by_kind["kind"], *by_kind["voice"]]
    if all(answer.right for answer in told):
        return (
            "hearing",
            "no number was understood, but tone, silence, speech and voices were told apart",
        )
    if failed:
        return "unclear", f"{len(failed)} of {len(answers)} calls failed: {failed[0].error}"
    says_so = [
        answer for answer in answers if _NO_AUDIO.search((answer.reply and answer.reply.text) or "")
    ]
    if len(says_so) > len(answers) / 2:
        return "deaf", f"it says that it gets no audio ({len(says_so)} of {len(answers)} answers)"
    if _is_constant(by_kind["kind"]) and _is_constant(by_kind["voice"]):
        return (
            "deaf",
            "no number was understood, and the other answers are the same whatever is played",
        )
    right = sum(answer.right for answer in told)
    return (
        "unclear",
        f"no number was understood, and {right} of {len(told)} other answers are right",
    )


def _judge_scores(answers: Sequence[ProbeAnswer], failed: int) -> tuple[Verdict, str]:
    """Scores have no right or wrong here: they must follow the sound and nothing else."""
    scores = {
        answer.clip.name: dict(answer.reply.scores or {}) for answer in answers if answer.reply
    }
    if failed or len(scores) < len(answers):
        return "unclear", f"{failed} calls failed"
    tone, again, silence, speech = (
        scores[name] for name in ("a tone", "the tone again", "silence", "a sentence")
    )
    if tone != again:
        return "unclear", "its scores differ for the same clip"
    if tone == silence == speech:
        return "deaf", "its scores are the same for a tone, silence and speech"
    if tone != speech and silence != speech:
        return "hearing", "its scores follow the sound, and are the same for the same clip"
    return "unclear", "its scores differ for some clips only"


def _is_constant(answers: Sequence[ProbeAnswer]) -> bool:
    return len({_plain(answer) for answer in answers}) == 1


def _plain(answer: ProbeAnswer) -> str:
    text = (answer.reply.text if answer.reply else None) or ""
    return answer.read or " ".join(text.lower().split())


async def _answer(model: AudioModel, clip: ProbeClip, request: Request) -> ProbeAnswer:
    for last in (False, True):
        try:
            reply = await model.ask(request)
        except ModelError as error:
            wait_s = retry_wait_s(error.retry_after_s, 0.5, _LONGEST_WAIT_S)
            if last or not error.retryable or wait_s is None:
                return ProbeAnswer(clip, None, "", error.message)
            await asyncio.sleep(wait_s)
        else:
            return ProbeAnswer(clip, reply, read_answer(clip, reply))
    raise AssertionError("the last try returns")


def read_answer(clip: ProbeClip, reply: Reply) -> str:
    """The answer a reply holds, empty where it holds none or several."""
    text = (reply.text or "").lower()
    if clip.about == "number":
        return _number(text)
    found = {choice for choice in clip.prompt.choices if re.search(rf"\b{choice}\b", text)}
    return found.pop() if len(found) == 1 else ""


def _number(text: str) -> str:
    """Three digits, written as digits or as words, together or apart."""
    for digit, word in enumerate(_DIGITS):
        text = re.sub(rf"\b{word}\b", str(digit), text)
    text = re.sub(r"(?<=\d)[\s,.\-–]+(?=\d)", "", text)
    found = set(re.findall(r"(?<!\d)\d{3}(?!\d)", text))
    return found.pop() if len(found) == 1 else ""


def _written(path: Path, audio: Any) -> AudioRef:
    from earwitness.audio.convert import write_audio

    write_audio(path, audio)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return AudioRef(path, digest, audio.seconds, audio.rate)
