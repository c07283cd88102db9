"""The checks of hlo, tried with wrong results and with right schedules; see `checks.py`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from fuzz.hlo.passes import episodes
from mutations import MUTATIONS, Array, Mutation

from irgym.core.cost import Validation
from irgym.envs.hlo.checking.checks import TOLERANCE, Original
from irgym.envs.hlo.checking.inputs import turned, without_greatest
from irgym.envs.hlo.compiling.store import read_program
from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.programs.families import FAMILIES
from irgym.envs.hlo.programs.uris import parse_program
from irgym.measure.checking.agreement import compare
from irgym.measure.checking.expected import Expected
from irgym.measure.checking.problem import validation

ROUNDS = ("mode=forward", "optimizer=sgd", "dtype=bf16&mode=forward", "", "dtype=bf16")
"""Forms of the families, one round over all of them each; what a family lacks is left out of it."""

UNBUILT = "hlo://vae?dtype=bf16&mode=forward"
"""A program that jax refuses to build."""

STEPS = 25
"""Passes of an episode."""

SIDE_BY_SIDE = 4
"""Schedules of a program that follow each other, so that the original is compiled once."""

SURELY = 2.0
"""How many times what other runs allow is surely more than rounding."""


def programs() -> list[str]:
    """Return the programs that are tried, the quickest to compile first."""
    families = sorted(FAMILIES, key=lambda name: (name not in ("mlp", "gnn", "pinn"), name))
    found = [parse_program(f"hlo://{name}?{_form(name, form)}").uri for form in ROUNDS for name in families]
    return [uri for uri in dict.fromkeys(found) if uri != UNBUILT]


def _form(family: str, form: str) -> str:
    known = {option.name for option in FAMILIES[family].options}
    return "&".join(word for word in form.split("&") if word.partition("=")[0] in known)


def _narrow(mutate: Mutation) -> Mutation:
    """Return a mutation that also takes the types of `ml_dtypes`."""

    def mutated(values: Array, rng: np.random.Generator) -> Array:
        if values.dtype.kind != "V":
            return mutate(values, rng)
        return mutate(values.astype(np.float32), rng).astype(values.dtype)

    return mutated


WRONG: Mapping[str, Mutation] = {
    **{name: _narrow(mutate) for name, mutate in MUTATIONS.items()},
    "another shape": lambda values, rng: values.reshape(1, *values.shape),
    "another type": lambda values, rng: values.astype(np.float64 if values.dtype != np.float64 else np.int8),
}


def mutations(seed: int, count: int) -> Iterator[tuple[str, str, bool, bool]]:
    """Yield for each pair the program, the mutation, whether it would be validated, and whether it is wrong.

    A mutation is that of one result. It is wrong where it takes a number further than rounding does, which
    another few runs tell, with other changes of the arguments.
    """
    rng = np.random.default_rng(seed)
    uris = programs()
    number = place = 0
    while number < count:
        uri = uris[place % len(uris)]
        original = Original(read_program(str(HLO.task(uri).modules.file)))
        problem = original.problem(seed + place)
        right = [expected.values for expected in problem.expected]
        fresh = original.expected(problem.inputs, seed + place + 1_000_000)
        computed = {
            "on other arguments": original.run(turned(problem.inputs)),
            "a number of each argument left out": original.run(without_greatest(problem.inputs)),
        }
        for name in [*WRONG, *computed]:
            which = int(rng.integers(len(right)))
            wrong = WRONG[name](right[which], rng) if name in WRONG else computed[name][which]
            found = problem.judge([*right[:which], wrong, *right[which + 1 :]])
            accepted = validation([problem], [found], TOLERANCE).checked
            yield f"{uri} result {which}", name, accepted, _is_wrong(fresh[which], wrong)
            number += 1
        place += 1


def _is_wrong(expected: Expected, result: Array) -> bool:
    """Say whether a result is off by more than rounding, as another few runs tell."""
    allowance = None if expected.allowance is None else SURELY * expected.allowance
    wide = replace(expected, allowance=allowance, jumps=2 * expected.jumps, jump=SURELY * expected.jump)
    return not compare(wide, result).ok


def schedules(seed: int, count: int) -> Iterator[tuple[str, str, Validation]]:
    """Yield for each right schedule the program, its text and the validation."""
    rng = np.random.default_rng(seed)
    uris = programs()
    number = place = 0
    with HLO.bench() as bench:
        while number < count:
            task = HLO.task(uris[place % len(uris)])
            place += 1
            for state in episodes(task, min(SIDE_BY_SIDE, count - number), STEPS, rng):
                if not state.failure:
                    text = task.key(state)
                    yield task.uri, text, bench.call(task.validation(state, 1, seed + place))
                    number += 1
