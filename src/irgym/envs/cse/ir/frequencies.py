"""Block frequencies, estimated from control flow alone."""

from collections.abc import Sequence

import numpy as np

from irgym.envs.cse.ir.flow import Flow

STAYS = 7.0
"""Weight of a branch that stays in a loop, relative to one that leaves it: loops run eight times."""

COLD = 0.02
"""Weight of a branch to a block that never returns, relative to one that does."""

LONGEST = 0.999
"""Greatest probability of another iteration, so that loops without an exit have finite frequencies."""

LEAST = 1e-6
"""Least frequency."""


def frequencies(flow: Flow, cold: Sequence[bool]) -> dict[int, float]:
    """Return the executions of each block per call.

    Branches are weighted in the manner of Ball and Larus (Branch Prediction for Free, PLDI 1993): loops
    continue, and blocks that never return are unlikely. The frequencies then solve a linear system.

    Args:
        flow: The control flow.
        cold: For each block, whether it never returns.
    """
    size = len(flow.order)
    system = np.eye(size)
    for block in flow.order:
        found = list(zip(flow.successors[block], shares(flow, cold, block), strict=True))
        again = sum(share for following, share in found if flow.place[following] <= flow.place[block])
        for following, share in found:
            # In a set of blocks without an exit, the last block in this order has only such edges back.
            returns = flow.place[following] <= flow.place[block]
            kept = share * LONGEST / again if returns and again > LONGEST else share
            system[flow.place[following], flow.place[block]] -= kept
    entered = np.zeros(size)
    entered[0] = 1.0
    solved = np.linalg.solve(system, entered)
    return {block: max(float(solved[place]), LEAST) for place, block in enumerate(flow.order)}


def shares(flow: Flow, cold: Sequence[bool], block: int) -> list[float]:
    """Return the branch probabilities of a block, one for each successor."""
    own = [body for body in flow.loops.values() if block in body]
    following = flow.successors[block]
    leaves = [any(successor not in body for body in own) for successor in following]
    some_leave = any(leaves)
    weights = [
        COLD if cold[successor] else STAYS if some_leave and not left else 1.0
        for successor, left in zip(following, leaves, strict=True)
    ]
    whole = sum(weights)
    return [weight / whole for weight in weights]
