"""Planted faults in real functions: how many of them do the checks of `cse` call right?

    python fuzz/cse_planted.py wrong --count 24
    python fuzz/cse_planted.py zero --count 300
    python fuzz/cse_planted.py right --count 1000

`wrong` plants faults of each kind in functions of the data sets and in the programs below; `zero` replaces
computations that a choice would share by zero; `right` runs random choices, all of which are right. A fault
counts as accepted if the check says "validated yes"; "not checked" is no acceptance. Faults that z3 proves to
compute the same are not planted: the operation is compared with the planted one for all operands that the
function's own operations, flags, ranges and the branches that lead there allow.

The exit status is 1 if a planted fault of the kinds is accepted, more than 2 % of the zeros are, or a right
choice is called wrong.
"""

import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
import z3

from irgym.core.cost import Validation
from irgym.core.errors import ProgramError
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.envs.cse.ir.instruction import Instruction
from irgym.envs.cse.ir.modules import ModuleText
from irgym.envs.cse.ir.syntax import listed
from irgym.envs.cse.ir.types import type_of
from irgym.envs.cse.programs.preparing import prepared
from irgym.envs.cse.running.checking import Comparison, compared
from irgym.envs.cse.scoring.scorer import function_at, module_at
from irgym.envs.cse.task import CseTask

PROGRAMS = """
#include <string.h>
typedef int (*call_t)(int, int);
struct node { int key; double weight; call_t call; struct node *next; unsigned char tag[12]; };

int poll(volatile int *port, int n) {
  int s = 0;
  for (int k = 0; k < (n & 7); k++) { port[1] = k; s += port[0]; if (port[2] > 50) port[3] = s; }
  return s + port[0] + port[0];
}
void sequence(volatile unsigned *r, unsigned v) { r[0] = v; r[1] = v ^ 3; r[0] = v; (void)r[2]; r[1] = r[2]; }
unsigned settle(volatile unsigned *r, unsigned *out) { out[0] = r[0]; out[1] = r[0]; r[4] = out[0] + 1; r[4] = 9; return r[1]; }
void toggle(volatile char *p, int n) { if (n > 3) { p[0] = 1; p[1] = 2; } else { p[1] = 2; } p[0] = 0; p[2] = p[0]; }
double sum(struct node *n, double scale) {
  double s = -0.0;
  for (; n; n = n->next) { if (n->weight < scale) s += n->weight * scale; else s -= -n->weight; }
  return s;
}
int visit(struct node *n, int depth) {
  int s = 0;
  for (int k = 0; n && k < 5; n = n->next, k++) s += n->call(n->key, depth + k) * 3 + n->call(k, s);
  return s;
}
int apply(call_t f, call_t g, int a, int b) { int x = f(a, b - 1); if (x > 60) return g(x, a) - g(b, x); return f(x ^ a, 9); }
void deliver(struct node *n, int v) { n->call(v, n->key); n->key = v + 1; if (v & 1) n->call(n->key, v); n->call(0, v); }
void shift(unsigned char *p, unsigned n) { memmove(p + 1, p, n & 31); p[0] = (unsigned char)n; }
int slide(struct node *n, int k) { memmove(n->tag, n->tag + 2, 7); if (k > 44) memmove(n->tag + 4, n->tag, 8); return n->tag[k & 7]; }
void swap(struct node *a, struct node *b) { struct node t; memcpy(&t, a, sizeof t); memmove(a, b, sizeof t); memmove(b, &t, sizeof t); }
void pad(char *p, const char *q, int n) { if (n > 41) { memmove(p, q, 24); memmove(p + 24, q + 1, 5); } else memmove(p, q + 3, 11); }
float clamp(float x, float low, float high) { if (x < low) return low; if (x > high) return high; return x != x ? -x : x - 0.1f; }
double blend(double a, double b, double t) { double d = -(a - b); if (!(t >= 0.25)) return a + d * t; return t > 0.75 ? b : a * b + d / t; }
int order(double a, double b) { if (a < b) return -1; if (a > b) return 1; return a == b ? 0 : 2; }
double accumulate(const double *p, int n, double *out) {
  double s = 0.0, c = -0.0;
  for (int k = 0; k < (n & 7); k++) { double y = -p[k] - c; double t = s + y; c = (t - s) - y; s = t; if (t > 1e30) *out = -t; }
  return s * c;
}
"""
"""Functions with what is rare in the data sets: volatile accesses, calls through pointers, copies, numbers."""

