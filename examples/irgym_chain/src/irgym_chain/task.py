"""The task: join neighbouring matrices of a chain until one is left."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Call, Job, Measurement, Outcome, Validation
from irgym.core.kinds import ActionKind
from irgym.core.objective import Objective
from irgym.core.observation import ObservationView, array_view, views_of
from irgym.core.task import Task, form_of

MAX_DIMS = 12
PLACES = tuple(range(1, MAX_DIMS - 1))
SPACE = ActionSpace((ActionKind("join", (PLACES,)),))

Joins = tuple[int, ...]
"""A state: the places joined so far. It is immutable and hashable, so a fork is a variable."""


def expression(dims: Sequence[int], joins: Joins) -> tuple[str, int]:
    """Return the product as text, and its multiplications; what is not joined yet is joined from the left."""
    left = list(dims)
    names = [f"A{place}" for place in range(len(dims) - 1)]
    cost = 0
    for place in (*joins, *[1] * (len(dims) - 2 - len(joins))):
        cost += left[place - 1] * left[place] * left[place + 1]
        del left[place]
        names[place - 1 : place + 1] = [f"({names[place - 1]} @ {names[place]})"]
    return names[0], cost


def multiplications(dims: tuple[int, ...], joins: Joins) -> Measurement:
    """Return the cost; this runs in the isolated child process."""
    return Measurement(Outcome.OK, (float(expression(dims, joins)[1]),))


def validate(dims: tuple[int, ...], joins: Joins, inputs: int, seed: int) -> Validation:
    """Multiply random matrices in both orders."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(inputs):
        matrices = {f"A{place}": rng.standard_normal(shape) for place, shape in enumerate(pairwise(dims))}
        expected = np.linalg.multi_dot(list(matrices.values())) if len(matrices) > 1 else matrices["A0"]
        result = eval(expression(dims, joins)[0], matrices)
        worst = max(worst, float(np.abs(result - expected).max() / np.abs(expected).max()))
    return Validation(worst < 1e-9, worst, "relative error 1e-9 on standard-normal inputs", inputs)


MULTIPLICATIONS = Objective("multiplications", "", "scalar multiplications", exact=True, timed=False)


VIEWS = views_of(
    array_view(
        "dims", "logarithms of the dimensions left", (MAX_DIMS,), lambda task, state: task.dims_left(state)
    )
)
"""The observations, the default first."""


class ChainTask(Task[Joins]):
    """A chain of matrices; the cost is the number of scalar multiplications."""

    space = SPACE
    forms: Mapping[str, str] = {".txt": "numpy expression"}
    objectives = (MULTIPLICATIONS,)

    def __init__(self, dims: tuple[int, ...]) -> None:
        self.dims = dims
        self.uri = "chain://" + "x".join(map(str, dims))
        self.horizon = len(dims) - 2

    def initial(self) -> Joins:
        return ()

    def mask(self, state: Joins) -> Mask:
        left = self.horizon - len(state)
        return SPACE.mask([left > 0], [place <= left for place in PLACES])

    def step(self, state: Joins, action: Action) -> Joins:
        return (*state, PLACES[action.params[0]])

    def terminal(self, state: Joins) -> bool:
        return len(state) == self.horizon

    @property
    def views(self) -> Mapping[str, ObservationView]:
        return VIEWS

    def dims_left(self, state: Joins) -> NDArray[np.float32]:
        """Return the logarithms of the dimensions left, shape [MAX_DIMS]."""
        left = list(self.dims)
        for place in state:
            del left[place]
        sizes = [*left, *[1] * (MAX_DIMS - len(left))]
        return np.array(np.log2(sizes) / 8, np.float32)

    def key(self, state: Joins) -> str:
        return self.describe(state)

    def job(self, state: Joins) -> Job:
        call = Call("irgym_chain.task:multiplications", (self.dims, state))
        return Job(
            call,
            self.uri,
            self.key(state),
            toolchain="chain 1",
            objective=self.objective.name,
            original=not state,
            target=self.target_text,
        )

    def validation(self, state: Joins, inputs: int, seed: int) -> Call:
        return Call("irgym_chain.task:validate", (self.dims, state, inputs, seed))

    def describe(self, state: Joins) -> str:
        return expression(self.dims, state)[0]

    def export(self, state: Joins, path: Path) -> list[Path]:
        form_of(path, self.forms)
        path.write_text(self.describe(state) + "\n")
        return [path]
