"""Each code of the linter on both sides: a bank without the fault is clean, with it the code appears."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from earwitness.errors import DataError
from earwitness.scenes.bank import DEFAULT_BANK, BankError, load_bank
from earwitness.scenes.bank_library import library_findings, read_library
from earwitness.scenes.bank_lint import CODES, lint_folder

GERMAN = Path(__file__).parent / "german_bank"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small clean bank that a test may spoil."""
    return Path(shutil.copytree(GERMAN, tmp_path / "bank"))


def codes(folder: Path) -> list[str]:
    return sorted({found.code for found in lint_folder(folder).findings})


def swap(file: str, old: str, new: str, count: int = 1) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, count), encoding="utf-8")

    return edit


def cut(file: str, pattern: str) -> Callable[[Path], None]:
    """Take out the lines that match."""

    def edit(folder: Path) -> None:
        path = folder / file
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if not re.search(pattern, line)]
        assert len(kept) < len(lines)
        path.write_text("".join(kept), encoding="utf-8")

    return edit


def append(file: str, text: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / file
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(before + text, encoding="utf-8")

    return edit


NEW_SOUND = (
    "- {{id: {0}, name: ein {0}, names: [{0}], duration_s: [1, 2], loudness: quiet, at: {1}}}\n"
)
OTHER_TOPICS = "category: {id: reise, name: Reise}\nthemes:\n" + "".join(
    f"- {{id: t{n}, name: T{n}, facets: [{', '.join(f'{n}f{k}' for k in range(12))}], situations: ["
    + ", ".join(f"{{title: Titel Nummer {n} {k}, facets: [a{n}x{k}, b{n}y{k}]}}" for k in range(10))
    + "]}\n"
    for n in range(3)
)


def two_categories(folder: Path) -> None:
    (folder / "topics").mkdir()
    (folder / "topics.yaml").rename(folder / "topics" / "a.yaml")
    (folder / "topics" / "b.yaml").write_text(OTHER_TOPICS, encoding="utf-8")


FAULTS: dict[str, Callable[[Path], None]] = {
    "B101": swap("roles.yaml", "roles:", "roles: ["),
    "B102": swap("tags.yaml", "renders: pause", "renders: pause, colour: red"),
    "B103": swap("bank.yaml", "licence: CC0-1.0\n", ""),
    "B104": swap("sounds.yaml", "loudness: quiet", "loudness: silent"),
    "B105": swap("tags.yaml", "id: pause", "id: seufzen"),
    "B106": swap("sounds.yaml", "at: [strasse]", "at: [gasse]"),
    "B107": lambda folder: (folder / "roles.yaml").unlink(),
    "B108": append("notes.yaml", "a: 1\n"),
    "B109": swap("bank.yaml", "language: de", "language: de\nlanguage: en"),
    "B201": cut("sounds.yaml", "id: toaster"),
    "B202": swap("sounds.yaml", "names: [kessel*]", "names: [kessel*, pfeifender toaster]"),
    "B203": append("common_words.yaml", "words: [bus]\n"),
    "B204": lambda folder: [
        append("sounds.yaml", NEW_SOUND.format(f"ding{n}", "everywhere"))(folder) for n in range(5)
    ]
    and None,
    "B205": swap(
        "sounds.yaml",
        "at: everywhere, distance",
        "at: everywhere, implausible_in: [kueche, strasse], distance",
    ),
    "B206": swap("sounds.yaml", "at: everywhere, distance", "at: [strasse], distance"),
    "B207": swap("locations.yaml", "absorption: 0.18", "absorption: 0.5"),
    "B208": swap("sounds.yaml", "name: ein Bagger", "name: ein Bus"),
    "B209": swap("sounds.yaml", "name: ein Bagger", "name: eine Baumaschine"),
    "B210": swap("sounds.yaml", "weak: [gewitter*]", "weak: [gewitter*, Donner*]"),
    "B301": swap("registers.yaml", 'move: "Urteilt in einem halben Satz darüber."', 'move: " "'),
    "B302": cut("registers.yaml", "id: verbal_2"),
    "B303": swap("registers.yaml", "naming: forbidden", "naming: allowed"),
    "B304": swap("registers.yaml", "renders_in: [tag]", "renders_in: [words]"),
    "B305": swap(
        "registers.yaml",
        "naming: forbidden, renders_in: [words]",
        "naming: forbidden, renders_in: [tag], tags: [pause]",
        2,
    ),
    "B306": swap("registers.yaml", "Fragt kurz, ob es stört", "Entschuldigt es kurz"),
    "B307": swap("tags.yaml", "written: Pause", "written: Seufzt"),
    "B401": append(
        "roles.yaml",
        "- {id: bruder, name: Zwei, a: Geschwister, b: Geschwister, closeness: close, bond: Gleich.}\n",
    ),
    "B402": cut("roles.yaml", "id: nachbarn"),
    "B501": swap("topics.yaml", "Ein Sofa zu viel", "der UMZUG – im Herbst!"),
    "B502": swap("topics.yaml", "[Helfer, Farben, Maße]", "[farben, Kosten, Helfer]"),
    "B503": swap("topics.yaml", "Ein Sofa zu viel", "Sofa"),
    "B504": cut("topics.yaml", "Ein Sofa zu viel"),
    "B505": swap("topics.yaml", ", Ruhe, Geld]\n  situations", ", Ruhe]\n  situations"),
    "B506": two_categories,
    "B507": swap("topics.yaml", "facets: [Kosten, Helfer, Farben, Maße", "facets: [Kosten, kosten, Farben, Maße"),
    "B508": swap("topics.yaml", "Ein Sofa zu viel", "Ein Toaster zu viel"),
}  # fmt: skip


def test_both_banks_are_clean() -> None:
    assert lint_folder(DEFAULT_BANK).findings == ()
    assert lint_folder(GERMAN).findings == ()


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_is_found_under_its_code(folder: Path, code: str) -> None:
    assert codes(folder) == []
    FAULTS[code](folder)
    found = [f for f in lint_folder(folder).findings if f.code == code]
    assert found
    assert {f.severity for f in found} == {CODES[code][0]}
    assert all(f.found and f.wanted for f in found)
    # A second code may follow from the same edit, but not a crowd of them.
    assert len(codes(folder)) <= 2


def test_every_code_has_a_test() -> None:
    assert {*FAULTS, "B601", "B602", "B603"} == set(CODES)


def test_several_faults_of_files_are_listed_at_once(folder: Path) -> None:
    for code in ("B102", "B104", "B106"):
        FAULTS[code](folder)
    report = lint_folder(folder)
    assert report.bank is None
    assert {f.code for f in report.findings} == {"B102", "B104"}, "references wait for the values"
    assert len(report.errors) == 2


def test_an_unknown_key_hides_nothing_else(folder: Path) -> None:
    FAULTS["B102"](folder)
    FAULTS["B503"](folder)
    assert codes(folder) == ["B102", "B503"]


def test_uneven_own_pools_are_named(folder: Path) -> None:
    for n in range(20):
        append("sounds.yaml", NEW_SOUND.format(f"ding{n}", "[kueche]"))(folder)
    (found,) = lint_folder(folder).findings
    assert (found.code, found.found) == ("B204", "28 own sounds of kueche beside 8 of strasse")


def test_a_name_shared_by_places_that_never_meet_is_fine(folder: Path) -> None:
    swap("sounds.yaml", "names: [laster*]", "names: [laster*, toaster]")(folder)
    assert codes(folder) == []


def test_a_shared_name_is_reported_once_for_both(folder: Path) -> None:
    FAULTS["B202"](folder)
    (found,) = lint_folder(folder).findings
    assert found.where == "sounds.yaml: sounds[kessel].names"
    assert found.found == "'pfeifender toaster' for kessel and toaster, which occur in one place"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BankError, match="no such folder"):
        lint_folder(tmp_path / "none")


