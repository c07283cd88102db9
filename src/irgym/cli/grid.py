"""Combinations of settings for sweeps: `lr=1e-4,3e-4 seed=0:5`."""

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from irgym.base.errors import IrgymError
from irgym.cli.configuration import given_in, options_of, value_of, with_settings
from irgym.cli.train import Train

MOST = 1000
"""Most runs of a sweep."""


def taken_out(swept: Sequence[str], words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the swept settings, also those that stand after the command, and the command without them."""
    found, kept = list(swept), list[str]()
    place = 0
    while place < len(words):
        if words[place] == "--sweep":
            place += 1
            while place < len(words) and "=" in words[place] and not words[place].startswith("--"):
                found.append(words[place])
                place += 1
        else:
            kept.append(words[place])
            place += 1
    return found, kept


def combinations(swept: Sequence[str]) -> list[dict[str, str]]:
    """Return all combinations of swept values, by name.

    Args:
        swept: Texts such as lr=1e-4,3e-4 and seed=0:5.

    Raises:
        IrgymError: There are none, one is malformed or given twice, or there are too many.
    """
    values: dict[str, list[str]] = {}
    for text in swept:
        name, equals, listed = text.partition("=")
        if not equals or not re.fullmatch(r"\w+", name) or name in values:
            raise IrgymError(f"--sweep {text!r} is no name=value,value, or a name given twice: correct it")
        values[name] = _values(text, listed)
    if not values:
        raise IrgymError("there is nothing to sweep: give --sweep name=value,value")
    count = 1
    for listed in values.values():
        count *= len(listed)
    if count > MOST:
        raise IrgymError(f"that would be {count} runs: sweep fewer values, at most {MOST} runs")
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def _values(text: str, listed: str) -> list[str]:
    """Return the values of a setting.

    Raises:
        IrgymError: There are none.
    """
    bounds = re.fullmatch(r"(-?\d+):(-?\d+)(?::(\d+))?", listed)
    if bounds:
        low, high, step = int(bounds[1]), int(bounds[2]), int(bounds[3] or 1)
        found = [str(value) for value in range(low, high, step)[: MOST + 1]] if step else []
    else:
        found = listed.split(",")
    if not found or not all(found) or len(set(found)) < len(found):
        remedy = "write name=value,value or name=LOW:HIGH"
        raise IrgymError(f"--sweep {text!r} has no values, or one of them twice: {remedy}")
    return found


def words_of(words: Sequence[str], values: Mapping[str, str], parent: Path) -> list[str]:
    """Return the command of a run.

    Raises:
        IrgymError: A swept setting is given beside the sweep.
    """
    flags = {option.name: option.flag for option in options_of(Train)}
    settings = {name: value for name, value in values.items() if name not in flags}
    given = given_in(words)
    if value_of(words, "set") is not None:
        given = given | {word.partition("=")[0] for word in words if "=" in word}
    twice = sorted(given & values.keys())
    if twice:
        raise IrgymError(f"{', '.join(twice)} is swept and given: leave one out")
    place = next((at for at, word in enumerate(words) if word.partition("=")[0] == "--run"), len(words))
    without = [*words[:place], *words[place + (1 if place < len(words) and "=" in words[place] else 2) :]]
    own = [f"{flags[name]}={value}" for name, value in values.items() if name in flags]
    return [*with_settings(without, settings), *own, f"--run={parent / name_of(values)}"]


def name_of(values: Mapping[str, str]) -> str:
    """Return the name of a run's folder."""
    return ",".join(f"{name}={re.sub(r'[^-+.:@=A-Za-z0-9]', '_', value)}" for name, value in values.items())


def setting_of(values: Mapping[str, str]) -> str:
    """Return the values of a run without its seed, as text."""
    return " ".join(f"{name}={value}" for name, value in values.items() if name != "seed")
