"""Trials of linalg's checks with wrong results and with right schedules; see `checks.py`."""

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from fuzz.linalg.files import FILES
from fuzz.linalg.schedules import PROGRAMS, random_state
from mutations import MUTATIONS, Array, Mutation

from irgym.core.cost import Validation
from irgym.envs.linalg.checking import prepared as checking
from irgym.envs.linalg.compiling.contexts import CompileError
from irgym.envs.linalg.environment import LIMITS, LINALG
from irgym.envs.linalg.task import LinalgTask
from irgym.measure.checking.problem import Problem
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import OutOfMemory, Raised, Returned, TimedOut

SMALL = (
    *PROGRAMS,
    "linalg://matmul/7x5x3",
    "linalg://lattice/1",
    *(uri for split in (LINALG.dataset("tiny").train, LINALG.dataset("tiny").test) for uri in split),
    "linalg://transformer?length=8&width=16",
    "linalg://resnet18?size=32",
)
"""Programs of every operator, and networks, which take seconds to compile."""


def programs(folder: Path) -> list[str]:
    """Return the URIs of all programs; those of `FILES` are written into a folder."""
    for name, text in FILES.items():
        (folder / f"{name}.mlir").write_text(text)
    return [*(f"linalg:{folder / name}.mlir" for name in FILES), *SMALL]


def _one(change: Callable[[float], float]) -> Mutation:
    """Return the mutation of a single number."""

    def changed(values: Array, rng: np.random.Generator) -> Array:
        wrong = values.copy()
        place = int(rng.integers(values.size))
        wrong.reshape(-1)[place] = change(float(values.reshape(-1)[place]))
        return wrong

    return changed


def _half_twice(values: Array, rng: np.random.Generator) -> Array:
    """Repeat the first half in place of the second."""
    wrong = values.copy()
    flat = wrong.reshape(-1)
    half = flat.size // 2
    flat[flat.size - half :] = flat[:half]
    return wrong


def _beside_the_greatest(values: Array, rng: np.random.Generator) -> Array:
    """Multiply all numbers except the greatest by -0.5, as for numbers next to a mask."""
    size = np.abs(values)
    return np.where(size < 0.9 * size.max(), -0.5 * values, values).astype(values.dtype)


def _half_precision(values: Array, rng: np.random.Generator) -> Array:
    """Round to the 11 bits of float16, at any magnitude."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(fraction.astype(np.float16).astype(values.dtype), exponent)


ALWAYS: Mapping[str, Mutation] = {**MUTATIONS, "its first half twice": _half_twice}

FLOATS: Mapping[str, Mutation] = {
    "times -0.5 beside the greatest": _beside_the_greatest,
    "11 bits": _half_precision,
    "one is no number": _one(lambda value: math.nan),
    "one is infinite": _one(lambda value: math.inf),
}

WHOLE: Mapping[str, Mutation] = {"plus 9": lambda values, rng: values + values.dtype.type(9)}

SHORT = "one product missing"
"""A mutation: the product of one number of each argument is subtracted from a sum."""

UNWRITTEN = "not written"
"""A mutation: nothing is written."""


def _changes(kind: str) -> Sequence[str]:
    return [*ALWAYS, UNWRITTEN, *{"f": (*FLOATS, SHORT), "i": WHOLE}.get(kind, ())]


def _wrong(name: str, right: Array, checked: Problem, rng: np.random.Generator) -> Array:
    if name == SHORT:
        floats = [array.reshape(-1) for array in checked.inputs if array.dtype.kind == "f"]
        term = float(np.prod([array[rng.integers(array.size)] for array in floats]))
        return _one(lambda value: value - term)(right, rng)
    with np.errstate(all="ignore"):
        return {**ALWAYS, **FLOATS, **WHOLE}[name](right, rng)


def mutations(seed: int, count: int) -> Iterator[tuple[str, str, bool, bool]]:
    """Yield programs and mutations, whether each would be validated, and whether it is wrong.

    All mutations are applied to each result of each program, on new inputs in each turn, through the memory
    that candidates write to. A mutation is wrong if it changes an exact result, or if it changes a number
    that is not much smaller than the others by more than a thousandth.
    """
    with tempfile.TemporaryDirectory() as folder:
        uris, done, turn = programs(Path(folder)), 0, 0
        while done < count:
            for uri in uris:
                task = LINALG.task(uri)
                rng = np.random.default_rng([seed, turn, done])
                for pair in _of_program(task, checking.problems(task.text, 2, seed + 10 * turn), rng):
                    yield pair
                    done += 1
                    if done == count:
                        return
            turn += 1


def _of_program(
    task: LinalgTask, problems: Sequence[Problem], rng: np.random.Generator
) -> Iterator[tuple[str, str, bool, bool]]:
    for place, result in enumerate(problems[0].expected):
        for name in _changes(result.values.dtype.kind):
            tried = [_tried(checked, place, name, rng) for checked in problems]
            accepted, wrong = all(passed for passed, _ in tried), any(differs for _, differs in tried)
            yield task.uri, name, accepted, wrong


def _tried(checked: Problem, place: int, name: str, rng: np.random.Generator) -> tuple[bool, bool]:
    """Return whether a mutated result is accepted, and whether it is wrong."""
    buffers, wrong = checking.buffers_of(checked), True
    for other, (array, wanted) in enumerate(zip(buffers.results, checked.expected, strict=True)):
        if other != place:
            array[...] = wanted.values
        elif name != UNWRITTEN:
            array[...] = _wrong(name, wanted.values, checked, rng)
            wrong = _differs(wanted.values, array, exact=wanted.allowance is None)
    return checking.verdict(checked, buffers) == "", wrong


def _differs(right: Array, wrong: Array, exact: bool) -> bool:
    if exact or right.dtype.kind != "f":
        return not np.array_equal(right, wrong, equal_nan=right.dtype.kind == "f")
    with np.errstate(invalid="ignore"):
        off = np.abs(wrong.astype(np.float64) - right)
    finite = np.isfinite(right)
    typical = np.median(np.abs(right[finite].astype(np.float64))) if finite.any() else 0.0
    least = 1e-3 * np.maximum(np.abs(right), 0.01 * typical)
    return bool(((finite & ~np.isfinite(wrong)) | (off > least)).any())


def schedules(seed: int, count: int) -> Iterator[tuple[str, str, Validation]]:
    """Yield the program, the text and the validation of right schedules, on both kinds of inputs.

    Schedules of a program are adjacent, so that its problems are prepared once. Schedules that take too long
    to compile are skipped; those that do not compile are printed and skipped.
    """
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder, closing(Child(LIMITS)) as child:
        uris, done = programs(Path(folder)), 0
        while done < count:
            task = LINALG.task(uris[done * len(uris) // count])
            state, schedule = random_state(task, rng)
            reply = child.call(task.validation(state, 2, seed))
            if isinstance(reply, TimedOut | OutOfMemory):
                continue
            if isinstance(reply, Raised) and isinstance(reply.user_error, CompileError):
                print(f"NOT COMPILED linalg {task.uri} {schedule.text(task.space)!r}: {reply.message}")
                continue
            said = reply.value if isinstance(reply, Returned) else None
            if said is None:
                detail = reply.message if isinstance(reply, Raised) else str(reply)
                said = Validation(False, math.inf, "", 0, detail)
            yield task.uri, schedule.text(task.space), said
            done += 1
