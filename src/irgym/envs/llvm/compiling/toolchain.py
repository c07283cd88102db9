"""The text that tells costs of different LLVMs and of different code of irgym apart."""

from irgym.envs.llvm.compiling.installed import llvm_named
from irgym.measure.code_digest import digest_of

CODE = (
    "envs/llvm/actions.py",
    "envs/llvm/checking",
    "envs/llvm/compiling",
    "envs/llvm/runner.py",
    "envs/llvm/whole",
    "llvmir",
    "measure/passes",
)
"""Sources that run passes, measure and check, besides those common to all environments."""


def toolchain(backend: str) -> str:
    """Return a text that identifies LLVM and the code behind costs.

    Raises:
        BackendError: LLVM is not installed.
    """
    return f"{llvm_named(backend).origin}; irgym's code {digest_of(*CODE)}"