def library(tmp_path: Path, lines: list[dict[str, str]]) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "takes.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_a_full_library_serves_every_location(tmp_path: Path) -> None:
    bank = load_bank(GERMAN)
    lines = [
        {"sound": sound.id, "split": split} for sound in bank.sounds for split in ("train", "test")
    ]
    lines += [{"ambience": x.id, "split": "shared"} for x in bank.locations]
    assert list(library_findings(bank, read_library(library(tmp_path, lines)))) == []


def test_a_library_is_judged_split_by_split(tmp_path: Path) -> None:
    bank = load_bank(GERMAN)
    lines = [{"sound": sound.id, "split": "train"} for sound in bank.sounds]
    lines += [{"sound": s, "split": "test"} for s in ("toaster", "kessel", "pfanne", "hahn", "bus")]
    lines += [{"sound": "motte", "split": "shared"}, {"ambience": "kueche", "split": "train"}]
    found = list(library_findings(bank, read_library(library(tmp_path, lines))))
    assert [(f.code, f.path) for f in found] == [
        ("B603", "motte"),
        ("B602", "locations[kueche], test"),
        ("B601", "locations[kueche], test"),
        ("B601", "locations[strasse], test"),
        ("B601", "locations[strasse], test"),
        ("B601", "locations[strasse], train"),
    ]
    assert found[2].found == "no ambience"
    assert found[3].found == "takes of 1 of its 12 sounds"


def test_a_library_of_plain_folders(tmp_path: Path) -> None:
    bank = load_bank(GERMAN)
    for sound in bank.sounds_at("kueche"):
        (tmp_path / "sounds" / sound).mkdir(parents=True)
        (tmp_path / "sounds" / sound / "1.wav").write_bytes(b"x")
    (tmp_path / "sounds" / "bus").mkdir()
    contents = read_library(tmp_path)
    assert contents.splits == ("shared",)
    assert contents.sounds["toaster"] == {"shared": 1}
    assert "bus" not in contents.sounds, "an empty folder holds no take"
    found = list(library_findings(bank, contents))
    assert [(f.code, f.path) for f in found] == [("B602", "locations[strasse]")]


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("{", r"takes\.jsonl: line 1: not JSON"),
        ("[1]", "line 1: list; wanted an object"),
        ('{"split": "test"}', "line 1: neither sound nor ambience"),
    ],
)
def test_a_line_that_is_no_take(tmp_path: Path, line: str, match: str) -> None:
    (tmp_path / "takes.jsonl").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=match):
        read_library(tmp_path)


def test_a_folder_that_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"neither takes\.jsonl nor a folder sounds/"):
        read_library(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        read_library(tmp_path / "none")


def test_the_documentation_lists_every_code() -> None:
    text = (Path(__file__).parents[2] / "docs" / "banks.md").read_text(encoding="utf-8")
    for code, (severity, meaning) in CODES.items():
        assert f"| {code} | {severity} | {meaning} |" in text
