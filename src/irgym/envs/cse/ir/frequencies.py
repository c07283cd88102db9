"""How often blocks run, estimated from the flow of control alone."""

from collections.abc import Sequence

import numpy as np

from irgym.envs.cse.ir.flow import Flow

STAYS = 7.0
"""How much likelier a branch stays in a loop than leaves it: a loop runs eight times."""

COLD = 0.02
"""How likely a branch leads to a block that never returns, beside one that does."""

LONGEST = 0.999
"""Greatest probability of going round once more: a loop without an exit ends some time."""

LEAST = 1e-6
"""Least frequency."""


def frequencies(flow: Flow, cold: Sequence[bool]) -> dict[int, float]:
    """Return how often each block runs for one call.

    Branches are weighted as by Ball and Larus (Branch Prediction for Free, PLDI 1993): loops go on, and what
    never returns is not reached. The frequencies then solve a linear system.

    Args:
        flow: The flow of control.
        cold: For each block, whether it never returns.
    """
    size = len(flow.order)
    system = np.eye(size)
    for block in flow.order:
        found = list(zip(flow.successors[block], shares(flow, cold, block), strict=True))
        again = sum(share for following, share in found if flow.place[following] <= flow.place[block])
        for following, share in found:
            # Of blocks that none leaves, the last one in this order has no other edges than these.
            returns = flow.place[following] <= flow.place[block]
            kept = share * LONGEST / again if returns and again > LONGEST else share
            system[flow.place[following], flow.place[block]] -= kept
    entered = np.zeros(size)
    entered[0] = 1.0
    solved = np.linalg.solve(system, entered)
    return {block: max(float(solved[place]), LEAST) for place, block in enumerate(flow.order)}


def shares(flow: Flow, cold: Sequence[bool], block: int) -> list[float]:
    """Return how likely each of the blocks that may follow a block does."""
    own = [body for body in flow.loops.values() if block in body]
    following = flow.successors[block]
    leaves = [any(one not in body for body in own) for one in following]
    some_leave = any(leaves)
    weights = [
        COLD if cold[one] else STAYS if some_leave and not left else 1.0
        for one, left in zip(following, leaves, strict=True)
    ]
    whole = sum(weights)
    return [weight / whole for weight in weights]
