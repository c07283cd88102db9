"""Names that may be misspelt: keywords of `gymnasium.make`, which come unchecked, and options."""

import inspect
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from irgym.base.errors import IrgymError


def did_you_mean(words: Iterable[str], known: Sequence[str]) -> str:
    """Return `did you mean NAME? ` with the known names that are meant most likely; empty for none."""
    close = dict.fromkeys(name for word in words for name in get_close_matches(word, known, 1))
    return f"did you mean {' and '.join(close)}? " if close else ""


def refuse_unknown(unknown: Collection[str], made: type) -> None:
    """Refuse keywords of `gymnasium.make` that an environment does not have.

    Args:
        unknown: The keywords.
        made: The environment's class, whose constructor takes the others.

    Raises:
        IrgymError: There are any. The message names them, the keyword that is meant most likely, and all.
    """
    if not unknown:
        return
    parameters = inspect.signature(made).parameters.values()
    known = [
        parameter.name for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    raise IrgymError(
        f"{made.__name__} takes no keyword {', '.join(map(repr, unknown))}: "
        f"{did_you_mean(unknown, known)}choose among {', '.join(known)}"
    )
