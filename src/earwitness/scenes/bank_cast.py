"""A bank as far as a cast of voices can render it.

Writers, rules and prompts of a corpus that was planned for a cast are given this bank, so that no dialogue rests
on a delivery tag nobody can perform. What a reader is told is heard of a tag comes from the whole bank.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from earwitness.scenes.bank import Bank, load_bank


def renderable(bank: Bank, tags: Collection[str]) -> tuple[str, ...]:
    """Ids of the delivery tags that voices with these tags perform, sorted.

    Pauses are silence, which every voice can keep, whether it lists them or not.
    """
    return tuple(tag.id for tag in bank.tags if tag.id in tags or tag.renders == "pause")


def bank_for(bank: Bank, tags: Collection[str] | None) -> Bank:
    """The bank with no other delivery tags than these and pauses, in registers neither.

    A register that needs a tag and is left without one keeps the move and has no tags; no plan for the cast
    draws it.

    Parameters
    ----------
    tags: ids that the voices render; None means all, and the bank as it is.

    Examples
    --------
    >>> bank = bank_for(load_bank(), {"gasp"})
    >>> [tag.id for tag in bank.tags]
    ['gasp', 'long_pause', 'pause']
    >>> {register.tags for register in bank.registers}
    {(), ('gasp',)}
    """
    if tags is None:
        return bank
    kept = renderable(bank, tags)
    if len(kept) == len(bank.tags):
        return bank
    records = tuple(tag for tag in bank.tags if tag.id in kept)
    registers = tuple(
        register.model_copy(update={"tags": tuple(tag for tag in register.tags if tag in kept)})
        for register in bank.registers
    )
    index = {
        **bank._index,
        "tag": {tag.id: tag for tag in records},
        "register": {register.id: register for register in registers},
    }
    digest = hashlib.sha256("\n".join([bank.hash, *kept]).encode()).hexdigest()
    return replace(bank, hash=digest, tags=records, registers=registers, _index=index)


@lru_cache(maxsize=2)
def bank_in(folder: Path | None, tags: tuple[str, ...]) -> Bank:
    """Load a bank for a cast, once a process: what a worker needs of the bank its parent has.

    Parameters
    ----------
    tags: ids of every delivery tag of the parent's bank.
    """
    return bank_for(load_bank(folder), tags)


def tag_ids(bank: Bank) -> tuple[str, ...]:
    """Ids of the bank's delivery tags, to load the same bank elsewhere with :func:`bank_in`."""
    return tuple(tag.id for tag in bank.tags)
