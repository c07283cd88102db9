"""Checks of a choice: shared results are proved equal, then the function runs. It runs in a child."""

from dataclasses import replace

from irgym.core.cost import Validation
from irgym.envs.cse.checking.proving.proofs import Proofs, proofs_of
from irgym.envs.cse.checking.validation import compared
from irgym.envs.cse.compiling.scorer import verified


def checked(path: str, name: str, shared: tuple[int, ...], inputs: int, seed: int, runs: bool) -> Validation:
    """Check a choice against the original function.

    Args:
        path: File of the prepared module.
        name: Name of the function, sigil included.
        shared: Places of the shared candidates.
        inputs: Number of random inputs to run the function on.
        seed: Seed of the inputs.
        runs: Whether this machine runs the target's code.

    Raises:
        BackendError: z3 is not installed, and a proof needs it.
    """
    proofs = proofs_of(path, name, shared)
    if proofs.refuted:
        kept, dropped = proofs.refuted[0]
        return Validation(False, 0.0, "z3", 0, f"{kept} cannot take the place of {dropped}")
    found = compared(path, name, shared, inputs, seed) if runs else _verified_only(path, name, shared)
    return replace(
        found, notes=(*found.notes, *_notes(proofs)), figures={**found.figures, **_figures(proofs)}
    )


def _verified_only(module: str, function: str, shared: tuple[int, ...]) -> Validation:
    """Run LLVM's verifier on a choice for another machine, whose code cannot run here."""
    complaint = verified(module, function, shared)
    blind = "" if complaint else "code for another machine is not run"
    return Validation(not complaint, 0.0, "LLVM's verifier", 0, complaint, blind)


def _notes(proofs: Proofs) -> tuple[str, ...]:
    """Return a sentence on how much was proved."""
    if not proofs.pairs:
        return ()
    means = f"{proofs.same} by comparison, {proofs.solved} by z3"
    only = f", {proofs.open} executed only" if proofs.open else ""
    return (f"{proofs.proved} of {proofs.pairs} shared results proved equal ({means}){only}",)


def _figures(proofs: Proofs) -> dict[str, int]:
    return {
        "shared_results": proofs.pairs,
        "proved_by_comparison": proofs.same,
        "proved_by_z3": proofs.solved,
        "executed_only": proofs.open,
    }
