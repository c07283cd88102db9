"""The compiled library of torchvision, which loads only beside the torch that it was built for."""

# The types of torch are incomplete.
# pyright: reportUnknownMemberType=false

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

OFFSET = 15
"""torchvision 0.N is built for torch 2.(N - 15)."""


def refusal() -> str:
    """Return the reason why torchvision's library cannot be loaded; empty if it can, or there is none."""
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None:
        return ""
    library = Path(spec.origin).with_name("_C.so")
    if not library.exists():
        return f"{library.name} is missing"
    import torch

    try:
        torch.ops.load_library(str(library))
    except OSError as error:
        return next(iter(str(error.__cause__ or error).splitlines()), type(error).__name__)
    return ""


def matching(torch_version: str) -> str:
    """Return the command that installs the torchvision that a version of torch needs.

    Args:
        torch_version: As `torch.__version__`, such as `2.9.1+cpu`.
    """
    number, _, kind = torch_version.partition("+")
    major, minor, *_ = number.split(".")
    wanted = f"'torchvision==0.{int(minor) + OFFSET}.*'" if major == "2" else "torchvision"
    index = f" --index-url https://download.pytorch.org/whl/{kind}" if kind else ""
    return f"pip install --force-reinstall --no-deps {wanted}{index}"


def mismatch() -> str:
    """Return a sentence, with the remedy, if torchvision does not match torch; empty otherwise."""
    reason = refusal()
    if not reason:
        return ""
    torch = version("torch")
    return (
        f"torchvision {version('torchvision')} is not built for torch {torch} and cannot be imported "
        f"({reason}); irgym's own models do without its library; to mend it: {matching(torch)}"
    )
