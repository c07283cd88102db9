"""Comparison of a module after LLVM's passes with the module before them, by runs in random worlds."""

import math
import random
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from irgym.core.cost import Validation
from irgym.envs.llvm.checking.entries import (
    Entry,
    Partners,
    entries,
    kept,
    reached,
    same_signature,
    unchanged,
)
from irgym.envs.llvm.checking.library import LIBRARY
from irgym.envs.llvm.checking.observing import Observer
from irgym.envs.llvm.checking.records import Record
from irgym.llvmir.interpreter.aliasing import Aliasing
from irgym.llvmir.interpreter.memory_map import REGION_BITS
from irgym.llvmir.interpreter.poison import Endless, Undefined, Unsupported
from irgym.llvmir.interpreter.program import Code, Places, Program, Rules
from irgym.llvmir.interpreter.traces import Differs, Trace
from irgym.llvmir.ir.modules import ModuleText
from irgym.llvmir.ir.syntax import bare, globals_in
from irgym.llvmir.worlds.exploring import Explorer, Run, Setting
from irgym.llvmir.worlds.numbers import known_in
from irgym.llvmir.worlds.world import STYLES, Style, World

TOLERANCE = "bit for bit"
"""The tolerance of comparisons, for messages."""

SECONDS, LEAST_SECONDS = 40.0, 15.0
"""Processor time for the functions of a module, and where time is short: those beyond it are left out."""

STEPS, PATIENT = 6_000, 60_000
"""Greatest number of instructions of a run, and while no run of a function has ended so far."""

FUNCTION_STEPS, MODULE_STEPS = 400_000, 2_000_000
"""Approximate greatest number of instructions of all runs of a function of the original, and of a module."""

LEAST_STEPS = 20_000
"""The same of a function where little is left for the module."""

RUN_STEPS = 200
"""Number of instructions that take as long as the begin and the end of a run."""

LONGER, DEEPER = 5, 3
"""Limits on the instructions and on the depth of calls of the optimised form, as multiples of the original's:
passes move parts of functions to new functions."""

_TEXT = re.compile(r' constant (\[\d+ x i8\]) (c".*?")(?:, |$)')
_TRIES, _WORLDS = 600, 96
"""Greatest number of changed worlds of a function, and of worlds drawn for each input."""

_STYLES = (
    *(replace(style, alone=False) for style in STYLES),
    Style(known=30, below=6, letters=90),
    Style(known=10, below=8, data=60),
    Style(known=10, below=8, letters=50, texts=80),
    Style(edges=80, below=8),
    Style(known=85, below=12, again=20),
    Style(known=10, below=20, letters=60, changed=True),
    Style(known=20, edges=20, below=5, data=90, again=20),
)
_NAMED = 4
PARTNERS = 32
"""Most functions that may be called beside one that shares internal variables with them."""

_CASES = ("tie", "above", "below")


@dataclass
class Findings:
    """Results of the comparison of a module.

    Attributes:
        compared: Number of functions compared.
        unchanged: Number of functions that the passes did not change, which are not run.
        left_out: Number of functions for which there was no time.
        wrong: What differs, each with the function.
        blind: Functions that could not be compared, each with the reason.
        branches: Branches of the functions that were run.
        taken: Those of them that were taken.
        runs: Number of runs compared.
    """

    compared: int = 0
    unchanged: int = 0
    left_out: int = 0
    wrong: list[str] = field(default_factory=list[str])
    blind: list[str] = field(default_factory=list[str])
    branches: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    taken: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    runs: int = 0


def compared(before: str, after: str, inputs: int, seed: int, seconds: float = SECONDS) -> Validation:
    """Compare a module after passes with the module before them, by what can be observed of its functions.

    Every function that other modules can call, and every internal one whose address is taken in both modules,
    runs in random worlds: on random arguments and memory, with callees of the module executed and external
    ones answered at random, alike for both forms. The optimised form must make the same external calls with
    the same arguments and memory, return the same and leave the same memory behind, wherever the original has
    defined behaviour.

    Args:
        before: Text of the module before the passes, as LLVM prints it.
        after: Text of the module after them.
        inputs: Number of random inputs of each function; several worlds are drawn for each.
        seed: Seed of the worlds, and of the order in which functions are run.
        seconds: Processor time, after which no further function is run. One at least is.

    Raises:
        ValueError: A text is not a module that LLVM printed.
    """
    end = time.process_time() + seconds
    return Comparison(before, after, inputs, seed).compare(end)


