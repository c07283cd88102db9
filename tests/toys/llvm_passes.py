"""LLVM's passes on modules as text, for tests; it runs in a child."""

from collections.abc import Sequence

from irgym.envs.llvm.compiling.installed import PREFERRED
from irgym.envs.llvm.compiling.library import Context, library
from irgym.measure.passes.store import PassFailure


def after_passes(text: str, sequences: Sequence[Sequence[str]]) -> list[str]:
    """Return the text of a module after each of some sequences of passes; empty where a pass is refused."""
    found: list[str] = []
    for passes in sequences:
        module = Context(library(PREFERRED), named=True).read(text.encode(), "a test")
        try:
            for single in passes:
                module.run(single)
        except PassFailure:
            found.append("")
        else:
            found.append(module.text())
    return found
