"""Checks of a choice: its expressions are compared and proved, then the function runs. It runs in a child."""

from dataclasses import replace

from irgym.core.cost import Validation
from irgym.envs.cse.checking.validation import compared
from irgym.envs.cse.proving.proofs import Proofs, proofs_of
from irgym.envs.cse.runner import validate


def checked(path: str, name: str, shared: tuple[int, ...], inputs: int, seed: int, runs: bool) -> Validation:
    """Check a choice against the function as written.

    Args:
        path: The module, prepared.
        name: Name of the function, sigil included.
        shared: The places of the candidates that are shared.
        inputs: Random inputs that the function runs on.
        seed: Seed of these.
        runs: Whether this machine runs the target's code.

    Raises:
        BackendError: z3 is not installed, and a proof needs it.
    """
    proofs = proofs_of(path, name, shared)
    if proofs.refuted:
        kept, dropped = proofs.refuted[0]
        return Validation(False, 0.0, "z3", 0, f"{kept} cannot take the place of {dropped}")
    found = compared(path, name, shared, inputs, seed) if runs else validate(path, name, shared)
    return replace(found, notes=(*found.notes, *_told(proofs)), figures={**found.figures, **_figures(proofs)})


def _told(proofs: Proofs) -> tuple[str, ...]:
    """Return in words how much was proved."""
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