_SIGNS = {"slt": "ult", "sle": "ule", "sgt": "ugt", "sge": "uge"}
_EDGES = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
_DIVISIONS = {"sdiv": "udiv", "udiv": "sdiv", "srem": "urem", "urem": "srem"}
_ICMP = re.compile(r"icmp (\w+) (\S+) (\S+), ([^\s,]+)$")
_FCMP = re.compile(r" fcmp ([ou])(lt|le|gt|ge|eq|ne) ")
_ARITHMETIC = re.compile(
    r"= (fadd|fsub|fmul|fdiv|fneg|fcmp) (?!nnan|ninf|nsz|arcp|contract|afn|reassoc|fast)"
)
_CALL = re.compile(r"call (?!.*@llvm\.(?:lifetime|dbg|assume|expect|threadlocal))")
_INDIRECT = re.compile(r"(?:tail )?call [^@%]*%[-\w.$]+\((.*)\)")
_COPY = re.compile(r"(call void @llvm\.mem(?:move|cpy)\.[\w.]+\()(.*)(\).*)")
_BITS = re.compile(r"i(\d+)$")
_LEAST = 40
"""The least constant of the kind `constant`."""

KINDS = (
    *(
        "shift",
        "division",
        "sign",
        "edge",
        "constant",
        "extension",
        "float compare",
        "float zero",
        "float flags",
    ),
    *("load over call", "store past call", "indirect argument", "volatile", "copy"),
)
"""Kinds of faults."""


@dataclass(frozen=True)
class Options:
    """What to plant."""

    what: Annotated[Literal["wrong", "zero", "right"], tyro.conf.Positional]
    """Faults of all kinds, zeros, or nothing."""
    count: int = 0
    """Faults of each kind, zeros, or choices; by default what the bars ask for."""
    seconds: float = 540.0
    """When to stop, in seconds of the processor."""
    inputs: int = 4
    """Inputs of each check; `tune` takes as many."""
    seed: int = 0
    """Seed of functions, faults, choices and inputs."""
    datasets: tuple[str, ...] = ("kernels", "packages")
    """The data sets; both of their splits."""


COUNTS = {"wrong": 24, "zero": 300, "right": 1000}


