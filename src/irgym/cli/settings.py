"""Hyper-parameters on the command line: words such as lr=3e-4."""

from collections.abc import Sequence

from irgym.base.errors import IrgymError


def settings_of(words: Sequence[str], what: str) -> dict[str, str]:
    """Return the texts of hyper-parameters by name.

    Args:
        words: Texts such as lr=3e-4; several values of one are separated by commas.
        what: Whose hyper-parameters they are, for the message.

    Raises:
        IrgymError: A word is no name=value, or a name is given twice.
    """
    given: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise IrgymError(f"{word!r} is no hyper-parameter of {what}: write name=value")
        if name in given:
            raise IrgymError(f"{name} of {what} is given twice: give it once, its values joined by commas")
        given[name] = value
    return given
