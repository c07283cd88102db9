"""Run fuzzers: they look for wrong results, crashes and planted faults that checks accept.

    python fuzz/run.py                      all in turn, until Ctrl-C
    python fuzz/run.py graph cse/flags      those of a folder, and another
    python fuzz/run.py --seconds 600 --workers 2
    python fuzz/run.py graph/rules --first 12 --seeds 1

Prints a line for each finding with the command that repeats it, and a summary at the end. Exits with 1 if
anything was found.
"""

import argparse
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])
try:
    import irgym  # noqa: F401
except ModuleNotFoundError as missing:
    print(
        f"{missing.name} is not installed in {sys.executable}: run make fuzz, which uses .venv",
        file=sys.stderr,
    )
    sys.exit(2)

from fuzz.campaign import Campaign, Course
from fuzz.fuzzer import chosen


def whole(least: int, text: str) -> int:
    """Return a whole number of a least size.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
    return int(text)


def duration(text: str) -> float:
    """Return a positive number of seconds.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return seconds


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a fuzzer, or a folder of them; default: all"
    )
    parser.add_argument("--seconds", type=duration, metavar="S", help="time after which no seed begins")
    parser.add_argument("--seeds", type=lambda text: whole(1, text), metavar="N", help="seeds of each fuzzer")
    parser.add_argument(
        "--first", type=lambda text: whole(0, text), metavar="SEED", default=0, help="first seed (default: 0)"
    )
    parser.add_argument(
        "--workers",
        type=lambda text: whole(1, text),
        metavar="W",
        default=1,
        help="fuzzers that run at a time",
    )
    parser.add_argument("--list", action="store_true", help="print the fuzzers and stop")
    return parser


def summary(courses: list[Course], interrupted: bool) -> str:
    """Return a table of what was run and found, by fuzzer."""
    lines = [f"{'fuzzer':20} {'seeds':>6} {'cases':>8} {'seconds':>8} {'findings':>8}  outcomes"]
    totals = [0, 0, 0.0, 0]
    for course in courses:
        tally = course.tally
        row = (course.seeds, tally.cases, course.seconds, len(tally.findings) + len(tally.above()))
        totals = [total + number for total, number in zip(totals, row, strict=True)]
        lines.append(f"{course.fuzzer.name:20} {_row(row)}  {tally.told()}")
    lines.append(f"{'interrupted' if interrupted else 'all':20} {_row(totals)}")
    return "\n".join(lines)


def _row(numbers: "list[float] | tuple[int, int, float, int]") -> str:
    seeds, cases, seconds, findings = numbers
    return f"{seeds:6} {cases:8} {seconds:8.0f} {findings:8}"


def main() -> int:
    """Run the fuzzers that the command line chooses; return the exit code."""
    parser = arguments()
    options = parser.parse_args()
    try:
        running = chosen(options.names)
    except ValueError as error:
        parser.error(str(error))
    if options.list:
        print("\n".join(f"{fuzzer.name:20} {fuzzer.summary}" for fuzzer in running))
        return 0
    campaign = Campaign(
        running, options.first, options.seeds, options.seconds, lambda said: print(said, flush=True)
    )
    interrupted = campaign.run(options.workers)
    for course in campaign.courses:
        for said in course.tally.above():
            print(
                f"FOUND {course.fuzzer.name}: {said}\n  repeat: {course.command(course.first, course.seeds)}"
            )
    print(summary(campaign.courses, interrupted))
    return 1 if campaign.findings() else 0


if __name__ == "__main__":
    sys.exit(main())