@dataclass(frozen=True)
class Subject:
    """A function to plant faults in."""

    name: str
    module: ModuleText
    analysed: Analysed

    @property
    def lines(self) -> list[str]:
        """Its lines as written."""
        return self.analysed.sharing.lines(())

    def checked(self, lines: Sequence[str], options: Options) -> Validation:
        """Return what the check says of other lines."""
        return Comparison(self.module, self.analysed, options.inputs, options.seed).made(lines, {}, {})


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        kind: One of `KINDS`.
        lines: The function with it.
        told: What was changed.
    """

    kind: str
    lines: tuple[str, ...]
    told: str


def faults(subject: Subject) -> Iterator[Fault]:
    """Yield all faults of a function that are not proved to compute the same."""
    lines = subject.lines
    terms = Terms(subject.analysed)
    for place, line in enumerate(lines):
        for kind, new in replaced(line):
            if kind in ("shift", "division", "sign", "edge", "constant", "extension") and terms.equal(
                line, new
            ):
                continue
            yield Fault(
                kind,
                (*lines[:place], *new.split("\n"), *lines[place + 1 :]),
                f"{line.strip()} -> {new.strip()}",
            )
    yield from moved(lines)


def replaced(line: str) -> Iterator[tuple[str, str]]:
    """Yield kinds of faults and what a line becomes."""
    for first, second in (("ashr", "lshr"), ("lshr", "ashr")):
        if f"= {first} " in line:
            yield "shift", line.replace(f"= {first} ", f"= {second} ")
    for first, second in _DIVISIONS.items():
        if f"= {first} " in line:
            yield "division", line.replace(f"= {first} ", f"= {second} ")
    for first, second in (("sext", "zext"), ("zext", "sext")):
        if f"= {first} " in line and "nneg" not in line:
            yield "extension", line.replace(f"= {first} ", f"= {second} ")
    if (match := _ICMP.search(line)) and _BITS.match(match[2]):
        yield from _compared(line, match)
    if match := _FCMP.search(line):
        other = "u" if match[1] == "o" else "o"
        yield "float compare", line.replace(match[0], f" fcmp {other}{match[2]} ")
    if match := _ARITHMETIC.search(line):
        for flags in ("nnan", "ninf") if match[1] in ("fcmp", "fneg") else ("nnan", "ninf", "nsz", "fast"):
            yield "float flags", line.replace(match[0], f"{match[0]}{flags} ")
        if match[1] == "fneg":
            yield (
                "float zero",
                line.replace("= fneg ", "= fsub ")
                .replace("float %", "float 0.000000e+00, %")
                .replace("double %", "double 0.000000e+00, %"),
            )
        if match[1] == "fsub":
            yield "float zero", _turned(line)
        if match[1] in ("fadd", "fmul"):
            yield "float zero", _zero_lost(line)
    if match := _INDIRECT.search(line):
        yield from (("indirect argument", new) for new in _arguments(line, match[1]))
    if " volatile " in line:
        if not line.strip().startswith("%"):
            yield "volatile", ""
            yield "volatile", f"{line}\n{line}"
        yield "volatile", line.replace(" volatile ", " ")
    if match := _COPY.search(line):
        yield from (("copy", new) for new in _copies(line, match))


def _compared(line: str, match: re.Match[str]) -> Iterator[tuple[str, str]]:
    name = match[1]
    if name in _SIGNS and "samesign" not in line:
        yield "sign", line.replace(f"icmp {name} ", f"icmp {_SIGNS[name]} ")
    if name[-2:] in _EDGES and name not in ("eq", "ne"):
        yield "edge", line.replace(f"icmp {name} ", f"icmp {name[:-2]}{_EDGES[name[-2:]]} ")
    if match[4].lstrip("-").isdigit() and abs(int(match[4])) >= _LEAST:
        for step in (-1, 1):
            yield "constant", f"{line[: match.end() - len(match[4])]}{int(match[4]) + step}"


def _turned(line: str) -> str:
    """Return a difference as the negated difference of the operands in turn: it differs in the sign of zero."""
    head, _, rest = line.partition("= fsub ")
    kind, first, second = (
        rest.split(",")[0].split(" ")[0],
        rest.split(",")[0].split(" ")[1],
        rest.split(", ")[1],
    )
    return f"  %irgym.m = fsub {kind} {second}, {first}\n{head}= fneg {kind} %irgym.m"


def _zero_lost(line: str) -> str:
    """Return a sum or a product with 0.0 added: it differs where the result is -0.0."""
    match = re.match(r"(  %\S+) = (f\w+) (float|double) (.*)", line)
    if match is None:
        return line
    return (
        f"  %irgym.m = {match[2]} {match[3]} {match[4]}\n{match[1]} = fadd {match[3]} %irgym.m, 0.000000e+00"
    )


def _arguments(line: str, inside: str) -> Iterator[str]:
    operands = listed(inside)
    for place, one in enumerate(operands):
        head, _, value = one.rpartition(" ")
        kind = one.split(" ")[0]
        others = [
            other for other in operands if other.split(" ")[0] == kind and other.rpartition(" ")[2] != value
        ]
        new = (
            others[0].rpartition(" ")[2]
            if others
            else {"ptr": "null"}.get(kind, "7" if kind[0] == "i" else "")
        )
        if new and new != value:
            yield line.replace(
                inside, ", ".join([*operands[:place], f"{head} {new}", *operands[place + 1 :]])
            )


def _copies(line: str, match: re.Match[str]) -> Iterator[str]:
    target, source, size, last = listed(match[2])
    head, _, value = size.rpartition(" ")
    if value.isdigit():
        for new in (int(value) - 1, int(value) + 1):
            yield f"  {match[1]}{target}, {source}, {head} {new}, {last}{match[3]}"
    for one in (target, source):
        name = one.rpartition(" ")[2]
        if name.startswith("%"):
            moved_one = f"  %irgym.m = getelementptr i8, ptr {name}, i64 1\n"
            yield moved_one + line.replace(
                one, re.sub(r"(nonnull|align \d+|dereferenceable\(\d+\)) ", "", one).replace(name, "%irgym.m")
            )


def moved(lines: Sequence[str]) -> Iterator[Fault]:
    """Yield faults that move an access past a call."""
    for place, line in enumerate(lines):
        if not _writes(line):
            continue
        before = lines[place - 1]
        if before.startswith("  store ") and " volatile " not in before:
            new = (*lines[: place - 1], line, before, *lines[place + 1 :])
            if not (set(re.findall(r"%[-\w.$]+", before)) & {line.strip().split(" ")[0]}):
                yield Fault("store past call", new, f"{before.strip()} moved past {line.strip()[:60]}")
        yield from _shared_over(lines, place)


def _writes(line: str) -> bool:
    known = ("memory(none)", "memory(read)", "@llvm.")
    return bool(_CALL.search(line)) and line.startswith("  ") and not any(one in line for one in known)


def _shared_over(lines: Sequence[str], place: int) -> Iterator[Fault]:
    """Yield the faults that share a load in front of a call with one behind it, in one block."""
    begin = max(number for number in range(place) if not lines[number].startswith("  "))
    end = next(
        (number for number in range(place, len(lines)) if not lines[number].startswith("  ")), len(lines)
    )
    loads = {}
    for number in range(begin, place):
        if match := re.match(r"  (%\S+) = load (?!volatile|atomic)([^!]*?)(?:, align.*)?$", lines[number]):
            loads[match[2]] = match[1]
    for number in range(place + 1, end):
        match = re.match(r"  (%\S+) = load (?!volatile|atomic)([^!]*?)(?:, align.*)?$", lines[number])
        if match and match[2] in loads:
            name, kept = match[1], loads[match[2]]
            new = [re.sub(rf"(?<![\w.]){re.escape(name)}(?![-\w.$])", lambda _: kept, line) for line in lines]
            yield Fault(
                "load over call",
                (*new[:number], *new[number + 1 :]),
                f"{name} is {kept}, over {lines[place].strip()[:60]}",
            )


class Terms:
    """Integers of a function as terms of z3, with all that is known of them.

    Args:
        function: The function.
    """

    def __init__(self, function: Analysed) -> None:
        self._function = function
        self._made = function.values.made
        self._terms: dict[str, Any] = {}
        self.facts: list[Any] = []

    def equal(self, line: str, new: str) -> bool:
        """Say whether z3 proves that two lines compute the same where their result is defined."""
        first, second = Instruction.read(line.strip()), Instruction.read(new.strip())
        if not first.result or first.result not in self._function.values.places:
            return False
        try:
            pairs = self._seen([(first, second)], first.result, 3)
            conditions = list(self._conditions(self._function.values.places[first.result].block))
        except (KeyError, ValueError, TypeError, z3.Z3Exception):
            return False
        solver = z3.Solver()
        solver.set("timeout", 3000)
        solver.add(*self.facts, *conditions, z3.Or(*(one != other for one, other in pairs)))
        return solver.check() == z3.unsat

    def _seen(
        self, forms: list[tuple[Instruction, Instruction]], name: str, depth: int
    ) -> list[tuple[Any, Any]]:
        """Return what is seen of a result that is computed in two ways: itself, or what is computed of it."""
        [(first, second)] = forms
        old, new = self._computed(first, "old"), self._computed(second, "new")
        return self._through(name, old, new, depth)

    def _through(self, name: str, old: Any, new: Any, depth: int) -> list[tuple[Any, Any]]:
        users = [one for _, one in self._function.function if name in one.operands]
        if not depth or not users or any(one.opcode not in _NARROW for one in users):
            return [(old, new)]
        found: list[tuple[Any, Any]] = []
        for user in users:
            kept = self._terms.get(name)
            terms: list[Any] = []
            for term in (old, new):
                self._terms[name] = term
                terms.append(self._computed(user, "user"))
            self._terms.pop(name)
            if kept is not None:
                self._terms[name] = kept
            found += self._through(user.result, *terms, depth - 1)
        return found

    def _conditions(self, block: int) -> Iterator[Any]:
        """Yield what the branches decide that lead to a block."""
        flow, blocks = self._function.flow, self._function.function.blocks
        while block != flow.order[0]:
            parent = flow.parents[block]
            last = blocks[parent].instructions[-1]
            labels = re.findall(r"label %([-\w.$]+)", last.rest)
            if len(labels) == 2 and labels[0] != labels[1] and flow.predecessors[block] == [parent]:
                condition = self._value("i1", listed(last.rest)[0].split(" ")[1])
                yield condition == (1 if labels[0] == blocks[block].name else 0)
            block = parent

    def _value(self, kind: str, text: str) -> Any:
        bits = int(_BITS.match(kind)[1])  # pyright: ignore[reportOptionalSubscript]
        if not text.startswith("%"):
            return z3.BitVecVal(
                {"true": 1, "false": 0}.get(text) if text in ("true", "false") else int(text), bits
            )
        if text not in self._terms:
            self._terms[text] = z3.BitVec(text, bits)
            if text in self._made:
                try:
                    found = self._computed(self._made[text], text)
                    self.facts.append(self._terms[text] == found)
                except (KeyError, ValueError, z3.Z3Exception, TypeError):
                    self._bounds(text, bits)
        return self._terms[text]

    def _bounds(self, name: str, bits: int) -> None:
        """Note the range of a value that is no term: by its metadata, or as a counter that only rises."""
        one, term = self._made[name], self._terms[name]
        if one.opcode == "phi":
            values = re.findall(r"\[ (\S+), %", one.rest)
            steps = [self._made.get(value) for value in values if value.startswith("%")]
            starts = [
                int(value) for value in values if not value.startswith("%") and value.lstrip("-").isdigit()
            ]
            rises = all(
                step is not None
                and step.opcode == "add"
                and {"nsw", "nuw"} & step.flags
                and name in step.operands
                and int(step.rest.rpartition(" ")[2].replace("%", "-0") or 0) > 0
                for step in steps
                if step is not None
            )
            if starts and rises and len(steps) + len(starts) == len(values) and None not in steps:
                self.facts.append(term >= min(starts))
        elif one.opcode == "call" and re.search(r"@llvm\.(ctpop|ctlz|cttz|abs)\.", one.rest):
            self.facts.append(term >= 0)
            if "abs" not in one.rest:
                self.facts.append(z3.ULE(term, bits))

    def _computed(self, one: Instruction, name: str) -> Any:
        rest, flags = one.rest, one.flags
        match one.opcode:
            case "trunc" | "zext" | "sext":
                old, value = rest.rpartition(" to ")[0].split(" ")
                term, bits = self._value(old, value), int(_BITS.match(rest.rpartition(" to ")[2])[1])  # pyright: ignore[reportOptionalSubscript]
                more = bits - term.size()
                if "nneg" in flags:
                    self.facts.append(term >= 0)
                return (
                    z3.Extract(bits - 1, 0, term)
                    if more < 0
                    else (z3.SignExt if one.opcode == "sext" else z3.ZeroExt)(more, term)
                )
            case "icmp":
                relation, rest = rest.split(" ", 1)
                first, second = self._two(rest)
                return z3.If(_RELATIONS[relation](first, second), z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
            case "select":
                parts = [part.split(" ") for part in listed(rest)]
                condition, yes, no = (self._value(*part) for part in parts)
                return z3.If(condition == 1, yes, no)
            case "phi" | "load" | "call":
                raise ValueError(name)
        first, second = self._two(rest)
        found = _OPERATIONS[one.opcode](first, second)
        if "nsw" in flags and one.opcode in ("add", "sub", "mul"):
            more = first.size() if one.opcode == "mul" else 1
            whole = _OPERATIONS[one.opcode](z3.SignExt(more, first), z3.SignExt(more, second))
            self.facts.append(whole == z3.SignExt(more, found))
        if "nuw" in flags and one.opcode == "add":
            self.facts.append(z3.UGE(found, first))
        if "nuw" in flags and one.opcode == "sub":
            self.facts.append(z3.UGE(first, second))
        if one.opcode in ("shl", "lshr", "ashr"):
            self.facts.append(z3.ULT(second, second.size()))
        if "nsw" in flags and one.opcode == "shl":
            self.facts.append((found >> second) == first)
        if one.opcode in _DIVISIONS:
            self.facts.append(second != 0)
        return found

    def _two(self, rest: str) -> tuple[Any, Any]:
        first, second = listed(rest)
        kind, value = first.split(" ")
        return self._value(kind, value), self._value(kind, second)


_OPERATIONS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "ashr": lambda a, b: a >> b,
    "lshr": z3.LShR,
    "udiv": z3.UDiv,
    "urem": z3.URem,
    "sdiv": lambda a, b: a / b,
    "srem": z3.SRem,
}
_NARROW = frozenset(("trunc", "and", "or", "shl", "add", "sub", "mul", "zext", "icmp"))
_RELATIONS: dict[str, Any] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ult": z3.ULT,
    "ule": z3.ULE,
    "ugt": z3.UGT,
    "uge": z3.UGE,
}


def subjects(options: Options, rng: random.Random) -> Iterator[tuple[Subject, CseTask | None]]:
    """Yield the programs above, and then functions of the data sets at random."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "programs.c"
        file.write_text(PROGRAMS)
        module = ModuleText.read(prepared(str(file), "x86-64").decode())
    if options.what == "wrong":
        for name in module.functions:
            yield Subject(name, module, analysed(module, name)), None
    uris = [uri for one in map(CSE.dataset, options.datasets) for uri in (*one.train, *one.test)]
    rng.shuffle(uris)
    for uri in uris:
        try:
            task = CSE.task(uri)
        except ProgramError:
            continue
        if task.names:
            path = str(task.module)
            yield Subject(uri, module_at(path), function_at(path, task.analysed.function.name)), task


