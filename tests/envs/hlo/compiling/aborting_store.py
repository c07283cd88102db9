"""Store of a child in which one pass aborts the process, like a failed check within XLA."""

import os
import sys
from collections.abc import Sequence

from irgym.envs.hlo.actions import KIND
from irgym.envs.hlo.compiling import store


def step(requests: Sequence[store.Request]) -> list[store.Reply]:
    if any(request.kind == KIND["cse"] for request in requests):
        print("F0000 xla.cc:1] Check failed: planted == 1", file=sys.stderr, flush=True)
        os.abort()
    return store.step(requests)
