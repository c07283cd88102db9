"""Errors that are the user's to mend. Everything else is a bug and keeps its traceback."""

from collections.abc import Generator
from contextlib import contextmanager


class IrgymError(Exception):
    """Bad input or a missing part. The message is one sentence that says what to do.

    The command line prints it without a traceback and exits with status 2.
    """


class ProgramError(IrgymError):
    """A program URI is unknown or malformed."""


class ScheduleError(IrgymError):
    """A schedule does not parse, or one of its actions does not apply."""


class WrongResultsError(IrgymError):
    """An optimised program computes something else than its original, or does not run where that does."""


class BackendError(IrgymError):
    """A compiler, library or tool that is needed is missing or has the wrong version."""


class BaselineError(IrgymError):
    """A baseline is not installed, or cannot compute a program."""


class UnknownPipelineError(IrgymError):
    """A compiler does not tell what it does by itself to a program."""


class UnsuitedPolicyError(IrgymError):
    """A policy was trained on other actions or observations than a task has."""


class StorageError(IrgymError):
    """A file cannot be read or written, or its content is damaged."""


class FarmError(IrgymError):
    """A farm does not answer, has no workers, or has workers that must not work together."""


class PluginError(IrgymError):
    """A part that another package registers cannot be imported, or is not what it says."""


class RenderModeError(IrgymError, TypeError):
    """An environment does not render that way.

    It is a `TypeError` as well: Stable-Baselines3's `make_vec_env` asks for `rgb_array`, and if it meets a
    `TypeError` it goes on without.
    """


@contextmanager
def explained(what: str, remedy: str, sort: type[IrgymError] = StorageError) -> Generator[None]:
    """Turn what the system refuses into one sentence.

    Args:
        what: What cannot be done.
        remedy: What to do about it.
        sort: The error to raise.
    """
    try:
        yield
    except OSError as error:
        raise sort(f"{what} ({error.strerror}): {remedy}") from error
