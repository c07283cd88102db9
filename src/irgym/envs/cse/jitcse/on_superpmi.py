"""Methods of a SuperPMI collection as methods of the JIT CSE gymnasium."""

from collections.abc import Mapping, Sequence

from irgym.base.errors import IrgymError
from irgym.envs.cse.jitcse.methods import NUMBERS, SIGNS, CompiledMethod, CompileFailed, CseCandidate
from irgym.envs.cse.superpmi.session import Collection, SuperPmi

_ENREGISTERED = {1: "int", 2: "int", 3: "float", 4: "float", 6: "simd"}
"""Register class under which the JIT counts a type, by type number."""


class JitCompiler:
    """Compiles methods by their numbers in a collection.

    Args:
        collection: The methods and the JIT.
    """

    def __init__(self, collection: Collection) -> None:
        self._session = SuperPmi(collection)

    def compile(self, index: str, chosen: Sequence[int] | None) -> CompiledMethod:
        """Return a method with some candidates shared; see `Compiler.compile`."""
        try:
            method = self._session.compile(int(index), chosen)
        except IrgymError as error:
            raise CompileFailed(str(error)) from error
        shared = method.sequence if chosen is None else tuple(chosen)
        rows = [candidate_of(place, row, shared) for place, row in enumerate(method.candidates)]
        return CompiledMethod(index, method.name, method.score, tuple(rows), shared)

    def close(self) -> None:
        """End the process."""
        self._session.close()


def candidate_of(place: int, told: Mapping[str, int], shared: Sequence[int]) -> CseCandidate:
    """Return a candidate in the form of the gymnasium.

    Args:
        place: Its number, from 0.
        told: Its features as the JIT printed them.
        shared: Numbers of the shared candidates.
    """
    signs = {name: bool(told.get(name, 0)) for name in SIGNS}
    signs["can_apply"] = bool(told["viable"]) and place not in shared
    counted = f"enreg_count_{_ENREGISTERED.get(told['type'], 'int')}"
    known = {
        **told,
        "use_wt_cnt": told.get("use_wt_cnt", told.get("use_wt_cnt_x100", 0) / 100),
        "def_wt_cnt": told.get("def_wt_cnt", told.get("def_wt_cnt_x100", 0) / 100),
        "enreg_count": told.get("enreg_count", told.get(counted, 0)),
    }
    return CseCandidate(place, told["type"], signs, {name: float(known[name]) for name in NUMBERS})
