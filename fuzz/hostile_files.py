"""Hostile files, each opened by the public command or function under a watchdog.

python fuzz/hostile_files.py [--only TEXT] [--count N] [--seconds S] [--list]

Prints for each file the exit code, seconds, peak memory, and whether its payload ran; then the totals. A file
fails if its payload runs, if opening it ends with a traceback, by a signal or with an exit code other than 0
and 2, or if it takes more than 60 s or 4 GiB. On a busy machine, seconds are divided by the load of its
cores. Exits with 1 if any file failed.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hostile import archives, folders, models, protocols, sources
from hostile.case import Maker
from hostile.watchdog import BYTES, SECONDS, Ending, run

from irgym.measure.machine import cache_dir

CASES: Mapping[str, Maker] = {
    f"{group}/{name}": maker
    for group, cases in (
        ("onnx", models.CASES),
        ("pt2", archives.CASES),
        ("source", sources.CASES),
        ("folder", folders.CASES),
        ("protocol", protocols.CASES),
    )
    for name, maker in cases.items()
}
"""Every hostile file, by group and name."""


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
        ending = run(opening.command, environment, folder)
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


def main() -> int:
    """Open the files that the command line chooses, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="open files whose names hold this text")
    parser.add_argument("--count", type=int, default=len(CASES), help="greatest number of files to open")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="seconds after which to open no further file"
    )
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--show", action="store_true", help="print the last output of each command")
    chosen = parser.parse_args()
    names = [name for name in CASES if chosen.only in name][: chosen.count]
    if chosen.list:
        print("\n".join(names))
        return 0
    begun = time.monotonic()
    verdicts: dict[str, Verdict] = {}
    for name in names:
        if time.monotonic() - begun > chosen.seconds:
            break
        verdict = verdicts[name] = opened(CASES[name])
        ending, faults = verdict.ending, "; ".join(verdict.faults)
        print(
            f"{name:44} exit {ending.code:3}  {ending.seconds:5.1f} s at load {ending.load:4.1f}"
            f"  {ending.peak / (1 << 30):5.2f} GiB"
            f"  payload {'RAN' if 'the payload ran' in faults else 'idle'}  {faults or 'ok'}",
            flush=True,
        )
        if chosen.show or verdict.faults:
            print("    " + " ".join(ending.said.split())[-400:], flush=True)
    return _summary(verdicts)


def _summary(verdicts: Mapping[str, Verdict]) -> int:
    faults = [fault for verdict in verdicts.values() for fault in verdict.faults]
    failed = [name for name, verdict in verdicts.items() if verdict.faults]
    endings = [verdict.ending for verdict in verdicts.values()]
    print(
        f"{len(verdicts)} files: {faults.count('the payload ran')} payloads ran, {faults.count('traceback')} "
        f"tracebacks, {faults.count('too slow')} over {SECONDS:g} s, {faults.count('too much memory')} over "
        f"{BYTES >> 30} GiB, {len(failed)} failed"
    )
    if endings:
        slowest = max(ending.quiet_seconds for ending in endings)
        largest = max(ending.peak for ending in endings) / (1 << 30)
        print(f"slowest {slowest:.1f} s at load 1, most memory {largest:.2f} GiB")
    if failed:
        print("failed: " + ", ".join(failed))
    return 1 if failed or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
