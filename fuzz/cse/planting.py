"""Faults to plant in functions of LLVM's IR, by kind."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuzz.cse.terms import Terms
from irgym.envs.cse.ir.analysis import Analysed
from irgym.llvmir.ir.syntax import listed

PROGRAMS = """
#include <string.h>
typedef int (*call_t)(int, int);
struct node { int key; double weight; call_t call; struct node *next; unsigned char tag[12]; };

int poll(volatile int *port, int n) {
  int s = 0;
  for (int k = 0; k < (n & 7); k++) { port[1] = k; s += port[0]; if (port[2] > 50) port[3] = s; }
  return s + port[0] + port[0];
}
void sequence(volatile unsigned *r, unsigned v) { r[0] = v; r[1] = v ^ 3; r[0] = v; (void)r[2];
  r[1] = r[2]; }
unsigned settle(volatile unsigned *r, unsigned *out) { out[0] = r[0]; out[1] = r[0];
  r[4] = out[0] + 1; r[4] = 9; return r[1]; }
void toggle(volatile char *p, int n) { if (n > 3) { p[0] = 1; p[1] = 2; } else { p[1] = 2;
  } p[0] = 0; p[2] = p[0]; }
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
int apply(call_t f, call_t g, int a, int b) { int x = f(a, b - 1);
  if (x > 60) return g(x, a) - g(b, x); return f(x ^ a, 9); }
void deliver(struct node *n, int v) { n->call(v, n->key); n->key = v + 1;
  if (v & 1) n->call(n->key, v); n->call(0, v); }
void shift(unsigned char *p, unsigned n) { memmove(p + 1, p, n & 31); p[0] = (unsigned char)n; }
int slide(struct node *n, int k) { memmove(n->tag, n->tag + 2, 7);
  if (k > 44) memmove(n->tag + 4, n->tag, 8); return n->tag[k & 7]; }
void swap(struct node *a, struct node *b) { struct node t; memcpy(&t, a, sizeof t);
  memmove(a, b, sizeof t); memmove(b, &t, sizeof t); }
void pad(char *p, const char *q, int n) { if (n > 41) { memmove(p, q, 24);
  memmove(p + 24, q + 1, 5); } else memmove(p, q + 3, 11); }
float clamp(float x, float low, float high) { if (x < low) return low; if (x > high) return high;
  return x != x ? -x : x - 0.1f; }
double blend(double a, double b, double t) { double d = -(a - b);
  if (!(t >= 0.25)) return a + d * t; return t > 0.75 ? b : a * b + d / t; }
int order(double a, double b) { if (a < b) return -1; if (a > b) return 1; return a == b ? 0 : 2; }
double accumulate(const double *p, int n, double *out) {
  double s = 0.0, c = -0.0;
  for (int k = 0; k < (n & 7); k++) { double y = -p[k] - c; double t = s + y; c = (t - s) - y;
    s = t; if (t > 1e30) *out = -t; }
  return s * c;
}
"""
"""Functions with rare features of the data sets: volatile accesses, indirect calls, copies, numbers."""

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
class Fault:
    """A planted fault.

    Attributes:
        kind: One of `KINDS`.
        lines: Lines of the function with the fault.
        told: Description of the change.
    """

    kind: str
    lines: tuple[str, ...]
    told: str


PROVED = frozenset(("shift", "division", "sign", "edge", "constant", "extension"))
"""Kinds of which z3 may prove that a fault computes the same."""


def faults(lines: Sequence[str], function: Analysed, rng: random.Random, alike: int) -> Iterator[Fault]:
    """Yield some faults of a function that are not proved equivalent, in random order.

    Args:
        lines: Lines of the function.
        function: The function.
        rng: Draws the faults.
        alike: Greatest number of tries for each kind of fault.
    """
    terms, tried = Terms(function), Counter[str]()
    changes = [(place, *change) for place, line in enumerate(lines) for change in replaced(line)]
    rng.shuffle(changes)
    for place, kind, new in changes:
        line = lines[place]
        tried[kind] += 1
        if tried[kind] <= alike and (kind not in PROVED or not terms.equal(line, new)):
            changed = (*lines[:place], *new.split("\n"), *lines[place + 1 :])
            yield Fault(kind, changed, f"{line.strip()} -> {new.strip()}")
    accesses = list(moved(lines))
    rng.shuffle(accesses)
    for fault in accesses:
        tried[fault.kind] += 1
        if tried[fault.kind] <= alike:
            yield fault


def replaced(line: str) -> Iterator[tuple[str, str]]:
    """Yield kinds of faults, each with the changed line."""
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
    """Return a difference as the negated difference of the operands in turn: zeros differ in sign."""
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
    for place, operand in enumerate(operands):
        head, _, value = operand.rpartition(" ")
        kind = operand.split(" ")[0]
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
    for operand in (target, source):
        name = operand.rpartition(" ")[2]
        if name.startswith("%"):
            shifted = f"  %irgym.m = getelementptr i8, ptr {name}, i64 1\n"
            unmarked = re.sub(r"(nonnull|align \d+|dereferenceable\(\d+\)) ", "", operand)
            yield shifted + line.replace(operand, unmarked.replace(name, "%irgym.m"))


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
    return bool(_CALL.search(line)) and line.startswith("  ") and not any(name in line for name in known)


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
            new = _renamed(lines, name, kept)
            yield Fault(
                "load over call",
                (*new[:number], *new[number + 1 :]),
                f"{name} is {kept}, over {lines[place].strip()[:60]}",
            )


def _renamed(lines: Sequence[str], name: str, kept: str) -> list[str]:
    return [re.sub(rf"(?<![\w.]){re.escape(name)}(?![-\w.$])", lambda _: kept, line) for line in lines]
