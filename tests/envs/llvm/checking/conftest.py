"""Modules as text, and LLVM's passes on them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from irgym.core.cost import Call
from irgym.llvmir.programs import kernels
from irgym.llvmir.programs.clang import compiled
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Limits, Returned

FLAGS = (
    "-Oz",
    "-Xclang",
    "-disable-llvm-passes",
    "-fno-sanitize=undefined",
    "-g0",
    "-fno-stack-protector",
    "-w",
)

Passes = Callable[[str, Sequence[Sequence[str]]], list[str]]
"""Returns the text of a module after each sequence of passes; empty where a pass fails."""


@pytest.fixture(scope="session")
def after_passes() -> Iterator[Passes]:
    """LLVM in a child."""
    child = Child(Limits(timeout_s=120.0))

    def run(text: str, sequences: Sequence[Sequence[str]]) -> list[str]:
        found: list[str] = []
        for passes in sequences:
            reply = child.call(Call("llvm_passes:after_passes", (text, (tuple(passes),))))
            found += reply.value if isinstance(reply, Returned) else [""]
        return found

    yield run
    child.close()


@pytest.fixture(scope="session")
def kernel_texts(after_passes: Passes) -> Mapping[str, str]:
    """Unoptimised modules of the kernels by name, as LLVM prints them."""
    found: dict[str, str] = {}
    for file in sorted(Path(kernels.__file__).parent.glob("*.c")):
        text = compiled(file, "x86-64", flags=FLAGS).decode().replace(" optsize ", " optsize minsize ")
        [found[file.stem]] = after_passes(re.sub(r'"target-features"="[^"]*"', "", text), [["verify"]])
    return found
