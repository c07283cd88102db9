"""Choose the tests that `make test` leaves to `make test-all`, by how long they took.

    make test-all PYTEST_ADDOPTS="--durations=0 --durations-min=0.5" > all.log
    python tests/slow.py all.log

Writes slow.txt, a line for each slow test. Of several logs the longest time counts.
"""

import argparse
import re
from collections import defaultdict
from pathlib import Path

LIST = Path(__file__).with_name("slow.txt")

_LINE = re.compile(r"\s*([\d.]+)s (?:call|setup|teardown)\s+(tests/\S+\.py::.+?)\s*$")


def main() -> None:
    """Read logs, write the list."""
    parser = argparse.ArgumentParser(description="Choose the tests that make test leaves to make test-all.")
    parser.add_argument("logs", nargs="+", type=Path, help="what pytest printed, with durations")
    parser.add_argument("--seconds", type=float, default=1.5, help="tests that take longer are slow")
    options = parser.parse_args()
    seconds: dict[str, float] = {}
    for log in options.logs:
        took: defaultdict[str, float] = defaultdict(float)
        for line in log.read_text().splitlines():
            if found := _LINE.match(line):
                took[found[2]] += float(found[1])
        seconds |= {name: max(time, seconds.get(name, 0.0)) for name, time in took.items()}
    chosen = sorted(name for name, took in seconds.items() if took > options.seconds)
    LIST.write_text("".join(f"{name}\n" for name in chosen))
    left = sum(seconds.values()) - sum(seconds[name] for name in chosen)
    print(f"{len(chosen)} slow tests; the others that the logs name take {left:.0f} s")


if __name__ == "__main__":
    main()
