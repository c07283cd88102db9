"""Encoders, action heads, and the policies made of them. Needs the extra `learn` (torch)."""

from importlib.util import find_spec

from irgym.base.errors import BackendError

if find_spec("torch") is None:
    raise BackendError("torch is not installed: run pip install 'irgym[learn]'")
