"""What models cost: price tables as data with a date, estimates before a call and the cost after it.

A table is a YAML file: ``as_of`` and a list of ``prices``, each for the models its patterns match. The package ships
one (``models/prices.yaml``); a user's own goes before it. A price is taken only where the model's name and, if the
entry names one, its server match: a name served elsewhere is not the provider's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any

from earwitness.errors import DataError, UsageError
from earwitness.models.protocols import Prompt, Usage

CHARACTERS_A_TOKEN = 3.0
"""For estimates: English text has about four characters a token; three keeps them on the dear side."""
REPLY_TOKENS = 500
"""Tokens an answer is reckoned with where a price does not say."""
AUDIO_TOKENS_S = 25.0
"""The same for a second of audio. Services lie between 7 and 50."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in US dollars.

    ``input``, ``output``, ``audio_input``, ``cached_input`` (read from a prompt cache), ``cache_write`` and
    ``cache_write_1h`` (written to one, for minutes and for an hour) per million tokens; where they are None, tokens cost
    what ``input`` does, and those of an hour what ``cache_write`` does. ``audio_minute`` per minute of audio sent,
    ``call`` per call. ``batch`` is the part of all this that a batch job costs (0.5: half). ``audio_tokens_s`` and
    ``reply_tokens`` are what estimates reckon with. ``source`` and ``as_of`` say where it is from.
    """

    input: float = 0.0
    output: float = 0.0
    audio_minute: float = 0.0
    call: float = 0.0
    audio_input: float | None = None
    cached_input: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    batch: float = 1.0
    audio_tokens_s: float = AUDIO_TOKENS_S
    reply_tokens: int = REPLY_TOKENS
    source: str = field(default="", compare=False)
    as_of: str = field(default="", compare=False)

    @property
    def is_free(self) -> bool:
        """Whether nothing is charged at all."""
        return not any(
            (self.input, self.output, self.audio_minute, self.call, self.audio_input, self.cached_input,
             self.cache_write, self.cache_write_1h)
        )  # fmt: skip

    def batched(self) -> Price:
        """The price of the same in a batch job; the same price where no other is known.

        >>> Price(input=1.0, output=4.0, audio_minute=0.004, batch=0.5).batched()
        Price(input=0.5, output=2.0, audio_minute=0.002, call=0.0, audio_input=None, cached_input=None, \
cache_write=None, cache_write_1h=None, batch=1.0, audio_tokens_s=25.0, reply_tokens=500, source='', as_of='')
        """
        amounts = {
            name: amount * self.batch
            for name in _AMOUNTS
            if name not in _NO_AMOUNTS and (amount := getattr(self, name)) is not None
        }
        return replace(self, **amounts, batch=1.0)

    def of(self, usage: Usage, audio_seconds: float) -> float | None:
        """Cost of one reply; the provider's own figure wins where it gives one.

        Parameters
        ----------
        audio_seconds: of the audio that was sent.

        Returns
        -------
        None where tokens are charged and the service did not count them.

        >>> Price(input=2.5, audio_input=32.0, output=10.0).of(
        ...     Usage(input_tokens=1_100, output_tokens=10, audio_tokens=1_000), 100.0)
        0.03235
        >>> Price(input=4.0, output=0.0, cached_input=0.2, cache_write=5.0).of(
        ...     Usage(1_000, 0, cached_tokens=500, cache_written_tokens=100), 0.0)
        0.0022
        """
        if usage.cost_usd is not None:
            return usage.cost_usd
        fixed = audio_seconds / 60 * self.audio_minute + self.call
        if not (self.input or self.output or self.audio_input):
            return fixed
        total = usage.input_tokens
        if total is None or usage.output_tokens is None:
            return None
        audio = 0
        if self.audio_input is not None:
            told = usage.audio_tokens
            audio = round(audio_seconds * self.audio_tokens_s) if told is None else told
        audio = min(audio, total)
        cached = min(usage.cached_tokens or 0, total)
        written = min(usage.cache_written_tokens or 0, total - cached)
        hour = min(usage.cache_written_1h_tokens or 0, written)
        write = self.input if self.cache_write is None else self.cache_write
        apart = [
            (cached, self.input if self.cached_input is None else self.cached_input),
            (written - hour, write),
            (hour, write if self.cache_write_1h is None else self.cache_write_1h),
        ]
        # Tokens with a price of their own may be of audio: taken off the words first, which counts on the dear side.
        taken = sum(count for count, price in apart if price != self.input)
        words = total - audio
        audio -= max(taken - words, 0)
        words = max(words - taken, 0)
        cost = (
            words * self.input
            + audio * (self.audio_input or 0.0)
            + sum(count * price for count, price in apart if price != self.input)
            + usage.output_tokens * self.output
        )
        return cost / 1e6 + fixed

    def estimate(
        self, prompt: Prompt, audio_seconds: float, most_tokens: int | None = None
    ) -> float:
        """What a call will cost, rather too much than too little.

        Parameters
        ----------
        most_tokens: of an answer, where the model was told.
        """
        reply = self.reply_tokens if most_tokens is None else min(most_tokens, self.reply_tokens)
        audio = audio_seconds * self.audio_tokens_s
        audio_price = self.input if self.audio_input is None else self.audio_input
        # What is the same for every call may be written to a cache by this one.
        system = text_tokens(Prompt("", prompt.system)) * max(self.input, self.cache_write or 0.0)
        user = text_tokens(Prompt(prompt.user)) * self.input
        tokens = system + user + audio * audio_price + reply * self.output
        return tokens / 1e6 + audio_seconds / 60 * self.audio_minute + self.call


def text_tokens(prompt: Prompt) -> float:
    """About how many tokens the words of a prompt make; characters beyond ASCII count as one each."""
    text = prompt.user + (prompt.system or "")
    plain = len(text.encode("ascii", errors="ignore"))
    return plain / CHARACTERS_A_TOKEN + len(text) - plain


_AMOUNTS = (
    "input", "output", "audio_minute", "call", "audio_input", "cached_input", "cache_write", "cache_write_1h",
    "batch", "audio_tokens_s", "reply_tokens",
)  # fmt: skip
_NO_AMOUNTS = frozenset({"batch", "audio_tokens_s", "reply_tokens"})
"""Parts of a price that are no dollars."""


def parse_price(text: str) -> Price:
    """Read ``input=2.5,output=10,audio_minute=0.06,call=0``.

    Raises
    ------
    UsageError: an unknown part or something that is not a number.
    """
    values: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, number = part.partition("=")
        try:
            if name not in _AMOUNTS:
                raise ValueError(name)
            values[name] = _amount(number)
        except ValueError:
            raise UsageError(
                "--price", f"{part!r}", wanted=" or ".join(f"{name}=NUMBER" for name in _AMOUNTS)
            ) from None
    return _price(values, source="--price")


def _amount(value: Any) -> float:
    if isinstance(value, bool) or value is None:
        raise ValueError(value)
    number = float(value)
    if not 0 <= number < 1e9:
        raise ValueError(value)
    return number


def _price(values: Mapping[str, float], source: str, as_of: str = "") -> Price:
    known: dict[str, Any] = dict(values)
    if "reply_tokens" in known:
        known["reply_tokens"] = round(known["reply_tokens"])
    return Price(source=source, as_of=as_of, **known)


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """A price with the models it is of. ``first`` and ``last`` are the days it holds from and until."""

    models: tuple[str, ...]
    servers: tuple[str, ...]
    price: Price
    first: date | None = None
    last: date | None = None

    def fits(self, name: str, server: str, today: date) -> bool:
        """Whether it is the price of a model on a day."""
        return (
            any(fnmatchcase(name, pattern) for pattern in self.models)
            and (not self.servers or any(fnmatchcase(server, each) for each in self.servers))
            and (self.first is None or self.first <= today)
            and (self.last is None or today <= self.last)
        )


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Entries in the order in which they are tried."""

    entries: tuple[PriceEntry, ...]

    def price_of(
        self, name: str, settings: Mapping[str, Any], today: date | None = None
    ) -> Price | None:
        """The price of a model, None where no entry fits.

        Parameters
        ----------
        name: ``adapter/name``; a named model's settings hold the one behind it.
        settings: of the model; ``server`` is its address.
        today: None means this day in UTC.
        """
        day = today or datetime.now(UTC).date()
        server = f"{str(settings.get('server') or '').rstrip('/')}/"
        for full in (name, settings.get("model")):
            if not isinstance(full, str):
                continue
            for entry in self.entries:
                if entry.fits(full, server, day):
                    return entry.price
        return None


