"""Hostile files, each opened by the public command or function under a watchdog.

A file fails if its payload runs, if opening it ends with a traceback, by a signal or with an exit code
other than 0 and 2, or if it takes more than 60 s or 4 GiB. On a busy machine, seconds are divided by the
load of its cores. Seeds go through all files, a file each, and through the doors in turn.
"""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from fuzz.fuzzer import Tally
from fuzz.hostile import archives, folders, models, protocols, sources
from fuzz.hostile.case import Maker
from fuzz.hostile.watchdog import BYTES, SECONDS, Ending
from fuzz.hostile.watchdog import run as watched
from irgym.measure.machine import cache_dir

DOORS = (
    ("onnx", models.CASES),
    ("pt2", archives.CASES),
    ("source", sources.CASES),
    ("folder", folders.CASES),
    ("protocol", protocols.CASES),
)
"""Kinds of files, each with its files."""

CASES: Mapping[str, Maker] = {f"{door}/{name}": cases[name] for door, cases in DOORS for name in cases}
"""Every hostile file, by kind and name."""

ORDER = [
    name
    for names in zip_longest(*([f"{door}/{name}" for name in cases] for door, cases in DOORS))
    for name in names
    if name
]
"""Names of all files, of every kind in turn."""


@dataclass(frozen=True)
class Verdict:
    """Verdict on opening a file.

    Attributes:
        ending: How the command ended.
        faults: Descriptions of the faults; empty if there are none.
    """

    ending: Ending
    faults: tuple[str, ...]


def opened(maker: Maker) -> Verdict:
    """Make a file in a temporary folder, open it, and judge how the command ended."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        folder = Path(name)
        canary = folder / "canary"
        place = folder / "work"
        place.mkdir()
        opening = maker(place, f"touch {canary}")
        cache = folder / "cache"
        _share_engine(cache)
        environment = {"IRGYM_CACHE_DIR": str(cache), **opening.environment}
        ending = watched(opening.command, environment, folder)
        expected = (2,) if opening.refused else (0, 2)
        judged = {
            "the payload ran": canary.exists(),
            "traceback": "Traceback (most recent call last)" in ending.said,
            f"exit code {ending.code}": ending.code not in expected,
            "too slow": ending.quiet_seconds > SECONDS,
            "too much memory": ending.peak > BYTES,
            "no message": ending.code == 2 and not re.search(r"^irgym: |error: ", ending.said, re.MULTILINE),
        }
        return Verdict(ending, tuple(fault for fault, holds in judged.items() if holds))


def _share_engine(cache: Path) -> None:
    """Link this machine's engine of hlo into a new cache folder: building it takes a minute."""
    built = cache_dir() / "hlo" / "engine"
    if built.is_dir():
        (cache / "hlo").mkdir(parents=True)
        (cache / "hlo" / "engine").symlink_to(built)


def run(seed: int) -> Tally:
    """Open a file."""
    tally = Tally()
    name = ORDER[seed % len(ORDER)]
    verdict = opened(CASES[name])
    ending, faults = verdict.ending, "; ".join(verdict.faults)
    resources = f"{ending.seconds:.1f} s at load {ending.load:.1f}, {ending.peak / (1 << 30):.2f} GiB"
    last = " ".join(ending.said.split())[-400:]
    tally.add(f"exit code {ending.code}", faults and f"{name}: {faults} ({resources}): {last}")
    return tally
