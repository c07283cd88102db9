"""The error about inputs that a program was not tuned for."""

from irgym.base.errors import IrgymError


class MisfitError(IrgymError):
    """Inputs differ from those that a program was tuned for, or it cannot run on them."""
