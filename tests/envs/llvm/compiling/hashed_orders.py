"""Random orders of passes on two modules: one skips functions and is copied, the other does neither.

A test runs it in a child, since LLVM may end its process.
"""

import hashlib
from pathlib import Path

import numpy as np

from irgym.envs.llvm.actions import PASSES, passes_of
from irgym.envs.llvm.compiling.library import Context, Library, Module, library
from irgym.measure.passes.store import PassFailure

STEPS = 30


def differences(file: str, seed: int, orders: int) -> list[str]:
    """Return where the modules differ, or where hashes tell less or more than bitcode."""
    found: list[str] = []
    rng = np.random.default_rng(seed)
    for _ in range(orders):
        found += _order(library("llvm-23"), Path(file).read_bytes(), rng)
    return found


def _order(llvm: Library, content: bytes, rng: np.random.Generator) -> list[str]:
    module, whole = Context(llvm).read(content, "a test"), Context(llvm).read(content, "a test")
    hashes: dict[bytes, bytes] = {}
    found: list[str] = []
    for _ in range(STEPS):
        action = PASSES[kind := int(rng.integers(len(PASSES)))]
        passes = passes_of(kind, llvm.release)
        if not passes:
            continue
        try:
            module.run(passes)
            _run_whole(llvm, whole, passes)
        except PassFailure:
            break
        if module.text() != whole.text():
            return [f"{action.name} makes another module"]
        shown = hashlib.sha256(module.bitcode()).digest()
        if hashes.setdefault(shown, module.digest()) != module.digest():
            found.append(f"{action.name}: equal bitcode, other hashes")
        if rng.integers(3) == 0:
            module = module.clone()
    if len(set(hashes.values())) < len(hashes):
        found.append("other bitcode, equal hashes")
    return found


def _run_whole(llvm: Library, module: Module, passes: str) -> None:
    """Run passes on all functions; only the names of new symbols are put in order, as always."""
    error = llvm.run(module.handle, passes.encode(), module.machine, llvm.options)
    if error or llvm.native.irgym_complaint():
        raise PassFailure("a pass failed")
    llvm.hashing.rename(module.context.known, module.handle)
    module.order()
