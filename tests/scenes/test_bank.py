"""Banks: what loads, in which order, under which hash, and how a fault is named."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
import yaml

from earwitness.scenes.bank import DEFAULT_BANK, Bank, BankError, bank_schema, load_bank
from earwitness.scenes.bank_records import PARTS

GERMAN = Path(__file__).parent / "german_bank"


@pytest.fixture(scope="module")
def bank() -> Bank:
    return load_bank()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small bank that a test may spoil."""
    return Path(shutil.copytree(GERMAN, tmp_path / "bank"))


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_default_bank_has_the_scale_of_the_paper(bank: Bank) -> None:
    assert len(bank.locations) == 13
    assert len(bank.roles) == 24
    assert len(bank.sounds) == 219
    drawable = {s for x in bank.locations for s in (*bank.sounds_at(x.id), *bank.rare_at(x.id))}
    assert len(drawable) == 219
    assert len(bank.categories) == 12
    assert [len(c.themes) for c in bank.categories if len(c.themes) not in (8, 9)] == []
    assert sum(len(c.themes) for c in bank.categories) == 100
    assert len(bank.templates) == 1000
    assert len({t.title.casefold() for t in bank.templates}) == 1000


def test_the_default_bank_has_registers_that_voices_can_render(bank: Bank) -> None:
    assert all(len(bank.registers_of(r)) >= 8 for r in ("pivot", "verbal", "behavioral"))
    assert bank.registers_of("ambient") == ()
    behavioral = bank.registers_of("behavioral")
    assert all(register.naming == "forbidden" for register in behavioral)
    assert sum(not register.tags for register in behavioral) >= 5
    assert sum(sound.rare for sound in bank.sounds) >= 10
    assert all(sound.alarm_natural for sound in bank.sounds if sound.rare)


def test_sounds_at_a_location_are_own_shared_and_plausible_general_ones(bank: Bank) -> None:
    at_office = bank.sounds_at("office")
    assert at_office == tuple(sorted(at_office))
    assert {"printer_run", "door_knock", "keys_jingle"} <= set(at_office)
    assert "lighter_flick" not in at_office, "implausible there"
    assert "dog_bark" not in at_office, "shared by other places"
    assert "thunder_clap" not in at_office
    assert "thunder_clap" in bank.rare_at("office")
    assert Counter(bank.sound(s).pool for s in at_office)["own"] == 13


def test_the_distance_of_a_sound_is_its_own_or_its_locations(bank: Bank) -> None:
    assert bank.distance_of("thunder_clap", "car").id == "sky"
    assert bank.sound("power_drill").distance is None
    assert bank.distance_of("power_drill", "workshop").id == "room"
    assert bank.distance_of("power_drill", "street").id == "road"


def test_templates_are_numbered_by_their_place_in_the_theme(bank: Bank) -> None:
    first = bank.template("moving_house-01")
    assert (first.category, first.theme, first.index) == ("home", "moving_house", 1)
    assert first.title == bank.theme("moving_house").situations[0].title


@pytest.mark.parametrize(
    ("lookup", "identifier", "match"),
    [
        ("location", "ofice", "no location 'ofice'; wanted one of office"),
        ("sound", "dog_barks", "no sound 'dog_barks'; wanted one of dog_bark"),
        ("register", "nothing", "no register 'nothing'"),
        ("role_pair", "neighbors", "no role pair 'neighbors'; wanted one of neighbours"),
        ("sounds_at", "moon", "no location 'moon'"),
    ],
)
def test_an_unknown_id_is_answered_with_the_nearest(
    bank: Bank, lookup: str, identifier: str, match: str
) -> None:
    with pytest.raises(BankError, match=match):
        getattr(bank, lookup)(identifier)


def test_a_bank_in_another_language_needs_no_code() -> None:
    german = load_bank(GERMAN)
    assert german.language == "de"
    assert len(german.sounds_at("kueche")) == 12
    assert german.rare_at("strasse") == ("donner",)
    assert german.location("strasse").phrase == "auf einer Straße"


def test_records_are_frozen(bank: Bank) -> None:
    with pytest.raises(Exception, match="frozen"):
        bank.sounds[0].id = "other"  # type: ignore[misc]


def test_the_hash_does_not_see_files_order_comments_or_layout(folder: Path) -> None:
    before = load_bank(folder)
    sounds = yaml.safe_load((folder / "sounds.yaml").read_text(encoding="utf-8"))["sounds"]
    (folder / "sounds.yaml").unlink()
    (folder / "sounds").mkdir()
    for n, sound in enumerate(reversed(sounds)):
        text = "# a comment\n" + yaml.safe_dump({"sounds": [sound]}, allow_unicode=True)
        (folder / "sounds" / f"{n:02d}.yaml").write_text(text, encoding="utf-8")
    after = load_bank(folder)
    assert after.hash == before.hash
    assert after.sounds == before.sounds


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("sounds.yaml", "[0.5, 4]", "[0.5, 5]"),
        ("topics.yaml", "Ein Sofa zu viel", "Ein Tisch zu viel"),
        ("registers.yaml", "Fragt kurz", "Fragt knapp"),
        ("locations.yaml", "rt60_s: 0.45", "rt60_s: 0.46"),
        ("bank.yaml", 'version: "1"', 'version: "2"'),
    ],
)
def test_the_hash_sees_every_change_of_content(folder: Path, file: str, old: str, new: str) -> None:
    before = load_bank(folder).hash
    replace(folder / file, old, new)
    assert load_bank(folder).hash != before


