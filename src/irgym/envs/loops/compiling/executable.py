"""What compiling a nest gives: a function in memory."""

from typing import Protocol


class Executable(Protocol):
    """A compiled kernel in memory."""

    @property
    def code(self) -> bytes | None:
        """Its machine code; None where the back end does not give it away."""
        ...

    def run(self, a: int, b: int, c: int, repetitions: int) -> None:
        """Compute C from A and B, float32 tensors at these addresses, `repetitions` >= 1 times.

        Other Python threads run meanwhile.
        """
        ...

    def close(self) -> None:
        """Free the machine code; `run` must not be called any more. Closing twice does nothing."""
        ...


class Compiled(Executable, Protocol):
    """A compiled kernel, of the type `llvm.PROTOTYPE`, that runs on the thread that calls it."""

    @property
    def address(self) -> int:
        """Where its function begins."""
        ...

    @property
    def workspace(self) -> int:
        """Address of its workspace."""
        ...
