"""Encoded stimuli are kept by content, bounded, shared by threads, and never trusted when damaged."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earwitness.models.payload import Payload, encode_stimulus, estimate_bytes, longest_seconds
from earwitness.models.payload_store import PayloadStore, default_folder
from earwitness.models.protocols import AudioRef, Limits

LOW = Limits(rates=(8_000,))


def test_a_stimulus_is_encoded_once_for_all_calls(
    tmp_path: Path, make_clip: Callable[..., AudioRef]
) -> None:
    store = PayloadStore(tmp_path / "kept")
    clip = make_clip(seconds=1.0)
    first = encode_stimulus(replace(clip, store=store), LOW)
    again = encode_stimulus(replace(clip, store=store), LOW)
    other = PayloadStore(tmp_path / "kept")
    moved = tmp_path / "elsewhere.wav"
    moved.write_bytes(clip.path.read_bytes())
    elsewhere = encode_stimulus(replace(clip, path=moved, store=other), LOW)
    assert first == again == elsewhere == encode_stimulus(clip, LOW)
    assert (store.counts.made, store.counts.found) == (1, 1)
    assert (other.counts.made, other.counts.found) == (0, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"transform": "silence"},
        {"window": (0.25, 0.75), "seconds": 0.5},
        {"sha256": ""},
    ],
)
def test_another_stimulus_is_another_payload(
    tmp_path: Path, make_clip: Callable[..., AudioRef], change: dict[str, object]
) -> None:
    store = PayloadStore(tmp_path / "kept")
    clip = replace(make_clip(seconds=1.0), store=store)
    whole = encode_stimulus(clip, LOW)
    changed = encode_stimulus(replace(clip, **change), LOW)
    if change.get("sha256") != "":
        assert changed.data != whole.data
    assert store.counts.found == 0


def test_what_is_sent_as_it_is_is_not_kept(
    tmp_path: Path, make_clip: Callable[..., AudioRef]
) -> None:
    store = PayloadStore(tmp_path / "kept")
    encode_stimulus(replace(make_clip(), store=store), Limits())
    assert not (tmp_path / "kept").exists()


def test_a_damaged_one_is_made_anew(tmp_path: Path, make_clip: Callable[..., AudioRef]) -> None:
    store = PayloadStore(tmp_path / "kept")
    clip = replace(make_clip(), store=store)
    whole = encode_stimulus(clip, LOW)
    [kept] = (tmp_path / "kept").glob("*.payload")
    good = kept.read_bytes()
    for damaged in (good[:-5], b"", good[:20], b"{}\n" + good, good[:-1] + b"\x00\x01"):
        kept.write_bytes(damaged)
        assert encode_stimulus(clip, LOW) == whole
    assert kept.read_bytes() == good


def test_the_folder_stays_under_its_limit_and_the_least_used_goes_first(tmp_path: Path) -> None:
    store = PayloadStore(tmp_path, limit_bytes=5_000)

    def make() -> Payload:
        return Payload(b"x" * 1_000, "wav", "audio/wav", 1.0)

    for number in range(4):
        store.payload(str(number), make)
        for path in tmp_path.glob("*.payload"):
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    store.payload("0", make)
    for number in range(4, 6):
        store.payload(str(number), make)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 5_000
    before = store.counts.made
    store.payload("0", make)
    assert store.counts.made == before
    store.payload("1", make)
    assert store.counts.made == before + 1
    store.payload("large", lambda: Payload(b"x" * 6_000, "wav", "audio/wav", 1.0))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 5_000


def test_threads_that_want_the_same_encode_it_once_and_few_encode_at_a_time(tmp_path: Path) -> None:
    store = PayloadStore(tmp_path, encoders=2)
    now = most = 0
    guard, gate = threading.Lock(), threading.Event()

    def make() -> Payload:
        nonlocal now, most
        with guard:
            now += 1
            most = max(most, now)
        gate.wait(0.02)
        with guard:
            now -= 1
        return Payload(b"x", "wav", "audio/wav", 1.0)

    threads = [threading.Thread(target=store.payload, args=(str(n % 5), make)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.counts.made == 5
    assert store.counts.found == 15
    assert most <= 2


def test_a_folder_that_cannot_be_written_ends_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = PayloadStore(tmp_path / "file" / "kept")
    made = Payload(b"x", "wav", "audio/wav", 1.0)
    assert store.payload("a", lambda: made) == made


def test_the_default_folder_is_the_user_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EARWITNESS_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_folder() == Path("/somewhere/earwitness/payloads")


@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100])
def test_a_window_is_cut_at_its_very_samples(make_clip: Callable[..., AudioRef], rate: int) -> None:
    clip = make_clip(seconds=2.0, rate=rate)
    cut = replace(clip, window=(0.501, 1.25), seconds=0.749)
    payload = encode_stimulus(cut, Limits())
    import io

    heard, _ = soundfile.read(io.BytesIO(payload.data), dtype="int16")
    whole, _ = soundfile.read(clip.path, dtype="int16")
    first, last = round(0.501 * rate), round(1.25 * rate)
    np.testing.assert_array_equal(heard, whole[first:last])
    assert payload.note == "seconds 0.501 to 1.250 of the file"
    assert len(payload.data) <= estimate_bytes(cut, Limits())


def test_how_much_a_model_takes(make_clip: Callable[..., AudioRef]) -> None:
    clip = make_clip(seconds=3.0, rate=16_000)
    assert longest_seconds(clip, Limits()) is None
    assert longest_seconds(clip, Limits(max_seconds=3.0)) is None
    assert longest_seconds(clip, Limits(max_seconds=1.2345)) == 1.234
    by_bytes = longest_seconds(clip, Limits(max_bytes=48_000))
    assert by_bytes is not None
    cut = replace(clip, window=(0.5, 0.5 + by_bytes), seconds=by_bytes)
    assert estimate_bytes(cut, Limits()) <= 48_000
    assert len(encode_stimulus(cut, Limits()).data) > 30_000
    assert longest_seconds(clip, Limits(max_bytes=1_000)) == -0.001


def test_lossy_only_when_asked(make_clip: Callable[..., AudioRef]) -> None:
    clip = make_clip(seconds=1.0)
    both = Limits(formats=("wav", "mp3"))
    assert encode_stimulus(clip, both).format == "wav"
    asked = encode_stimulus(clip, both, prefer="mp3")
    assert (asked.format, asked.media_type) == ("mp3", "audio/mpeg")
    assert asked.note == "encoded from wav; made lossy as asked (mp3)"
    assert len(asked.data) < len(clip.path.read_bytes()) / 2
    assert len(asked.data) <= estimate_bytes(clip, both, prefer="mp3")
    # Not a format the model takes: nothing lossy.
    assert encode_stimulus(clip, Limits(), prefer="mp3").format == "wav"


def test_large_blocks_can_be_given_back_where_the_c_library_knows_how() -> None:
    import platform
    import subprocess
    import sys

    # In a process of its own: it is a setting of the whole process.
    script = "from earwitness.models.payload_store import release_large_blocks as r; print(r())"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    known = platform.libc_ver()[0] == "glibc"
    assert done.stdout.strip() == str(known)
