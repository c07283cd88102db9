"""Blocks of channels in ONNX Runtime's blocked layout."""

from irgym.core.target import Target


def block_of(target: Target) -> int:
    """Return the channels of a block in ONNX Runtime's blocked layout: the float32 lanes of a vector."""
    return 16 if target.vector_bits >= 512 else 8
