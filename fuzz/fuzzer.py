"""Fuzzers: modules with a function `run(seed)`, in the folders beside this file.

The function does a few seconds of work that depends only on the seed, and returns a `Tally`. The first
line of the module's docstring is the fuzzer's summary, and its path is its name: `graph/rules` is
`graph/rules.py`.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")

HERE = Path(__file__).parent

ENOUGH = 50
"""Number of cases from which shares of them are judged: of fewer, chance decides."""


@dataclass
class Tally:
    """Results of a seed, or of several.

    Attributes:
        counts: Number of cases by outcome.
        notes: Further numbers, such as checks and rewrites.
        reached: Names of what was exercised, such as rules, by kind.
        remarks: Descriptions of what is no fault, but worth a look.
        findings: Descriptions of faults; empty if there are none.
        bars: Greatest accepted share of the cases that have an outcome.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    notes: Counter[str] = field(default_factory=Counter[str])
    reached: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    remarks: list[str] = field(default_factory=list[str])
    findings: list[str] = field(default_factory=list[str])
    bars: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def cases(self) -> int:
        """Number of cases."""
        return self.counts.total()

    def add(self, outcome: str, finding: str = "") -> None:
        """Count a case, and record a finding if there is one."""
        self.counts[outcome] += 1
        if finding:
            self.findings.append(finding)

    def reach(self, kind: str, names: Iterable[str]) -> None:
        """Record what was exercised."""
        self.reached.setdefault(kind, set()).update(names)

    def merge(self, other: "Tally") -> None:
        """Add the results of other seeds."""
        self.counts += other.counts
        self.notes += other.notes
        for kind, names in other.reached.items():
            self.reach(kind, names)
        self.remarks += other.remarks
        self.findings += other.findings
        self.bars = {**self.bars, **other.bars}

    def told(self) -> str:
        """Return all numbers in words."""
        reached = {kind: len(names) for kind, names in self.reached.items()}
        numbers = (*self.counts.items(), *self.notes.items(), *reached.items())
        return ", ".join(f"{count} {name}" for name, count in numbers)

    def above(self) -> list[str]:
        """Return a sentence for each outcome that more cases have than its bar accepts."""
        return [
            f"{self.counts[outcome]} of {self.cases} cases are {outcome!r}; the bar is {share:.1%}"
            for outcome, share in self.bars.items()
            if self.cases >= ENOUGH and self.counts[outcome] > share * self.cases
        ]


@dataclass(frozen=True)
class Fuzzer:
    """A fuzzer.

    Attributes:
        name: Its folder and file, without the suffix.
        summary: First line of its docstring.
    """

    name: str
    summary: str

    @property
    def function(self) -> str:
        """Name of its function, as child processes import it."""
        return f"{HERE.name}.{self.name.replace('/', '.')}:run"


def fuzzers() -> list[Fuzzer]:
    """Return all fuzzers in the order of their names; none is imported, which takes seconds."""
    found: list[Fuzzer] = []
    for path in sorted(HERE.glob("*/*.py")):
        tree = ast.parse(path.read_text())
        if any(isinstance(node, ast.FunctionDef) and _runs_seeds(node) for node in tree.body):
            summary = (ast.get_docstring(tree) or "").partition("\n")[0]
            found.append(Fuzzer(f"{path.parent.name}/{path.stem}", summary))
    return found


def _runs_seeds(function: ast.FunctionDef) -> bool:
    return function.name == "run" and [argument.arg for argument in function.args.args] == ["seed"]


def chosen(names: Iterable[str]) -> list[Fuzzer]:
    """Return the fuzzers with some names; the name of a folder stands for all in it, and no name for all.

    Raises:
        ValueError: There is no such fuzzer.
    """
    every, found = fuzzers(), list[Fuzzer]()
    for name in names:
        matching = [fuzzer for fuzzer in every if name in (fuzzer.name, fuzzer.name.partition("/")[0])]
        if not matching:
            raise ValueError(
                f"there is no fuzzer {name!r}: choose among {', '.join(fuzzer.name for fuzzer in every)}"
            )
        found += matching
    return list(dict.fromkeys(found)) or every


def part(items: Sequence[Item], seed: int, size: int) -> tuple[Sequence[Item], int]:
    """Return the part of a fixed list that belongs to a seed, and the number of the round through the list.

    Seeds that follow each other go through the whole list, then again in the next round. Neighbours in the
    list are in different parts.

    Args:
        items: The list.
        seed: The seed.
        size: Number of items in a part.
    """
    parts = -(-len(items) // size)
    return items[seed % parts :: parts], seed // parts
