"""Store of a child in which one pass aborts the process, as LLVM does where it finds itself wrong."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from irgym.envs.llvm.actions import KIND
from irgym.envs.llvm.compiling import store


def step(requests: Sequence[store.Request]) -> list[Any]:
    if any(request.kind == KIND["gvn"] for request in requests):
        print("LLVM ERROR: planted", file=sys.stderr, flush=True)
        os.abort()
    return store.step(requests)