def plant_wrong(options: Options) -> int:
    """Plant faults of all kinds; return how many were accepted."""
    rng = random.Random(options.seed)
    planted: Counter[str] = Counter()
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for subject, _ in subjects(options, rng):
        if time.process_time() > options.seconds or all(planted[kind] >= options.count for kind in KINDS):
            break
        if len(subject.lines) > 1500:
            continue
        here: Counter[str] = Counter()
        found = list(faults(subject))
        rng.shuffle(found)
        for fault in found:
            most = 2 if subject.name.startswith("cse:") else 6
            if planted[fault.kind] >= options.count or here[fault.kind] >= most:
                continue
            here[fault.kind] += 1
            planted[fault.kind] += 1
            said = subject.checked(fault.lines, options)
            outcome = "rejected" if not said.ok else "accepted" if said.checked else "not checked"
            outcomes[fault.kind][outcome] += 1
            if outcome == "accepted":
                outcomes[fault.kind].subtract(accepted=1)
                outcome = "accepted" if witnessed(subject, fault, options) else "without a witness"
                outcomes[fault.kind][outcome] += 1
                print(f"{outcome}: {fault.kind}: {subject.name}: {fault.told}", flush=True)
    accepted = sum(one["accepted"] for one in outcomes.values())
    for kind, one in outcomes.items():
        print(
            f"{kind:<18} {planted[kind]:>3} planted: "
            + ", ".join(f"{count} {what}" for what, count in one.items())
        )
    print(f"{sum(planted.values())} planted faults, {accepted} accepted; bar 0 of 200, 20 of each kind")
    return accepted


