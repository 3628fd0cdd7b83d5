"""What a report says about the recordings and voices of a corpus."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from earwitness.errors import DataError
from earwitness.report.scene_audio import cast_of, library_of


def cards(folder: Path, *, shared: bool) -> Path:
    library = {
        "name": "mine",
        "version": "2",
        "takes_shared_by_splits": shared,
        "licences": {"CC0 1.0": 3, "CC BY 4.0": 1},
    }
    cast = {"name": "default", "split_policy": "shared" if shared else "disjoint"}
    (folder / "mixes.yaml").write_text(yaml.safe_dump({"library": library}))
    (folder / "voices.yaml").write_text(yaml.safe_dump({"cast": cast}))
    return folder


def test_what_splits_share_is_said(tmp_path: Path) -> None:
    folder = cards(tmp_path, shared=True)
    assert library_of(folder) == ("mine 2 (CC BY 4.0, CC0 1.0); its takes are shared by the splits")
    assert cast_of(folder) == "default; its voices are shared by the splits"


def test_nothing_is_said_where_splits_have_their_own(tmp_path: Path) -> None:
    folder = cards(tmp_path, shared=False)
    assert library_of(folder) == "mine 2 (CC BY 4.0, CC0 1.0)"
    assert cast_of(folder) == "default"


def test_without_cards_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert (library_of(tmp_path), cast_of(tmp_path)) == ("", "")
    (tmp_path / "voices.yaml").write_text("a: [1")
    with pytest.raises(DataError, match=r"voices\.yaml: cannot be read"):
        cast_of(tmp_path)