def load_prices(path: Path | None = None) -> PriceTable:
    """The table that ships, after the user's own if there is one.

    Raises
    ------
    DataError: the file cannot be read or is not a price table.

    >>> load_prices().price_of("baseline/majority", {}).is_free
    True
    """
    shipped = resources.files("earwitness.models") / "prices.yaml"
    entries = _read(shipped.read_text("utf-8"), "prices.yaml of the package")
    if path is None:
        return PriceTable(entries)
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(str(path), f"cannot be read ({error})", "a price table") from None
    return PriceTable(_read(text, str(path)) + entries)


_FORM = "as_of: DATE and prices: a list of {models: [PATTERN, ...], input: USD, output: USD, ...}"
_KEYS = frozenset({"models", "server", "source", "from", "until", *_AMOUNTS})


def _read(text: str, where: str) -> tuple[PriceEntry, ...]:
    import yaml

    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DataError(
            where, f"is no valid YAML ({' '.join(str(error).split())})", _FORM
        ) from None
    if not isinstance(data, dict) or not isinstance(data.get("prices"), list):
        raise DataError(where, "has no list of prices", _FORM)
    as_of = _day(data.get("as_of"), f"{where}: as_of")
    if as_of is None:
        raise DataError(where, "has no date", _FORM, "Write as_of: the day you read the prices.")
    return tuple(
        _entry(value, f"{where}: entry {number}", as_of)
        for number, value in enumerate(data["prices"], start=1)
    )


