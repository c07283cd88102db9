"""Encoders, action heads, and the policies made of them. Needs the extra `learn` (torch)."""

from importlib.util import find_spec

from irgym.base.errors import BackendError
from irgym.core.baseline import INSTALL_TORCH

if find_spec("torch") is None:
    raise BackendError(f"torch is not installed: run {INSTALL_TORCH}")