class Comparison:
    """Runs the functions of two forms of a module.

    Args:
        before: Text of the original.
        after: Text of the optimised form.
        inputs: Number of random inputs of each function.
        seed: Seed of the worlds.
    """

    def __init__(self, before: str, after: str, inputs: int, seed: int) -> None:
        first, second = ModuleText.read(before), ModuleText.read(after)
        places = Places()
        aliasing = Aliasing(first.entries)
        self._before = Program(first.informed(second), places, Rules(True, aliasing, LIBRARY, records=True))
        self._after = Program(second, places, Rules(True, None, LIBRARY))
        self._inputs = inputs
        self._seed = seed
        self._rng = random.Random(seed)
        self._left = MODULE_STEPS
        self._pairs: Sequence[tuple[Code, Code]] = ()
        self._kept = frozenset(
            self._before.address(name) >> REGION_BITS for name in kept(self._before, self._after)
        )
        self._setting = Setting(
            starts=self._original,
            styles=_STYLES,
            steps=STEPS,
            patient=PATIENT,
            tries=_TRIES,
            run_steps=RUN_STEPS,
            drawn_share=0.5,
        )

    def compare(self, end: float = math.inf) -> Validation:
        """Compare the functions in random order, until the clock of processor time shows `end`."""
        findings = Findings()
        found = entries(self._before, self._after)
        partners = Partners(self._before.module, found)
        todo = [entry for entry in found if self._callable(entry, findings)]
        self._rng.shuffle(todo)
        for number, entry in enumerate(todo):
            if number and time.process_time() >= end:
                findings.left_out = len(todo) - number
                break
            steps = max(self._left // (len(todo) - number), LEAST_STEPS)
            self._entry(entry, partners.of(entry), findings, steps)
        return _told(findings, len(found), self._inputs)

    def _callable(self, entry: Entry, findings: Findings) -> bool:
        """Say whether the optimised form has a function, and with the same type."""
        name = bare(entry.name)
        if not entry.other:
            if entry.needed:
                findings.wrong.append(f"{name}: other modules no longer find the function")
            return False
        if not same_signature(self._before.module, self._after.module, entry):
            findings.wrong.append(f"{name}: its type is another")
            return False
        return True

    def _entry(self, entry: Entry, sharing: Sequence[Entry], findings: Findings, steps: int) -> None:
        name = bare(entry.name)
        if not sharing and unchanged(self._before.module, self._after.module, entry):
            findings.unchanged += 1
            return
        try:
            self._pairs = self._both(sharing)
            code, other = self._before.code(entry.name), self._after.code(entry.other)
            explorer = self._explored(code, other, steps)
        except Unsupported as error:
            findings.blind.append(f"{name} ({error})")
            return
        self._left -= explorer.steps
        findings.branches |= explorer.edges
        findings.taken |= explorer.found.edges & explorer.edges
        if not explorer.found.runs:
            findings.blind.append(f"{name} ({_in_vain(explorer.found.failures)})")
            return
        unsupported = ""
        for run in explorer.found.runs:
            try:
                wrong = self._differs(other, run)
            except Unsupported as error:
                unsupported = str(error)
                continue
            findings.runs += 1
            if wrong:
                findings.wrong.append(f"{name}: {wrong}")
                return
        if unsupported:
            findings.blind.append(f"{name} ({unsupported})")
        else:
            findings.compared += 1

    def _explored(self, code: Code, other: Code, steps: int) -> Explorer:
        names = reached(self._before.module, code.function.name)[1:]
        others = [self._before.code(name) for name in names]
        lines = [line for each in (code, other, *others) for line in _lines(each)]
        vain = FUNCTION_STEPS if self._left > 0 else LEAST_STEPS
        setting = replace(self._setting, all_steps=min(steps, FUNCTION_STEPS), vain_steps=vain)
        known = replace(known_in(lines), texts=tuple(sorted(self._texts(lines))))
        explorer = Explorer(self._before, code, known, self._seed, setting, others)
        explorer.draw(range(_WORLDS * self._inputs))
        explorer.reach()
        watched = ((each, name) for each in (code, *others) for name in sorted(each.watched))
        explorer.stress({each.label(name): _CASES for each, name in watched})
        return explorer

    def _texts(self, lines: Sequence[str]) -> set[bytes]:
        """Return the texts that some lines of the modules name."""
        found: set[bytes] = set()
        for name in {name for line in lines for name in globals_in(line)}:
            for program in (self._before, self._after):
                text = _TEXT.search(program.module.entries.get(name, ""))
                if text:
                    found.add(bytes(program.constants.value(text[1], text[2])))
        return found

    def _original(
        self, program: Program, world: World, steps: int, reference: Trace | None, turn: bool
    ) -> Observer:
        partners = [first for first, _ in self._pairs]
        return Observer(program, world, steps, reference, turn, kept=self._kept, partners=partners)

    def _both(self, sharing: Sequence[Entry]) -> list[tuple[Code, Code]]:
        """Return both forms of some functions."""
        return [
            (self._before.code(other.name), self._after.code(other.other))
            for other in (sharing if len(sharing) <= PARTNERS else self._rng.sample(sharing, PARTNERS))
            if same_signature(self._before.module, self._after.module, other)
        ]

    def _differs(self, other: Code, run: Run) -> str:
        """Return how a run of the optimised form differs from the original's; empty if it does not.

        Raises:
            Unsupported: The interpreter cannot run it.
        """
        record = cast(Record, run.trace)
        steps = LONGER * max(record.steps, STEPS)
        observer = Observer(
            self._after, run.world, steps, record, turn=True, original=self._before, kept=self._kept
        )
        observer.partners = [second for _, second in self._pairs]
        observer.deepest *= DEEPER
        try:
            observer.run(other)
        except Differs as error:
            why = str(error)
        except (Undefined, Endless) as error:
            why = f"{error}, unlike in the original"
        else:
            return ""
        scarce = any(not given for _, _, given in record.allocations)
        if scarce and observer.allocations != [*record.allocations]:
            return ""  # LLVM may take removed allocations for successful
        return why


def _lines(code: Code) -> Sequence[str]:
    return [instruction.text for _, instruction in code.function]


def _in_vain(failures: Counter[str]) -> str:
    """Return why no run of the original counts."""
    if not failures:
        return "no inputs"
    why, count = failures.most_common(1)[0]
    return f"in none of {failures.total()} worlds its behaviour is defined, {count} times since: {why}"


def _told(findings: Findings, functions: int, inputs: int) -> Validation:
    tolerance = (
        f"{TOLERANCE}; {len(findings.taken)} of {len(findings.branches)} branches were taken"
        f" in {findings.compared} of {functions} functions, {findings.unchanged} are unchanged"
    )
    detail = _listed(findings.wrong)
    blind = ""
    if findings.left_out:
        blind = f"not compared for lack of time: {findings.left_out:,} of {functions:,} functions"
    if findings.blind:
        blind += f"{'; ' if blind else ''}not compared: {_listed(findings.blind)}"
    if not functions:
        blind = "no function can be called from outside"
    figures = {
        "functions": functions,
        "functions_compared": findings.compared,
        "functions_unchanged": findings.unchanged,
        "functions_left_out": findings.left_out,
        "runs_compared": findings.runs,
        "branches": len(findings.branches),
        "branches_taken": len(findings.taken),
    }
    ran = inputs if findings.runs or findings.unchanged else 0
    return Validation(not findings.wrong, 0.0, tolerance, ran, detail, blind, figures=figures)


def _listed(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return "; ".join(texts[:_NAMED]) + more