def witnessed(subject: Subject, fault: Fault, options: Options) -> bool:
    """Say whether a much longer search finds a world in which a fault shows."""
    return any(
        not subject.checked(fault.lines, replace(options, inputs=4 * options.inputs, seed=seed)).ok
        for seed in range(1000, 1003)
    )


def plant_zeros(options: Options) -> int:
    """Replace computations by zero; return how many more than 2 % were accepted."""
    rng = random.Random(options.seed)
    outcomes: Counter[str] = Counter()
    for subject, task in subjects(options, rng):
        if time.process_time() > options.seconds or outcomes.total() >= options.count:
            break
        if task is None:
            continue
        candidate = rng.choice(subject.analysed.candidates)
        name, _ = rng.choice(candidate.replaced)
        lines = [_zeroed(line, name, subject) for line in subject.lines]
        if lines == subject.lines:
            continue
        said = subject.checked(lines, options)
        outcome = "rejected" if not said.ok else "accepted" if said.checked else "not checked"
        outcomes[outcome] += 1
        if outcome == "accepted":
            print(f"accepted: {subject.name}: {name} is zero", flush=True)
    whole = max(outcomes.total(), 1)
    print(f"{whole} zeros: " + ", ".join(f"{count} {what}" for what, count in outcomes.items()))
    print(f"{100 * outcomes['accepted'] / whole:.1f} % accepted; bar 2 %")
    return max(outcomes["accepted"] - whole * 2 // 100, 0)


def _zeroed(line: str, name: str, subject: Subject) -> str:
    kind = type_of(subject.analysed.values.made[name])
    if not line.startswith(f"  {name} = ") or not kind:
        return line
    return f"  {name} = select i1 true, {kind} zeroinitializer, {kind} zeroinitializer"


def plant_nothing(options: Options) -> int:
    """Run random choices; return how many were called wrong."""
    rng = random.Random(options.seed)
    outcomes: Counter[str] = Counter()
    for _, task in subjects(options, rng):
        if time.process_time() > options.seconds or outcomes.total() >= options.count:
            break
        if task is None:
            continue
        share = rng.random()
        shared = tuple(place for place in range(len(task.names)) if rng.random() < share) or (0,)
        said = compared(str(task.module), task.analysed.function.name, shared, options.inputs, options.seed)
        outcome = (
            "wrong"
            if not said.ok
            else "validated"
            if said.checked
            else "in part"
            if said.unseen
            else "not checked"
        )
        outcomes[outcome] += 1
        if outcome == "wrong":
            print(f"called wrong: {task.uri}: {shared}: {said.detail}", flush=True)
    print(
        f"{outcomes.total()} right choices: "
        + ", ".join(f"{count} {what}" for what, count in outcomes.items())
    )
    return outcomes["wrong"]


def main(options: Options) -> None:
    """Plant, and print what became of it."""
    options = replace(options, count=options.count or COUNTS[options.what])
    plant = {"wrong": plant_wrong, "zero": plant_zeros, "right": plant_nothing}[options.what]
    sys.exit(1 if plant(options) else 0)


if __name__ == "__main__":
    main(tyro.cli(Options))
