"""Takes from Freesound: search for every sound of a bank, keep what a licence filter allows, record every credit.

API: freesound.org/docs/api (APIv2). A key authenticates searches (``Authorization: Token``) and gives previews, which
are Ogg Vorbis or MP3 of about 192 and 128 kbit/s; originals need an OAuth2 access token (``Authorization: Bearer``).
The service allows 60 requests a minute and 2,000 a day and answers 429 beyond that.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from earwitness.audio.files import atomic_write_bytes, atomic_write_text
from earwitness.errors import DataError, UsageError
from earwitness.runs.jsonlines import JsonLines
from earwitness.scenes.bank import Bank
from earwitness.scenes.sound_sources import Listing, Recording, licence_name

if TYPE_CHECKING:
    import httpx

BASE_URL = "https://freesound.org/apiv2"
KEY_VARIABLE = "FREESOUND_API_KEY"
TOKEN_VARIABLE = "FREESOUND_ACCESS_TOKEN"
FIELDS = "id,name,username,license,duration,type,previews,url,md5,pack"
PER_MINUTE = 60
PAGE_SIZE = 150
RETRIES = 5
LONGEST_WAIT_S = 120.0

Allow = Literal["cc0", "by", "any"]
ALLOWED: Mapping[Allow, tuple[str, ...]] = {
    "cc0": ("Creative Commons 0",),
    "by": ("Creative Commons 0", "Attribution"),
    "any": ("Creative Commons 0", "Attribution", "Attribution NonCommercial"),
}
"""Licence filters: what the service calls the licences, and how each is recognised in a result."""

_PREFIX: Mapping[Allow, tuple[str, ...]] = {
    "cc0": ("CC0",),
    "by": ("CC0", "CC BY "),
    "any": ("CC0", "CC BY ", "CC BY-NC "),
}


@dataclass(frozen=True, slots=True)
class FreesoundSettings:
    """What to fetch.

    Attributes
    ----------
    per_sound, per_ambience: how many recordings of each.
    allow: ``cc0``; ``by``, which needs credit; ``any``, also non-commercial ones.
    originals: fetch what was uploaded; needs an access token.
    per_minute: requests.
    """

    per_sound: int = 30
    per_ambience: int = 30
    allow: Allow = "cc0"
    originals: bool = False
    base_url: str = BASE_URL
    per_minute: int = PER_MINUTE


@dataclass(slots=True)
class Fetched:
    """What is in the folder now. ``short`` are sounds the service had too few of."""

    folder: Path
    downloaded: int = 0
    kept: int = 0
    short: dict[str, int] = field(default_factory=dict)


class Freesound:
    """A polite client: paced, patient, never showing its key."""

    def __init__(
        self, settings: FreesoundSettings, key: str, token: str = "",
        sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        import httpx

        if not key and not token:
            raise UsageError(
                "sounds fetch freesound", f"no API key in {KEY_VARIABLE}", "a key",
                "Get one at freesound.org/apiv2/apply and export it.",
            )  # fmt: skip
        if settings.originals and not token:
            raise UsageError(
                "--originals", f"no OAuth2 access token in {TOKEN_VARIABLE}", "a token",
                "See freesound.org/docs/api/authentication.html, or take the previews.",
            )  # fmt: skip
        self.settings = settings
        self._auth = f"Bearer {token}" if token else f"Token {key}"
        self._secrets = tuple(secret for secret in (key, token) if secret)
        self._sleep, self._clock = sleep, clock
        self._next = 0.0
        self._client: httpx.Client = httpx.Client(timeout=60, follow_redirects=True)

    def __enter__(self) -> Freesound:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def search(self, query: str, seconds: tuple[float, float]) -> Iterator[Mapping[str, Any]]:
        """Yield results, most relevant first, over all pages."""
        names = " OR ".join(f'"{name}"' for name in ALLOWED[self.settings.allow])
        params: Mapping[str, str] | None = {
            "query": query,
            "filter": f"license:({names}) duration:[{seconds[0]:g} TO {seconds[1]:g}]",
            "fields": FIELDS,
            "page_size": str(PAGE_SIZE),
            "group_by_pack": "1",
        }
        url = f"{self.settings.base_url}/search/"
        while url:
            reply = self._get(url, params, where=f"search for {query!r}").content
            try:
                page = json.loads(reply)
                yield from page["results"]
                following = page.get("next")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DataError(f"search for {query!r}", "an answer that is no list of sounds", "JSON with results") from error  # fmt: skip
            if following and not self._ours(following):
                raise DataError(f"search for {query!r}", f"the next page is at {urlsplit(following).netloc}", "the same service")  # fmt: skip
            url, params = following or "", None

    def download(self, sound: Mapping[str, Any]) -> tuple[bytes, str]:
        """The bytes of a sound and their suffix: the original, or the better preview."""
        identifier = sound["id"]
        if self.settings.originals:
            url = f"{self.settings.base_url}/sounds/{identifier}/download/"
            return self._get(url, None, where=f"sound {identifier}").content, f".{sound['type']}"
        previews = sound.get("previews") or {}
        for name, suffix in (("preview-hq-ogg", ".ogg"), ("preview-hq-mp3", ".mp3")):
            if previews.get(name):
                return self._get(
                    previews[name], None, where=f"preview of {identifier}"
                ).content, suffix
        raise DataError(f"sound {identifier}", "no preview", "preview-hq-ogg or preview-hq-mp3")

    def _ours(self, url: str) -> bool:
        a, b = urlsplit(url), urlsplit(self.settings.base_url)
        return (a.scheme, a.netloc) == (b.scheme, b.netloc)

    def _get(self, url: str, params: Mapping[str, str] | None, *, where: str) -> httpx.Response:
        import httpx

        # Previews lie on another host, which has no business with the key.
        headers = {"Authorization": self._auth} if self._ours(url) else {}
        trouble = ""
        for attempt in range(RETRIES):
            self._pace()
            try:
                reply = self._client.get(url, params=params, headers=headers)
            except httpx.HTTPError as error:
                trouble = type(error).__name__
                self._sleep(min(LONGEST_WAIT_S, 2.0**attempt))
                continue
            if reply.status_code == 200:
                return reply
            trouble = self._said(reply)
            if reply.status_code == 429:
                self._wait_for_quota(reply, where, attempt)
            elif reply.status_code >= 500:
                self._sleep(min(LONGEST_WAIT_S, 2.0**attempt))
            else:
                break
        step = (
            "Check the key."
            if " 401" in trouble or " 403" in trouble
            else "Run the same command again: what is there is kept."
        )
        raise DataError(where, trouble, "an answer of freesound.org", step)

    def _pace(self) -> None:
        now = self._clock()
        if now < self._next:
            self._sleep(self._next - now)
        self._next = max(now, self._next) + 60.0 / self.settings.per_minute

    def _wait_for_quota(self, reply: httpx.Response, where: str, attempt: int) -> None:
        from earwitness.models.patience import parse_retry_after

        wait = parse_retry_after(dict(reply.headers))
        if wait is None:
            wait = min(LONGEST_WAIT_S, 15.0 * 2**attempt)
        if wait > LONGEST_WAIT_S or "day" in self._said(reply):
            raise DataError(
                where, self._said(reply), "requests left for today",
                "Run the same command again tomorrow: what is there is kept.",
            )  # fmt: skip
        self._sleep(wait)

    def _said(self, reply: httpx.Response) -> str:
        try:
            detail = json.loads(reply.content).get("detail", "")
        except (ValueError, AttributeError):
            detail = ""
        text = f"status {reply.status_code}" + (f" ({str(detail)[:200]})" if detail else "")
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def load_queries(bank: Bank, path: Path | None = None) -> dict[tuple[str, str], str]:
    """What to search for: (``sounds`` or ``ambiences``, id) -> query.

    Without a file, sounds are searched by their display name and ambiences by the location's name; a file
    ``{sounds: {id: query}, ambiences: {id: query}}`` overrides any of them.

    Raises
    ------
    DataError: the file names what the bank does not have.
    """
    import yaml

    made = {("sounds", s.id): _words(s.name) for s in bank.sounds}
    made |= {("ambiences", x.id): f"{_words(x.name)} ambience" for x in bank.locations}
    if path is None:
        return made
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise DataError(str(path), "cannot be read as YAML", "sounds: {id: query}") from error
    for part, queries in (value or {}).items():
        for of, query in (queries or {}).items():
            if (part, of) not in made:
                raise DataError(str(path), f"{part}.{of}", "a sound or location of the bank")
            made[part, of] = str(query)
    return made


def _words(name: str) -> str:
    words = name.split()
    return " ".join(words[1:] if words and words[0].lower() in ("a", "an", "the") else words)


def fetch_freesound(
    folder: Path,
    bank: Bank,
    client: Freesound,
    *,
    sounds: Sequence[str] = (),
    ambiences: Sequence[str] = (),
    queries: Mapping[tuple[str, str], str] | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Fetched:
    """Download recordings into ``folder/<sounds|ambiences>/<id>/`` with a line of ``downloads.jsonl`` for each.

    A run that was stopped goes on: what is there is neither searched for nor fetched again. ``ATTRIBUTION.md`` is
    written anew at the end. Import with :func:`downloads_listing`.

    Parameters
    ----------
    sounds, ambiences: only these; with neither, all of the bank.
    """
    queries = queries or load_queries(bank)
    everything = not sounds and not ambiences
    wanted = [("sounds", s.id) for s in bank.sounds if everything or s.id in sounds]
    wanted += [("ambiences", x.id) for x in bank.locations if everything or x.id in ambiences]
    ranges = {s.id: s.duration_s for s in bank.sounds}
    fetched = Fetched(folder)
    lines: list[Mapping[str, Any]] = []
    folder.mkdir(parents=True, exist_ok=True)
    with JsonLines(
        folder / "downloads.jsonl", keys=("id", "path", "part", "of"), entry="a download",
        note=lambda line, _: lines.append(dict(line)),
    ) as log:  # fmt: skip
        fetched.kept = len(lines)
        for number, (part, of) in enumerate(wanted):
            if on_progress:
                on_progress(of, number, len(wanted))
            most = client.settings.per_sound if part == "sounds" else client.settings.per_ambience
            have = [line for line in lines if (line["part"], line["of"]) == (part, of)]
            seconds = (
                (ranges[of][0] * 0.8, ranges[of][1] * 2) if part == "sounds" else (20.0, 300.0)
            )
            seen = {line["id"] for line in lines}
            missing = most - len(have)
            if missing > 0:
                missing = _fill(client, folder, log, part, of, queries[part, of], seconds, seen, missing, fetched)  # fmt: skip
            if missing > 0:
                fetched.short[of] = most - missing
    atomic_write_text(folder / "ATTRIBUTION.md", attribution_text(lines))
    return fetched


def _fill(
    client: Freesound, folder: Path, log: JsonLines, part: str, of: str, query: str,
    seconds: tuple[float, float], seen: set[int], missing: int, fetched: Fetched,
) -> int:  # fmt: skip
    for sound in client.search(query, seconds):
        if missing <= 0:
            break
        licence = licence_name(str(sound.get("license", "")))
        # The filter is only asked for; what comes back is what counts.
        if sound["id"] in seen or not licence.startswith(_PREFIX[client.settings.allow]):
            continue
        data, suffix = client.download(sound)
        path = f"{part}/{of}/freesound-{sound['id']}{suffix}"
        atomic_write_bytes(folder / path, data)
        seen.add(sound["id"])
        log.append(
            {
                "id": sound["id"], "path": path, "part": part, "of": of, "name": sound.get("name", ""),
                "author": sound.get("username", ""), "licence": licence,
                "url": sound.get("url") or f"https://freesound.org/s/{sound['id']}/",
                "lossy": not client.settings.originals, "pack": sound.get("pack") or "",
            }
        )  # fmt: skip
        fetched.downloaded += 1
        missing -= 1
    return missing


def credit(line: Mapping[str, Any]) -> str:
    """The credit a licence asks for: title, author, source, licence."""
    return f'"{line["name"]}" by {line["author"]} ({line["url"]}), {line["licence"]}'


def attribution_text(lines: Sequence[Mapping[str, Any]]) -> str:
    """The attribution file: every recording by sound, sorted."""
    counts = Counter(line["licence"] for line in lines)
    head = "# Recordings from freesound.org\n\n" + "".join(f"- {n} under {name}\n" for name, n in sorted(counts.items()))  # fmt: skip
    parts = []
    for part, of in sorted({(line["part"], line["of"]) for line in lines}):
        chosen = sorted(
            (x for x in lines if (x["part"], x["of"]) == (part, of)), key=lambda x: x["id"]
        )
        parts.append(f"\n## {of}\n\n" + "".join(f"- {credit(line)}\n" for line in chosen))
    return head + "".join(parts)


def downloads_listing(folder: Path) -> Listing:
    """The recordings of a download folder, for :func:`earwitness.scenes.sound_import.import_sounds`.

    Raises
    ------
    DataError: no ``downloads.jsonl`` there, or a file is missing.
    """
    from earwitness.runs.jsonlines import read_lines

    made = []
    for number, line in read_lines(folder / "downloads.jsonl", entry="a download"):
        path = folder / line["path"]
        if not path.is_file():
            raise DataError(
                f"{folder / 'downloads.jsonl'}:{number}",
                f"{line['path']} is missing",
                "every download",
            )
        kind = "sound" if line["part"] == "sounds" else "ambience"
        pack = f"freesound-pack:{line['pack']}" if line.get("pack") else f"freesound:{line['id']}"
        made.append(
            Recording(
                path, (f"{kind}:{line['of']}",),
                source=line["url"] + (" (lossy preview)" if line.get("lossy") else ""),
                licence=line["licence"],
                attribution="" if line["licence"].startswith("CC0") else credit(line),
                author=line["author"], group=pack, kind=kind,
            )
        )  # fmt: skip
    return Listing(made)
