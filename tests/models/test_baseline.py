"""The floors."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from earwitness.errors import DataError, LicenceError, ModelError, UsageError
from earwitness.models.protocols import Preflight, Prompt, Request
from earwitness.models.registry import open_model
from tests.models.conftest import EMOTIONS, PROMPT, ask, open_and_ask

PLAIN = Request("item", PROMPT)


def clip_set(folder: Path, labels: list[str], use: str = "any") -> Path:
    folder.mkdir()
    (folder / "card.yaml").write_text(f"name: x\nuse: {use}\n")
    lines = [
        json.dumps({"id": str(n), "emotion": label, "sha256": f"sha-{n}"})
        for n, label in enumerate(labels)
    ]
    (folder / "clips.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_neutral() -> None:
    assert open_and_ask("baseline/neutral", PLAIN).text == "neutral"
    with pytest.raises(ModelError, match="does not allow 'neutral'"):
        open_and_ask("baseline/neutral", Request("i", Prompt("?", choices=("yes", "no"))))


def test_uniform_depends_on_seed_and_item_alone() -> None:
    def draws(seed: int, order: list[int]) -> dict[int, str | None]:
        return {
            n: open_and_ask("baseline/uniform", replace(PLAIN, item_id=f"i{n}"), seed=seed).text
            for n in order
        }

    ahead, back = draws(1, list(range(50))), draws(1, list(range(49, -1, -1)))
    assert ahead == back
    assert ahead != draws(2, list(range(50)))


def test_uniform_does_not_depend_on_the_order_of_the_choices() -> None:
    turned = replace(PLAIN, prompt=replace(PROMPT, choices=EMOTIONS[::-1]))
    assert (
        open_and_ask("baseline/uniform", PLAIN).text
        == open_and_ask("baseline/uniform", turned).text
    )


def test_uniform_is_uniform() -> None:
    model = open_model("baseline/uniform")
    seen = Counter(ask(model, replace(PLAIN, item_id=str(n))).text for n in range(700))
    assert set(seen) == set(EMOTIONS)
    # Chi-square with 6 degrees of freedom: 22.5 is exceeded by chance once in a thousand.
    assert sum((count - 100) ** 2 / 100 for count in seen.values()) < 22.5


def test_majority_without_training_is_the_first_of_the_alphabet() -> None:
    turned = replace(PLAIN, prompt=replace(PROMPT, choices=EMOTIONS[::-1]))
    assert open_and_ask("baseline/majority", turned).text == "anger"
    assert open_model("baseline/majority").settings == {"label": "first in alphabetical order"}


def test_majority_counts_a_training_set(tmp_path: Path) -> None:
    train = clip_set(
        tmp_path / "train", ["sadness"] * 3 + ["fear"] * 3 + ["anger"] + ["boredom"] * 9
    )
    assert open_and_ask("baseline/majority", PLAIN, train=str(train)).text == "fear"
    settings = open_model("baseline/majority", {"train": str(train)}).settings
    assert settings["counts"] == {"anger": 1, "boredom": 9, "fear": 3, "sadness": 3}


def test_majority_is_not_scored_on_the_clips_it_counted(tmp_path: Path, request_: Request) -> None:
    model = open_model("baseline/majority", {"train": str(clip_set(tmp_path / "train", ["fear"]))})
    assert isinstance(model, Preflight)
    model.preflight([PLAIN, request_])
    assert request_.audio is not None
    known = replace(request_, audio=replace(request_.audio, sha256="sha-0"))
    with pytest.raises(
        UsageError,
        match=r"1 of the clips to be scored are in the training set \(the first: item-1\)",
    ):
        model.preflight([known])


def test_an_evaluation_set_is_not_trained_on(tmp_path: Path) -> None:
    train = clip_set(tmp_path / "train", ["fear"], use="evaluation-only")
    with pytest.raises(LicenceError, match="may only be evaluated on"):
        open_model("baseline/majority", {"train": str(train)})


def test_training_sets_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"clips.jsonl: cannot be read"):
        open_model("baseline/majority", {"train": str(tmp_path)})
    with pytest.raises(DataError, match="holds no clips"):
        open_model("baseline/majority", {"train": str(clip_set(tmp_path / "empty", []))})
    broken = clip_set(tmp_path / "broken", ["fear"])
    (broken / "clips.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(DataError, match="line 1: is no clip"):
        open_model("baseline/majority", {"train": str(broken)})


@pytest.mark.parametrize("name", ["majority", "uniform", "neutral"])
def test_a_prompt_without_choices(name: str) -> None:
    with pytest.raises(ModelError, match="names no choices"):
        open_and_ask(f"baseline/{name}", Request("i", Prompt("What?")))


def test_the_options_of_prosody_are_listed_with_the_others() -> None:
    from earwitness.models.prosody.model import OPTIONS
    from earwitness.models.registry import adapter_info

    listed = {option.name for option in adapter_info("baseline").options}
    assert {option.name for option in OPTIONS} < listed
    assert {"train", "seed"} < listed