@pytest.mark.parametrize(
    ("file", "old", "new", "match"),
    [
        (
            "sounds.yaml", "loudness: medium", "loudnes: medium",
            r"sounds\.yaml: sounds\[0 toaster\]\.loudnes: the unknown key 'loudnes'; wanted one of id, name, names",
        ),
        ("sounds.yaml", "[0.5, 4]", "[4, 0.5]", r"sounds\[0 toaster\].*wanted duration_s as \[shortest, longest\]"),
        ("sounds.yaml", "[0.5, 4]", "[0.5, vier]", r"sounds\[0 toaster\]\.duration_s\[1\]: 'vier'; wanted a valid number"),
        ("sounds.yaml", "at: [kueche]", "at: [küche]", r"sounds\[0 toaster\]\.at.*'küche'"),
        ("sounds.yaml", "at: [kueche]", "at: [keller]", r"sounds\[0 toaster\]\.at: the unknown location 'keller'; wanted one of"),
        ("sounds.yaml", "id: kessel", "id: toaster", r"the sound 'toaster' a second time; wanted ids that are unique"),
        ("sounds.yaml", ", names: [toaster*]", "", r"sounds\[0 toaster\]\.names: nothing; wanted a value: the key is required"),
        ("sounds.yaml", "at: everywhere", "at: [kueche], implausible_in: [strasse]", "wanted implausible_in only beside at: everywhere"),
        ("locations.yaml", "distance: nah", "distance: nahe", r"the unknown distance profile 'nahe'; wanted one of nah"),
        ("locations.yaml", "near_m: 1,", "near_m: 8,", "wanted near_m <= reference_m <= far_m"),
        ("locations.yaml", "absorption: 0.18", "absorption: 1.2", r"room\.absorption: 1\.2; wanted less than 1"),
        ("registers.yaml", "tags: [seufzen]", "tags: [stöhnen]", "'stöhnen'"),
        ("registers.yaml", "tags: [seufzen]", "tags: [lachen]", "the unknown tag 'lachen'"),
        ("registers.yaml", "reaction: pivot", "reaction: ambient", r"registers\[0 pivot_1\]\.reaction: 'ambient'; wanted 'pivot', 'verbal' or 'behavioral'"),
        ("topics.yaml", "[Kosten, Helfer, Farben]", "[Kosten]", r"facets: \['Kosten'\]; wanted Tuple should have at least 2 items"),
        ("bank.yaml", "format: 1", "format: 2", r"bank\.yaml: format: 2; wanted 1"),
        ("bank.yaml", "id: kleine_bank", "id: kleine_bank\nid: bank", "the key 'id' twice in one mapping"),
        ("roles.yaml", "roles:", "roles: [", r"roles\.yaml: line \d+, column \d+: .*wanted YAML"),
    ],
)  # fmt: skip
def test_a_fault_is_named_by_file_key_path_found_and_wanted(
    folder: Path, file: str, old: str, new: str, match: str
) -> None:
    replace(folder / file, old, new)
    with pytest.raises(BankError, match=match) as caught:
        load_bank(folder)
    assert file in str(caught.value)
    assert "earwitness scenes bank check" in str(caught.value)


def test_missing_and_unused_files_are_faults(folder: Path) -> None:
    (folder / "roles.yaml").rename(folder / "role.yaml")
    with pytest.raises(BankError, match=r"roles\.yaml: no such file.*There are 1 more faults"):
        load_bank(folder)
    (folder / "role.yaml").rename(folder / "roles.yaml")
    (folder / "extra.yaml").write_text("a: 1\n", encoding="utf-8")
    with pytest.raises(BankError, match=r"extra\.yaml: a file of no part of a bank"):
        load_bank(folder)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BankError, match=r"no such folder; wanted a bank.*scenes bank new DIR"):
        load_bank(tmp_path / "none")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BankError, match="not a folder"):
        load_bank(tmp_path / "file")


def test_text_that_is_not_utf8(folder: Path) -> None:
    (folder / "roles.yaml").write_bytes("roles: [Bäcker]".encode("latin-1"))
    with pytest.raises(BankError, match="byte 9 is not UTF-8"):
        load_bank(folder)


def test_words_that_yaml_takes_for_truth_values_stay_words(folder: Path) -> None:
    (folder / "common_words.yaml").write_text("words: [on, Off, yes, no]\n", encoding="utf-8")
    assert load_bank(folder).common_words == {"on", "off", "yes", "no"}
    replace(folder / "sounds.yaml", "rare: true", "rare: false")
    assert not load_bank(folder).sound("donner").rare


@pytest.mark.parametrize("folder_", [DEFAULT_BANK, GERMAN], ids=["default", "german"])
def test_the_published_schema_accepts_the_files(folder_: Path) -> None:
    schema = bank_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for part in PARTS:
        files = [*folder_.glob(f"{part}.yaml"), *(folder_ / part).glob("*.yaml")]
        validator = jsonschema.Draft202012Validator(
            {**schema["properties"][part], "$defs": schema["$defs"]}
        )
        for file in files:
            document = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
            # YAML has no tuples; through JSON as an editor sees it.
            assert [
                e.message for e in validator.iter_errors(json.loads(json.dumps(document)))
            ] == [], file


def test_the_published_schema_refuses_unknown_keys() -> None:
    schema = bank_schema()
    validator = jsonschema.Draft202012Validator(
        {**schema["properties"]["tags"], "$defs": schema["$defs"]}
    )
    assert not validator.is_valid(
        {"tags": [{"id": "a", "written": "b", "renders": "pause", "heard": "c", "x": 1}]}
    )
