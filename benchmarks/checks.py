"""The checks themselves: no wrong result may count as validated, and no right schedule as wrong.

python benchmarks/checks.py --pairs 1000 --schedules 2000
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from irgym.core.cost import Validation

# The wrong results are of programs that fuzzers draw.
sys.path.append(str(Path(__file__).resolve().parents[1]))

ENVIRONMENTS = ("loops", "hlo", "linalg")

Pairs = Callable[[int, int], Iterator[tuple[str, str, bool, bool]]]
Schedules = Callable[[int, int], Iterator[tuple[str, str, Validation]]]


@dataclass(frozen=True)
class Options:
    """Options."""

    pairs: int = 1000
    """Pairs of a program and a wrong result, for each environment."""
    schedules: int = 1000
    """Right schedules, for each environment."""
    environments: tuple[str, ...] = ENVIRONMENTS
    """Environments whose checks are tried."""
    seed: int = 0
    """Seed of programs, mutations and schedules."""


def wrong_results(name: str, pairs: Pairs, options: Options) -> int:
    """Try wrong results; print how many of each kind were accepted, and return their number."""
    tried, accepted, alike = Counter[str](), Counter[str](), Counter[str]()
    for program, mutation, passed, wrong in pairs(options.seed, options.pairs):
        if not wrong:
            alike[mutation] += 1
            continue
        tried[mutation] += 1
        if passed:
            accepted[mutation] += 1
            print(f"ACCEPTED {name} {program}: {mutation}")
    table = Table("wrong result", "tried", "accepted", "changes nothing", title=name)
    for mutation in sorted(tried | alike):
        table.add_row(mutation, *(str(counts[mutation]) for counts in (tried, accepted, alike)))
    table.add_row("all", *(str(counts.total()) for counts in (tried, accepted, alike)))
    Console().print(table)
    return accepted.total()


def right_schedules(name: str, schedules: Schedules, options: Options) -> int:
    """Try right schedules; print how many were called wrong, and return their number."""
    outcomes, worst, blind = Counter[str](), 0.0, set[str]()
    for program, text, validation in schedules(options.seed, options.schedules):
        outcome = "validated" if validation.checked else "not checkable" if validation.ok else "called wrong"
        outcomes[outcome] += 1
        if validation.ok:
            worst = max(worst, validation.error)
        else:
            print(f"FALSE ALARM {name} {program} {text!r}: {validation.detail}")
        if validation.blind and program not in blind:
            blind.add(program)
            print(f"NOT CHECKABLE {name} {program}: {validation.blind}")
    said = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    print(
        f"{name}: {outcomes.total()} right schedules: {said}; greatest error {worst:.0%} of what is allowed"
    )
    return outcomes["called wrong"]


def main(options: Options) -> None:
    """Try all environments; exit with status 1 where a check failed."""
    failures = 0
    for name in options.environments:
        module = import_module(f"checks_{name}")
        failures += wrong_results(name, module.mutations, options)
        failures += right_schedules(name, module.schedules, options)
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main(tyro.cli(Options))