def _entry(value: Any, where: str, as_of: date) -> PriceEntry:
    if not isinstance(value, dict):
        raise DataError(where, f"is {value!r}", _FORM)
    unknown = sorted(str(key) for key in value if key not in _KEYS)
    if unknown:
        raise DataError(where, f"has the unknown key {unknown[0]!r}", ", ".join(sorted(_KEYS)))
    models, servers = _patterns(value.get("models")), _patterns(value.get("server"))
    if not models:
        raise DataError(where, "names no models", _FORM)
    amounts = {}
    for name in _AMOUNTS:
        if name in value:
            try:
                amounts[name] = _amount(value[name])
            except (ValueError, TypeError):
                raise DataError(
                    where, f"{name}: {value[name]!r}", "US dollars, not negative"
                ) from None
    if not amounts.keys() - _NO_AMOUNTS:
        raise DataError(where, "has no price", _FORM)
    price = _price(amounts, source=str(value.get("source") or where), as_of=as_of.isoformat())
    first, last = (
        _day(value.get("from"), f"{where}: from"),
        _day(value.get("until"), f"{where}: until"),
    )
    return PriceEntry(models, servers, price, first, last)


def _patterns(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(str(each) for each in (value if isinstance(value, list) else [value]))


def _day(value: Any, where: str) -> date | None:
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise DataError(where, f"is {value!r}", "a date such as 2026-11-29") from None


def most_tokens(settings: Mapping[str, Any]) -> int | None:
    """The bound on an answer's tokens among a model's settings, None where it has none."""
    found: Sequence[Any] = [
        settings.get(name) for name in ("max_completion_tokens", "max_output_tokens", "max_tokens")
    ]
    return next((v for v in found if isinstance(v, int) and not isinstance(v, bool)), None)
