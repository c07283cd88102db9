"""Wrong results of linalg's programs, which the checks must refuse, and right schedules, which they must not.

`mutations` and `schedules` are what `checks.py` runs over all environments. By itself:

    python benchmarks/checks_linalg.py --mutations 2000 --schedules 500
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray

from irgym.core.cost import Validation
from irgym.core.schedule import Schedule
from irgym.envs.linalg import checking
from irgym.envs.linalg.environment import LIMITS, LINALG
from irgym.envs.linalg.task import LinalgState, LinalgTask
from irgym.measure.checking.problem import Problem
from irgym.measure.child import Child
from irgym.measure.evaluators import failure_of
from irgym.measure.protocol import Raised, Returned

OPERATORS = (
    "linalg://matmul/48x64x32",
    "linalg://matmul/7x5x3",
    "linalg://batch_matmul/4x24x32x16",
    "linalg://conv2d/1x8x18x18x16x3x3",
    "linalg://conv2d/2x3x17x17x8x5x5?stride=2",
    "linalg://maxpool/1x16x24x24x3?stride=3",
    "linalg://maxpool/1x8x15x15x3?stride=2",
    "linalg://add/12x16x28",
    "linalg://relu/64x96",
    "linalg://softmax/32x48",
    "linalg://layernorm/32x48",
    "linalg://lattice/1",
    *(f"linalg://sequence/{seed}?length={2 + seed % 5}" for seed in range(10)),
    *(uri for name in ("train", "test") for uri in getattr(LINALG.dataset("tiny"), name)),
)
"""Programs of every operator, small so that the program as written does not take all the time."""

NETWORKS = ("linalg://transformer?length=8&width=16", "linalg://resnet18?size=32")
"""Networks, which take seconds to compile."""


def elementwise(shape: str, arguments: tuple[str, ...], result: str, *body: str) -> str:
    """Return a program on tensors of one shape; `body` computes `%r` from `%a`, `%b` and constants."""
    names = "abc"[: len(arguments)]
    maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * (len(arguments) + 1))
    types = ", ".join(f"tensor<{shape}x{one}>" for one in arguments)
    signature = ", ".join(
        f"%t{name}: tensor<{shape}x{one}>" for name, one in zip(names, arguments, strict=True)
    )
    inputs = ", ".join(f"%t{name}" for name in names)
    block = ", ".join(f"%{name}: {one}" for name, one in zip(names, arguments, strict=True))
    lines = "\n      ".join(body)
    return f"""func.func @main({signature}) -> tensor<{shape}x{result}> {{
  %into = tensor.empty() : tensor<{shape}x{result}>
  %0 = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({inputs} : {types}) outs(%into : tensor<{shape}x{result}>) {{
    ^bb0({block}, %o: {result}):
      {lines}
      linalg.yield %r : {result}
  }} -> tensor<{shape}x{result}>
  return %0 : tensor<{shape}x{result}>
}}
"""


ARGMAX = """func.func @main(%x: tensor<12x40xf32>) -> (tensor<12xf32>, tensor<12xi64>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %a = tensor.empty() : tensor<12xf32>
  %b = tensor.empty() : tensor<12xi64>
  %f = linalg.fill ins(%low : f32) outs(%a : tensor<12xf32>) -> tensor<12xf32>
  %g = linalg.fill ins(%zero : i64) outs(%b : tensor<12xi64>) -> tensor<12xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<12x40xf32>) outs(%f, %g : tensor<12xf32>, tensor<12xi64>) {
    ^bb0(%in: f32, %most: f32, %place: i64):
      %n = linalg.index 1 : index
      %here = arith.index_cast %n : index to i64
      %more = arith.cmpf ogt, %in, %most : f32
      %0 = arith.select %more, %in, %most : f32
      %1 = arith.select %more, %here, %place : i64
      linalg.yield %0, %1 : f32, i64
  } -> (tensor<12xf32>, tensor<12xi64>)
  return %r#0, %r#1 : tensor<12xf32>, tensor<12xi64>
}
"""

GATHER = """func.func @main(%table: tensor<100x16xf32>, %rows: tensor<24xi64>) -> tensor<24x16xf32> {
  %e = tensor.empty() : tensor<24x16xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<24xi64>) outs(%e : tensor<24x16xf32>) {
    ^bb0(%row: i64, %o: f32):
      %i = arith.index_cast %row : i64 to index
      %j = linalg.index 1 : index
      %v = tensor.extract %table[%i, %j] : tensor<100x16xf32>
      linalg.yield %v : f32
  } -> tensor<24x16xf32>
  return %0 : tensor<24x16xf32>
}
"""

SUM = """func.func @main(%x: tensor<16x300xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %share = arith.constant 300.0 : f32
  %a = tensor.empty() : tensor<16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%a : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x300xf32>) outs(%f : tensor<16xf32>) {
    ^bb0(%in: f32, %sum: f32):
      %e = math.exp %in : f32
      %q = arith.divf %e, %share : f32
      %0 = arith.addf %q, %sum : f32
      linalg.yield %0 : f32
  } -> tensor<16xf32>
  return %s : tensor<16xf32>
}
"""

FILES = {
    "millionth": elementwise(
        "16x24", ("f32",), "f32", "%c = arith.constant 1.0e-6 : f32", "%r = arith.mulf %a, %c : f32"
    ),
    "integers": elementwise(
        "16x24", ("i32",), "i32", "%c = arith.constant 100000 : i32", "%r = arith.muli %a, %c : i32"
    ),
    "quotients": elementwise("16x24", ("i32", "i32"), "i32", "%r = arith.divsi %a, %b : i32"),
    "bytes": elementwise("16x24", ("i8", "i8"), "i8", "%r = arith.addi %a, %b : i8"),
    "less": elementwise("16x24", ("f32", "f32"), "i1", "%r = arith.cmpf olt, %a, %b : f32"),
    "masked": elementwise(
        "16x24",
        ("f32", "i1"),
        "f32",
        "%c = arith.constant -1.0e9 : f32",
        "%r = arith.select %b, %a, %c : f32",
    ),
    "masked-by-sum": elementwise(
        "16x24",
        ("f32", "i1"),
        "f32",
        "%c = arith.constant -1.0e9 : f32",
        "%m = arith.uitofp %b : i1 to f32",
        "%n = arith.mulf %m, %c : f32",
        "%r = arith.addf %a, %n : f32",
    ),
    "lowest": elementwise(
        "16x24",
        ("f32", "i1"),
        "f32",
        "%c = arith.constant 0xFF7FFFFF : f32",
        "%r = arith.select %b, %a, %c : f32",
    ),
    "sigmoid": elementwise(
        "16x24",
        ("f32",),
        "f32",
        "%one = arith.constant 1.0 : f32",
        "%n = arith.negf %a : f32",
        "%e = math.exp %n : f32",
        "%s = arith.addf %e, %one : f32",
        "%r = arith.divf %one, %s : f32",
    ),
    "sine": elementwise(
        "16x24",
        ("f32",),
        "f32",
        "%c = arith.constant 300.0 : f32",
        "%s = arith.mulf %a, %c : f32",
        "%r = math.sin %s : f32",
    ),
    "logarithm": elementwise(
        "16x24", ("f32",), "f32", "%s = arith.mulf %a, %a : f32", "%r = math.log %s : f32"
    ),
    "argmax": ARGMAX,
    "gather": GATHER,
    "mean-exp": SUM,
}
"""Programs as users write them: whole numbers, truth values, masks, places, functions."""


def tasks(folder: Path, networks: bool = True) -> Iterator[LinalgTask]:
    """Yield the programs; those of `FILES` are written into a folder."""
    for name, text in FILES.items():
        file = folder / f"{name}.mlir"
        file.write_text(text)
        yield LINALG.task(f"linalg:{file}")
    for uri in (*OPERATORS, *(NETWORKS if networks else ())):
        yield LINALG.task(uri)


Array = NDArray[Any]
Change = Callable[[Array, np.random.Generator, Problem], Array]
"""Makes a wrong result of a right one."""


def _one(change: Callable[[Any], Any]) -> Change:
    """Return the change of one element."""

    def changed(result: Array, rng: np.random.Generator, checked: Problem) -> Array:
        result = result.copy()
        place = rng.integers(result.size)
        result.reshape(-1)[place] = change(result.reshape(-1)[place])
        return result

    return changed


def _short(result: Array, rng: np.random.Generator, checked: Problem) -> Array:
    """Take from one sum the product of one element of each argument."""
    floats = [one for one in checked.inputs if one.dtype.kind == "f"]
    term = np.prod([one.reshape(-1)[rng.integers(one.size)] for one in floats])
    return _one(lambda one: one - result.dtype.type(term))(result, rng, checked)


def _part_blank(result: Array, rng: np.random.Generator, checked: Problem) -> Array:
    result = result.copy()
    flat = result.reshape(-1)
    flat[flat.size // 2 :] = flat[: flat.size - flat.size // 2]
    return result


def _rounded_to(bits: int) -> Change:
    """Return the rounding of float32 to a mantissa of fewer bits."""

    def changed(result: Array, rng: np.random.Generator, checked: Problem) -> Array:
        lost = 23 - bits
        kept = (result.view(np.uint32).astype(np.uint64) + (1 << (lost - 1))) >> lost << lost
        return np.where(np.isfinite(result), kept.astype(np.uint32).view(np.float32), result)

    return changed


def _small_ones(result: Array, rng: np.random.Generator, checked: Problem) -> Array:
    """Multiply all but the greatest by -0.5."""
    size = np.abs(result)
    return np.where(size < 0.9 * size.max(), -0.5 * result, result).astype(result.dtype)


def _swapped(result: Array, rng: np.random.Generator, checked: Problem) -> Array:
    result = result.copy()
    flat = result.reshape(-1)
    place = rng.integers(max(flat.size - 1, 1))
    flat[place : place + 2] = flat[place : place + 2][::-1].copy()
    return result


ANY: dict[str, Change] = {
    "zeros": lambda result, rng, checked: np.zeros_like(result),
    "permuted": lambda result, rng, checked: rng.permutation(result.reshape(-1)).reshape(result.shape),
    "one place on": lambda result, rng, checked: np.roll(result, 1),
    "turned round": lambda result, rng, checked: result.reshape(-1)[::-1].reshape(result.shape).copy(),
    "neighbours swapped": _swapped,
    "second half is the first": _part_blank,
}

FLOATS: dict[str, Change] = {
    "the opposite": lambda result, rng, checked: -result,
    "times 1.001": lambda result, rng, checked: result * np.float32(1.001),
    "times -0.5 but the greatest": _small_ones,
    "one by 1 %": _one(lambda one: one * np.float32(1.01)),
    "one is 0": _one(lambda one: np.float32(0.0)),
    "one is no number": _one(lambda one: np.float32(np.nan)),
    "one is infinite": _one(lambda one: np.float32(np.inf)),
    "one sum short of a product": _short,
    "in bf16": _rounded_to(7),
    "in f16": _rounded_to(10),
}

WHOLE: dict[str, Change] = {
    "one more": lambda result, rng, checked: result + result.dtype.type(1),
    "plus 9": lambda result, rng, checked: result + result.dtype.type(9),
    "one of them one more": _one(lambda one: one + type(one)(1)),
    "the opposite": lambda result, rng, checked: -result,
}

TRUTHS: dict[str, Change] = {
    "the opposite": lambda result, rng, checked: ~result,
    "all true": lambda result, rng, checked: np.ones_like(result),
    "one of them turned": _one(lambda one: not one),
}

UNWRITTEN = "unwritten"


def _changes(kind: str) -> dict[str, Change]:
    return ANY | {"f": FLOATS, "b": TRUTHS}.get(kind, WHOLE)


def mutations(seed: int, count: int, networks: bool = True) -> Iterator[tuple[str, str, bool, bool]]:
    """Yield wrong results: program, what was changed, whether it was accepted, and whether it counts.

    Each result of each program is changed in all ways, with other inputs in each turn. A change counts that
    exceeds rounding: where results are exact any does, elsewhere one by more than a thousandth of a number
    that is not much smaller than the others.
    """
    with tempfile.TemporaryDirectory() as folder:
        done, turn = 0, 0
        programs = list(tasks(Path(folder), networks))
        while done < count:
            for task in programs:
                rng = np.random.default_rng([seed, turn, done])
                tried = checking.problems(task.text, 2, seed + 1000 * turn)
                for found in _of_program(task, tried, rng):
                    yield found
                    done += 1
                    if done == count:
                        return
            turn += 1


def _of_program(
    task: LinalgTask, tried: list[Problem], rng: np.random.Generator
) -> Iterator[tuple[str, str, bool, bool]]:
    for place, one in enumerate(tried[0].expected):
        changes = _changes(one.values.dtype.kind)
        for name in (UNWRITTEN, *changes):
            verdicts = [_tried(checked, place, changes.get(name), rng) for checked in tried]
            accepted = all(verdict for verdict, _ in verdicts)
            yield task.uri, f"{name} (result {place})", accepted, any(counts for _, counts in verdicts)


def _tried(
    checked: Problem, place: int, change: Change | None, rng: np.random.Generator
) -> tuple[bool, bool]:
    """Return whether a changed result would be accepted, and whether the change counts."""
    buffers = checking.buffers_of(checked)
    counts = change is None
    for other, (array, one) in enumerate(zip(buffers.results, checked.expected, strict=True)):
        if other != place:
            array[...] = one.values
        elif change is not None:
            with np.errstate(all="ignore"):
                array[...] = change(one.values, rng, checked)
            counts = _differs(one.values, array, exact=one.allowance is None)
    return checking.verdict(checked, buffers) == "", counts


def _differs(right: Array, wrong: Array, exact: bool) -> bool:
    if exact:
        return not np.array_equal(right, wrong, equal_nan=right.dtype.kind == "f")
    if right.dtype.kind != "f":
        return bool((right != wrong).mean() > 0.02)
    with np.errstate(invalid="ignore"):
        off = np.abs(wrong.astype(np.float64) - right)
    special = np.isfinite(right) & ~np.isfinite(wrong)
    typical = np.median(np.abs(right[np.isfinite(right)]))
    return bool((special | (off > 1e-3 * np.maximum(np.abs(right), 0.01 * typical))).any())


def random_state(task: LinalgTask, rng: np.random.Generator) -> tuple[LinalgState, Schedule]:
    """Return the end of a random episode, and its schedule."""
    state, actions = task.initial(), []
    while not task.terminal(state):
        actions.append(task.space.sample(task.mask(state), rng))
        state = task.step(state, actions[-1])
    return state, Schedule(tuple(actions))


def schedules(seed: int, count: int, networks: bool = True) -> Iterator[tuple[str, str, Validation]]:
    """Yield right schedules: program, schedule, and what the check says of it, on both kinds of inputs."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder, Child(LIMITS) as child:
        programs = list(tasks(Path(folder), networks))
        for number in range(count):
            # All schedules of a program follow each other, so that what it is checked on is made once.
            task = programs[number * len(programs) // count]
            state, schedule = random_state(task, rng)
            call = task.validation(state, 2, seed)
            reply = child.call(call)
            if isinstance(reply, Returned):
                said = reply.value
            else:
                detail = reply.message if isinstance(reply, Raised) else failure_of(reply).detail
                said = Validation(False, float("inf"), "", 0, detail)
            yield task.uri, schedule.text(task.space), said


@dataclass(frozen=True)
class Options:
    """What to check."""

    mutations: int = 2000
    """Wrong results."""
    schedules: int = 500
    """Right schedules."""
    seed: int = 0
    """Seed of both."""
    networks: bool = True
    """Whether networks are among the programs."""


def main(options: Options) -> None:
    """Print what was accepted although wrong, and refused although right."""
    told = Counter[str]()
    for program, name, accepted, counted in mutations(options.seed, options.mutations, options.networks):
        told["not counted" if not counted else "accepted" if accepted else "refused"] += 1
        if accepted and counted:
            print(f"accepted: {program}: {name}", flush=True)
    print(f"{options.mutations} wrong results: {dict(told)}")
    right = Counter[str]()
    for program, text, said in schedules(options.seed, options.schedules, options.networks):
        right["blind" if said.blind else "accepted" if said.ok else "refused"] += 1
        if not said.checked:
            print(f"not checked: {program}: {text}: {said.detail or said.blind}", flush=True)
    print(f"{options.schedules} right schedules: {dict(right)}")
    sys.exit(1 if told["accepted"] or right["refused"] else 0)


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
