"""The observation of policies: the current operation, its user and its producer, as scheduled so far.

MLIR RL describes the original operations (arXiv 2409.11068). Here bounds and accesses are those of the
innermost tile, so that a policy sees the effects of its actions.
"""

import math

import numpy as np
from numpy.typing import NDArray

from irgym.envs.linalg.actions import LOOPS, divisors
from irgym.envs.linalg.scheduling.operations import Access, OperationKind
from irgym.envs.linalg.scheduling.transformations import STEPS, Scheduled, can_vectorise, packed
from irgym.envs.linalg.state import LinalgState
from irgym.envs.linalg.transitions import Transitions

LOADS = 3
"""Number of loads of an operation that are described; further loads are left out."""

KINDS = tuple(OperationKind)

FEATURES = 1 + len(KINDS) + 7 * LOOPS + (LOADS + 1) * (2 * LOOPS + 1) + 5 + 9
"""Length of the description of an operation."""

OPERATIONS = 3
"""Number of operations described: the current one, its user, its producer."""


def features(task: Transitions, state: LinalgState) -> NDArray[np.float32]:
    """Return the descriptions of the current operation, its user and its producer, shape [3, FEATURES].

    A row of zeros stands for a missing operation. Of several producers, the one with the most arithmetic is
    described. The columns of an operation are:

    - whether it exists, and its kind;
    - for each loop: whether it exists, the logarithm of its bound, whether it is parallel, the share of it
      that the last tile left, its place in an unfinished interchange, the greatest power of two up to 64 and
      the greatest tile size up to 16 that divide its bound;
    - for each of three loads and the store: whether it exists (2 if packed), and for each loop whether it
      moves along the tensor, and whether it moves along the tensor's last dimension;
    - arithmetic, sizes, and history.
    """
    rows = np.zeros((OPERATIONS, FEATURES), dtype=np.float32)
    if task.terminal(state):
        return rows
    place = task.at_hand(state)
    _describe(rows[0], task, state.operations[place], state.placed, state.spent)
    users = [user for user in task.program.operations[place].users if user >= 0]
    if users:
        _describe(rows[1], task, state.operations[users[0]])
    producers = [
        load.producer
        for load in task.program.operations[place].loads
        if load.producer is not None and load.producer in task.program.turns
    ]
    if producers:
        heaviest = max(producers, key=lambda producer: task.program.operations[producer].flops)
        _describe(rows[2], task, state.operations[heaviest])
    return rows


def _describe(
    row: NDArray[np.float32],
    task: Transitions,
    scheduled: Scheduled,
    placed: tuple[int, ...] = (),
    spent: int = 0,
) -> None:
    """Fill in the description of one operation, shape [FEATURES]."""
    operation = scheduled.operation
    original = task.program.operations[operation.place]
    count = min(operation.loops, LOOPS)
    row[0] = 1.0
    row[1 + KINDS.index(operation.kind)] = 1.0
    begin = 1 + len(KINDS)
    loops = row[begin : begin + 7 * LOOPS].reshape(7, LOOPS)
    there, bounds, parallel, left, order, registers, rows = loops
    there[:count] = 1.0
    bounds[:count] = np.log2(operation.bounds[:count]) / 8.0
    parallel[:count] = operation.parallel[:count]
    if operation.loops == original.loops and not any(step.name == "interchange" for step in scheduled.steps):
        left[:count] = np.log2(operation.bounds[:count]) - np.log2(original.bounds[:count])
        left /= 8.0
    for number, loop in enumerate(placed):
        order[loop] = (number + 1) / LOOPS
    for loop, bound in enumerate(operation.bounds[:LOOPS]):
        registers[loop] = math.log2(math.gcd(bound, 64)) / 6.0
        rows[loop] = max(size for size in divisors(bound) if size <= 16) / 16.0
    begin += 7 * LOOPS
    width = 2 * LOOPS + 1
    for number, access in enumerate((*operation.loads[:LOADS], operation.store)):
        slot = LOADS if number == len(operation.loads[:LOADS]) else number
        _describe_access(row[begin + slot * width : begin + (slot + 1) * width], access, count)
        if slot < LOADS and packed(scheduled, number):
            row[begin + slot * width] = 2.0
    begin += (LOADS + 1) * width
    row[begin : begin + 5] = np.log1p(operation.arithmetic)
    touched = [math.prod(access.extents(operation.bounds)) for access in operation.accesses]
    row[begin + 5 :] = (
        math.log2(original.points) / 24.0,
        math.log2(operation.points) / 24.0,
        math.log2(sum(touched)) / 24.0,
        math.log2(max(touched)) / 24.0,
        spent / STEPS,
        float(scheduled.tiled),
        float(scheduled.parallel),
        float(scheduled.consumer >= 0) + 2.0 * scheduled.vectorised,
        float(can_vectorise(scheduled)),
    )


def _describe_access(row: NDArray[np.float32], access: Access, loops: int) -> None:
    """Fill in the description of an access, shape [2 LOOPS + 1]."""
    row[0] = 1.0 if access.linear else -1.0
    for dimension, form in enumerate(access.forms):
        last = dimension == len(access.forms) - 1
        for loop, coefficient in enumerate(form[:loops]):
            if coefficient:
                row[1 + loop] = 1.0
                if last:
                    row[1 + LOOPS + loop] = min(abs(coefficient), 4) / 2.0
