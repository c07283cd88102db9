"""Keywords of `gymnasium.make`, which come unchecked from other libraries and from files."""

import inspect
from collections.abc import Collection
from difflib import get_close_matches

from irgym.base.errors import IrgymError


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
    close = [name for keyword in unknown for name in get_close_matches(keyword, known, 1)]
    meant = f"did you mean {' and '.join(close)}? " if close else ""
    raise IrgymError(
        f"{made.__name__} takes no keyword {', '.join(map(repr, unknown))}: {meant}choose among "
        f"{', '.join(known)}"
    )
