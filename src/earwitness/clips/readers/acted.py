"""The acted corpora whose file names carry everything: RAVDESS, CREMA-D, TESS, SAVEE and EmoDB."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from earwitness.clips.readers.listing import Listing, Options, SourceClip, Terms, parse_names

RAVDESS = Terms(
    name="RAVDESS",
    licence="CC BY-NC-SA 4.0",
    use="non-commercial",
    label_map="ravdess",
    language="en",
    source="The Ryerson Audio-Visual Database of Emotional Speech and Song, speech, audio only",
    citation="Livingstone and Russo 2018, doi:10.1371/journal.pone.0196391",
)
CREMA_D = Terms(
    name="CREMA-D",
    licence="ODbL 1.0 (database), DbCL 1.0 (contents)",
    use="any",
    label_map="crema-d",
    language="en",
    redistribute=True,
    source="Crowd-sourced Emotional Multimodal Actors Dataset, audio",
    citation="Cao et al. 2014, doi:10.1109/TAFFC.2014.2336244",
)
TESS = Terms(
    name="TESS",
    licence="CC BY-NC-ND 4.0",
    use="non-commercial",
    label_map="tess",
    language="en",
    source="Toronto emotional speech set",
    citation="Pichora-Fuller and Dupuis 2020, doi:10.5683/SP2/E8H2MF",
)
SAVEE = Terms(
    name="SAVEE",
    licence="SAVEE terms (free for research)",
    use="non-commercial",
    label_map="savee",
    language="en",
    source="Surrey Audio-Visual Expressed Emotion database, audio",
    citation="Jackson and Haq 2014, University of Surrey",
)
EMODB = Terms(
    name="EmoDB",
    licence="EmoDB terms (published as freely usable)",
    use="any",
    label_map="emodb",
    language="de",
    source="Berlin Database of Emotional Speech",
    citation="Burkhardt et al. 2005, A database of German emotional speech, Interspeech",
)

_RAVDESS_NAME = re.compile(r"(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)")
_RAVDESS_EMOTIONS = {
    "01": "neutral",
    "02": "calm",
    "03": "happy",
    "04": "sad",
    "05": "angry",
    "06": "fearful",
    "07": "disgust",
    "08": "surprised",
}
_RAVDESS_STATEMENTS = {"01": "Kids are talking by the door", "02": "Dogs are sitting by the door"}
_RAVDESS_INTENSITY = {"01": "normal", "02": "strong"}


def read_ravdess(folder: Path, options: Options) -> Listing:
    """RAVDESS speech as WAV or FLAC; names are modality-channel-emotion-intensity-statement-repetition-actor.

    Song and files with video are counted and left out: they are other recordings or the same twice.
    """
    del options

    def parse(path: Path) -> SourceClip | str:
        match = _RAVDESS_NAME.fullmatch(path.stem)
        if match is None:
            return "not a RAVDESS name"
        modality, channel, emotion, intensity, statement, repetition, actor = match.groups()
        if channel == "02":
            return "song"
        if modality != "03":
            return "with video"
        if (
            channel != "01"
            or emotion not in _RAVDESS_EMOTIONS
            or intensity not in _RAVDESS_INTENSITY
            or statement not in _RAVDESS_STATEMENTS
        ):
            return "a RAVDESS name with unknown codes"
        return SourceClip(
            id=path.stem,
            file=path,
            source_label=_RAVDESS_EMOTIONS[emotion],
            speaker=f"ravdess_{actor}",
            metadata={
                "intensity": _RAVDESS_INTENSITY[intensity],
                "text": _RAVDESS_STATEMENTS[statement],
                "repetition": str(int(repetition)),
                "sex": "female" if int(actor) % 2 == 0 else "male",
            },
        )

    return parse_names(folder, "RAVDESS", "03-01-05-01-02-01-04.wav", parse)


_CREMA_D_NAME = re.compile(r"(\d{4})_([A-Z]{3})_([A-Z]{3})_([A-Z]{1,2})")
_CREMA_D_TEXTS = {
    "IEO": "It's eleven o'clock",
    "TIE": "That is exactly what happened",
    "IOM": "I'm on my way to the meeting",
    "IWW": "I wonder what this is about",
    "TAI": "The airplane is almost full",
    "MTI": "Maybe tomorrow it will be cold",
    "IWL": "I would like a new alarm clock",
    "ITH": "I think I have a doctor's appointment",
    "DFA": "Don't forget a jacket",
    "ITS": "I think I've seen this before",
    "TSI": "The surface is slick",
    "WSI": "We'll stop in a couple of minutes",
}
_CREMA_D_LEVELS = {"LO": "low", "MD": "medium", "HI": "high", "XX": "", "X": ""}


def read_crema_d(folder: Path, options: Options) -> Listing:
    """CREMA-D; names are actor_sentence_emotion_level (one published file has the level ``X``).

    The actors' sex comes from ``VideoDemographics.csv`` where that file is in the folder or beside it.
    """
    del options
    sexes = _crema_d_sexes(folder)

    def parse(path: Path) -> SourceClip | str:
        match = _CREMA_D_NAME.fullmatch(path.stem)
        if match is None:
            return "not a CREMA-D name"
        actor, sentence, emotion, level = match.groups()
        if sentence not in _CREMA_D_TEXTS or level not in _CREMA_D_LEVELS:
            return "a CREMA-D name with unknown codes"
        metadata = {
            "text": _CREMA_D_TEXTS[sentence],
            "intensity": _CREMA_D_LEVELS[level],
            "sex": sexes.get(actor, ""),
        }
        return SourceClip(
            id=path.stem,
            file=path,
            source_label=emotion,
            speaker=f"crema_d_{actor}",
            metadata={key: value for key, value in metadata.items() if value},
        )

    return parse_names(folder, "CREMA-D", "1001_DFA_ANG_XX.wav", parse)


def _crema_d_sexes(folder: Path) -> dict[str, str]:
    for table in (folder / "VideoDemographics.csv", folder.parent / "VideoDemographics.csv"):
        if table.is_file():
            with table.open(encoding="utf-8-sig", newline="") as handle:
                rows = list(csv.DictReader(handle))
            return {
                (row.get("ActorID") or "").strip(): (row.get("Sex") or "").strip().lower()
                for row in rows
            }
    return {}


_TESS_NAME = re.compile(
    r"(OAF|YAF|OA)_([A-Za-z']+)_(angry|disgust|fear|happy|neutral|ps|sad)", re.I
)


def read_tess(folder: Path, options: Options) -> Listing:
    """TESS; names are speaker_word_emotion. One published name begins with ``OA``, which is ``OAF``."""
    del options

    def parse(path: Path) -> SourceClip | str:
        match = _TESS_NAME.fullmatch(path.stem)
        if match is None:
            return "not a TESS name"
        speaker, word, emotion = match.groups()
        older = speaker.upper().startswith("OA")
        return SourceClip(
            id=path.stem,
            file=path,
            source_label=emotion.lower(),
            speaker="tess_oaf" if older else "tess_yaf",
            metadata={"text": f"Say the word {word.lower()}", "sex": "female"},
        )

    return parse_names(folder, "TESS", "OAF_back_angry.wav", parse)


_SAVEE_NAME = re.compile(r"(?:(DC|JE|JK|KL)_)?(sa|su|a|d|f|h|n)(\d\d)")
_SAVEE_SPEAKERS = ("DC", "JE", "JK", "KL")


def read_savee(folder: Path, options: Options) -> Listing:
    """SAVEE, as ``DC_a01.wav`` in one folder or as ``DC/a01.wav``; all four speakers are men."""
    del options

    def parse(path: Path) -> SourceClip | str:
        match = _SAVEE_NAME.fullmatch(path.stem)
        if match is None:
            return "not a SAVEE name"
        speaker, emotion, number = match.groups()
        speaker = speaker or path.parent.name.upper()
        if speaker not in _SAVEE_SPEAKERS:
            return "a SAVEE name without its speaker (DC, JE, JK, KL)"
        return SourceClip(
            id=f"{speaker}_{emotion}{number}",
            file=path,
            source_label=emotion,
            speaker=f"savee_{speaker.lower()}",
            metadata={"sex": "male", "sentence": number},
        )

    return parse_names(folder, "SAVEE", "DC_a01.wav", parse)


_EMODB_NAME = re.compile(r"(\d\d)([ab]\d\d)([A-Z])([a-z]?)")
_EMODB_WORDS = {
    "W": "Wut",
    "L": "Langeweile",
    "E": "Ekel",
    "A": "Angst",
    "F": "Freude",
    "T": "Trauer",
    "N": "neutral",
}
_EMODB_WOMEN = {"08", "09", "13", "14", "16"}
_EMODB_MEN = {"03", "10", "11", "12", "15"}
_EMODB_TEXTS = {
    "a01": "Der Lappen liegt auf dem Eisschrank.",
    "a02": "Das will sie am Mittwoch abgeben.",
    "a04": "Heute abend könnte ich es ihm sagen.",
    "a05": "Das schwarze Stück Papier befindet sich da oben neben dem Holzstück.",
    "a07": "In sieben Stunden wird es soweit sein.",
    "b01": "Was sind denn das für Tüten, die da unter dem Tisch stehen?",
    "b02": "Sie haben es gerade hochgetragen und jetzt gehen sie wieder runter.",
    "b03": "An den Wochenenden bin ich jetzt immer nach Hause gefahren und habe Agnes besucht.",
    "b09": "Ich will das eben wegbringen und dann mit Karl was trinken gehen.",
    "b10": "Die wird auf dem Platz sein, wo wir sie immer hinlegen.",
}


def read_emodb(folder: Path, options: Options) -> Listing:
    """EmoDB; names are speaker(2) text(3) emotion(1) version(1). German."""
    del options

    def parse(path: Path) -> SourceClip | str:
        match = _EMODB_NAME.fullmatch(path.stem)
        if match is None:
            return "not an EmoDB name"
        speaker, text, emotion, version = match.groups()
        if speaker not in _EMODB_WOMEN | _EMODB_MEN or text not in _EMODB_TEXTS:
            return "an EmoDB name with unknown codes"
        return SourceClip(
            id=path.stem,
            file=path,
            source_label=_EMODB_WORDS.get(emotion, emotion),
            speaker=f"emodb_{speaker}",
            metadata={
                "text": _EMODB_TEXTS[text],
                "sex": "female" if speaker in _EMODB_WOMEN else "male",
                "version": version,
            },
        )

    return parse_names(folder, "EmoDB", "03a01Fa.wav", parse)
