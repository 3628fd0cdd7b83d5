"""Price tables: matched by name and server, valid for days, read with clear refusals, never guessed."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from earwitness.errors import DataError, UsageError
from earwitness.models.pace import Pace, pace_of, split_pace
from earwitness.models.prices import Price, load_prices, most_tokens, parse_price, text_tokens
from earwitness.models.protocols import Prompt, Usage
from earwitness.models.registry import open_model, open_text_model

OPENAI = {"server": "https://api.openai.com/v1"}
TODAY = date(2026, 11, 29)


def test_the_provider_s_price_is_taken_for_its_own_server_only() -> None:
    table = load_prices()
    price = table.price_of("openai/gpt-audio", OPENAI, TODAY)
    assert price is not None
    assert (price.input, price.output, price.audio_input) == (2.5, 10, 32)
    assert price.as_of == "2026-11-29"
    assert price.source.startswith("https://developers.openai.com/")
    for server in ("http://localhost:8000/v1", "https://api.openai.com.example.org/v1", "lab"):
        assert table.price_of("openai/gpt-audio", {"server": server}, TODAY) is None
    assert table.price_of("openai/gpt-unheard-of", OPENAI, TODAY) is None


def test_an_entry_of_a_models_file_has_the_price_of_what_is_behind_it() -> None:
    settings = {"model": "openai/gpt-audio", **OPENAI}
    assert load_prices().price_of("my-name", settings, TODAY) is not None


def test_a_price_holds_for_its_days() -> None:
    table = load_prices()
    settings = {"server": "https://generativelanguage.googleapis.com/v1beta"}
    now, later = (
        table.price_of("google/gemini-3.8-flash", settings, day)
        for day in (date(2026, 12, 31), date(2027, 1, 1))
    )
    assert now is not None
    assert later is not None
    assert (now.input, later.input) == (0.75, 1.5)


def test_every_model_of_the_table_that_ships_can_be_opened_and_has_its_price(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, "k")
    table = load_prices()
    seen = set()
    for entry in table.entries:
        for pattern in entry.models:
            if pattern.endswith("/*"):
                continue
            name = pattern.replace("*", "")
            model = open_model(name)
            price = table.price_of(model.name, model.settings, entry.first or TODAY)
            assert price == entry.price, name
            seen.add(name.split("/")[0])
    assert seen == {"openai", "openai-realtime", "google", "mistral", "anthropic"}


def test_a_table_of_one_s_own_goes_before_the_one_that_ships(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(
        "as_of: 2026-10-01\nprices:\n"
        "- {models: openai/gpt-audio, input: 1, output: 2}\n"
        "- {models: [openai/lab-*], server: http://localhost*, audio_minute: 0.01, call: 0.001}\n"
    )
    table = load_prices(path)
    assert table.price_of("openai/gpt-audio", OPENAI) == Price(input=1, output=2)
    lab = table.price_of("openai/lab-3", {"server": "http://localhost:8000/v1"})
    assert lab is not None
    assert lab.of(Usage(), 120.0) == pytest.approx(0.021)
    assert lab.as_of == "2026-10-01"
    assert table.price_of("baseline/majority", {}) == Price()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prices: []", "has no date"),
        ("as_of: yesterday\nprices: []", "as_of: is 'yesterday'"),
        ("[]", "has no list of prices"),
        ("as_of: 2026-01-01\nprices: [{input: 1}]", "entry 1: names no models"),
        ("as_of: 2026-01-01\nprices: [{models: a}]", "entry 1: has no price"),
        ("as_of: 2026-01-01\nprices: [{models: a, inptu: 1}]", "has the unknown key 'inptu'"),
        ("as_of: 2026-01-01\nprices: [{models: a, input: cheap}]", "input: 'cheap'"),
        ("as_of: 2026-01-01\nprices: [{models: a, input: -1}]", "input: -1"),
        ("as_of: 2026-01-01\nprices: [7]", "entry 1: is 7"),
        ("{", "is no valid YAML"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        load_prices(path)
    assert said in str(caught.value)
    with pytest.raises(DataError, match="cannot be read"):
        load_prices(tmp_path / "gone.yaml")


def test_audio_and_cached_tokens_are_priced_apart() -> None:
    price = Price(input=1.0, output=10.0, audio_input=30.0, cached_input=0.1, audio_tokens_s=10.0)
    usage = Usage(input_tokens=1_300, output_tokens=20, audio_tokens=1_000, cached_tokens=100)
    # 200 words, 100 of them cached (200 + 100 = 300 words in all), 1000 of audio, 20 out
    assert price.of(usage, 100.0) == pytest.approx((200 + 30_000 + 10 + 200) / 1e6)
    # A service that does not count audio apart: by its length.
    plain = Usage(input_tokens=1_300, output_tokens=0)
    assert price.of(plain, 100.0) == pytest.approx((300 + 30_000) / 1e6)
    # More cached than words: the rest is of audio.
    cached = Usage(input_tokens=1_300, output_tokens=0, audio_tokens=1_000, cached_tokens=800)
    assert price.of(cached, 100.0) == pytest.approx((500 * 30 + 800 * 0.1) / 1e6)


def test_tokens_nobody_counted_have_no_price() -> None:
    assert Price(input=1.0).of(Usage(), 10.0) is None
    assert Price(input=1.0).of(Usage(cost_usd=0.5), 10.0) == 0.5
    assert Price(call=0.25).of(Usage(), 10.0) == 0.25
    assert Price().of(Usage(), 10.0) == 0.0


def test_an_estimate_is_rather_too_much() -> None:
    price = Price(input=1.0, output=10.0, audio_input=30.0, audio_tokens_s=10.0, reply_tokens=100)
    prompt = Prompt("x" * 300, system="y" * 30)
    assert price.estimate(prompt, 60.0) == pytest.approx((110 + 18_000 + 1_000) / 1e6)
    assert price.estimate(prompt, 60.0, 10) == pytest.approx((110 + 18_000 + 100) / 1e6)
    assert text_tokens(Prompt("情感")) == 2.0
    assert most_tokens({"max_tokens": 7, "max_completion_tokens": None}) == 7
    assert most_tokens({"max_tokens": True}) is None


def test_a_price_on_the_command_line() -> None:
    price = parse_price("input=1,audio_input=30,audio_tokens_s=10,reply_tokens=50")
    assert (price.audio_input, price.reply_tokens) == (30.0, 50)
    for wrong in ("input=-1", "input=nan", "input=", "=1", "input=inf"):
        with pytest.raises(UsageError, match="--price"):
            parse_price(wrong)


def test_rate_limits_are_options_of_any_model_and_change_no_key(tmp_path: Path) -> None:
    plain = open_model("baseline/uniform", {"seed": "7"})
    paced = open_model("baseline/uniform", {"seed": "7", "requests_per_minute": "30"})
    assert pace_of(plain) == Pace()
    assert pace_of(paced) == Pace(30.0)
    assert (paced.name, paced.settings) == (plain.name, plain.settings)
    path = tmp_path / "models.yaml"
    path.write_text(
        "lab:\n  model: openai/m\n  options:\n    base_url: http://127.0.0.1:1/v1\n"
        "    tokens_per_minute: 90000\n    audio_seconds_per_minute: 600\n"
    )
    named = open_model("lab", models_file=path)
    assert pace_of(named) == Pace(None, 90_000.0, 600.0)
    assert named.settings["model"] == "openai/m"
    assert pace_of(open_text_model("lab", models_file=path)) == Pace(None, 90_000.0, 600.0)
    with pytest.raises(UsageError, match="requests_per_minute='fast'"):
        split_pace("m", {"requests_per_minute": "fast"})
    with pytest.raises(UsageError, match="at least"):
        split_pace("m", {"requests_per_minute": "0"})


def test_batch_jobs_have_a_price_of_their_own(tmp_path: Path) -> None:
    table = load_prices()
    google = {"server": "https://generativelanguage.googleapis.com/v1beta"}
    mistral = {"server": "https://api.mistral.ai/v1"}
    for name, settings in (
        ("google/gemini-3.5-flash", google),
        ("mistral/voxtral-small-latest", mistral),
    ):
        price = table.price_of(name, settings)
        assert price is not None
        batched = price.batched()
        assert batched.input == price.input / 2
        assert batched.output == price.output / 2
        assert batched.audio_minute == price.audio_minute / 2
        assert (batched.audio_tokens_s, batched.reply_tokens) == (
            price.audio_tokens_s, price.reply_tokens,
        )  # fmt: skip
        assert (batched.source, batched.as_of) == (price.source, price.as_of)
        assert batched.batched() == batched
    # Where nobody says what a batch costs, it is reckoned with the full price.
    assert parse_price("input=1,output=2").batched() == parse_price("input=1,output=2")
    assert parse_price("input=1,output=2,batch=0.25").batched().output == 0.5
    path = tmp_path / "prices.yaml"
    path.write_text("as_of: 2026-11-30\nprices: [{models: m, batch: 0.5}]\n")
    with pytest.raises(DataError, match="has no price"):
        load_prices(path)
