"""A compiler for the JIT CSE gymnasium whose scores stand in a table."""

from collections.abc import Sequence

from irgym.envs.cse.jitcse.methods import NUMBERS, SIGNS, CompiledMethod, CompileFailed, CseCandidate


class Table:
    """Five candidates with given savings; the last one does not compile."""

    saves = (10.0, 0.0, -5.0, 20.0)

    def __init__(self) -> None:
        self.closed = False

    def compile(self, index: str, chosen: Sequence[int] | None) -> CompiledMethod:
        if index == "broken" or 4 in (chosen or ()):
            raise CompileFailed("it is broken")
        taken = (0,) if chosen is None else tuple(chosen)
        rows = tuple(
            CseCandidate(
                place,
                place,
                dict.fromkeys(SIGNS, False) | {"can_apply": place not in taken},
                dict.fromkeys(NUMBERS, 3.0),
            )
            for place in range(5)
        )
        return CompiledMethod(index, index, 100.0 - sum(self.saves[place] for place in taken), rows, taken)

    def close(self) -> None:
        self.closed = True
