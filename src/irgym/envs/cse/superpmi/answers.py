"""Parsing of SuperPMI's output for a compiled method: a line of metrics."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irgym.base.errors import IrgymError

FEATURES_2024 = (
    "type", "viable", "live_across_call", "const", "shared_const", "make_cse", "has_call", "containable",
    "cost_ex", "cost_sz", "use_count", "def_count", "use_wt_cnt", "def_wt_cnt", "distinct_locals",
    "local_occurrences", "bb_count", "block_spread", "enreg_count",
)  # fmt: skip
"""Features of a candidate that the JIT printed in 2024, in this order."""

FEATURES = (
    *FEATURES_2024[:12], "use_wt_cnt_x100", "def_wt_cnt_x100", *FEATURES_2024[14:18],
    "enreg_count_int", "enreg_count_float", "enreg_count_simd", "enreg_count_msk",
)  # fmt: skip
"""Features of a candidate that the JIT prints now."""

NEEDED = frozenset(FEATURES_2024) & frozenset(FEATURES)
"""Features that every JIT must print, whatever it calls the others."""

_LINE = re.compile(
    r"; Total bytes of code (?P<bytes>\d+), prolog size \d+, PerfScore (?P<score>[\d.]+), "
    r"instruction count (?P<instructions>\d+), allocated bytes for code \d+"
    r"(?P<told>.*) spmi index (?P<index>\d+) \(MethodHash=(?P<hash>[0-9a-fA-F]+)\) for method (?P<name>.*)"
)
_CHOSEN = re.compile(r"\bnum cse (\d+) num cand (\d+)")
_NAMES = re.compile(r"\bfeatureNames (\S+)")
_CANDIDATE = re.compile(r"\bfeatures #-?\d+((?:,-?\d+)+)")
_SEQUENCE = re.compile(r"\bseq (\d+(?:,\d+)*)")
_HEURISTIC = re.compile(r"\bnum cse \d+ num cand \d+ (.*Heuristic)\b")
_TIER = re.compile(r"^(?P<name>.*) \((?P<tier>[^()]*)\)$")


class AnswerError(IrgymError):
    """The JIT's output for a method cannot be parsed."""


@dataclass(frozen=True)
class JitMethod:
    """A method as the JIT compiled it.

    Attributes:
        index: Number in the collection.
        name: Name with signature.
        tier: Tier of the compilation, such as `Tier1`; empty if the JIT does not say.
        hash: Hash of the method.
        score: PerfScore; lower is better.
        bytes: Bytes of code.
        instructions: Number of instructions.
        shared: Number of shared candidates.
        candidates: Features of each candidate by name; empty if not requested.
        count: Number of candidates.
        sequence: The shared candidates, as the JIT numbers them.
        heuristic: The JIT's name for the heuristic that chose; empty if the choice was given.
    """

    index: int
    name: str
    tier: str
    hash: str
    score: float
    bytes: int
    instructions: int
    shared: int
    candidates: tuple[Mapping[str, int], ...]
    count: int
    sequence: tuple[int, ...]
    heuristic: str


def method_of(lines: Sequence[str]) -> JitMethod | None:
    """Return the method in some lines of output; None if there is none.

    Raises:
        AnswerError: A line of metrics cannot be parsed, or there are several.
    """
    told = [line for line in lines if line.startswith("; Total bytes of code ")]
    if not told:
        return None
    if len(told) > 1:
        raise AnswerError(f"the JIT told of {len(told)} methods in one answer")
    return read(told[0])


def read(line: str) -> JitMethod:
    """Parse a line of metrics.

    Raises:
        AnswerError: It cannot be parsed.
    """
    found = _LINE.fullmatch(line.rstrip())
    if found is None:
        raise AnswerError(f"the JIT printed metrics in a form that irgym does not know: {_shown(line)}")
    told = found["told"]
    chosen = _CHOSEN.search(told)
    shared, count = (int(chosen[1]), int(chosen[2])) if chosen else (0, 0)
    candidates = _candidates(told, line)
    if candidates and len(candidates) != count:
        raise AnswerError(f"the JIT tells of {len(candidates)} candidates of {count}: {_shown(line)}")
    sequence = _SEQUENCE.search(told)
    heuristic = _HEURISTIC.search(told)
    tiered = _TIER.match(found["name"])
    try:
        score = float(found["score"])
    except ValueError as error:
        raise AnswerError(f"the JIT printed a score that is no number: {_shown(line)}") from error
    return JitMethod(
        int(found["index"]),
        tiered["name"] if tiered else found["name"],
        tiered["tier"] if tiered else "",
        found["hash"].lower(),
        score,
        int(found["bytes"]),
        int(found["instructions"]),
        shared,
        candidates,
        count,
        tuple(int(place) for place in sequence[1].split(",")) if sequence else (),
        heuristic[1] if heuristic else "",
    )


def _candidates(told: str, line: str) -> tuple[Mapping[str, int], ...]:
    rows = [[int(number) for number in match[1][1:].split(",")] for match in _CANDIDATE.finditer(told)]
    named = _NAMES.search(told)
    names = tuple(named[1].split(",")) if named else None
    found: list[Mapping[str, int]] = []
    for row in rows:
        columns = names or {len(FEATURES): FEATURES, len(FEATURES_2024): FEATURES_2024}.get(len(row))
        if columns is None or len(columns) != len(row):
            raise AnswerError(f"the JIT tells {len(row)} features of a candidate: {_shown(line)}")
        found.append(dict(zip(columns, row, strict=True)))
    return tuple(found)


def _shown(line: str) -> str:
    return repr(line if len(line) <= 200 else f"{line[:200]}...")
