"""Checks of a command line before tyro reads it, and the form of messages."""

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

from irgym.base.errors import IrgymError

LONGEST = 400
"""Characters of a word in a message; of longer ones the middle is left out."""


REPEATED = frozenset({"--sizes", "--range"})
"""Options that may be given several times, and then have all values together."""


def check_words(words: Sequence[str], many: Collection[str]) -> None:
    """Make sure that no option is given twice, of which tyro would take the last, and that none is empty.

    Args:
        words: The command line.
        many: The options that take several values. Those of `REPEATED` may be given twice.

    Raises:
        IrgymError: One is.
    """
    seen: set[str] = set()
    for option, value in _options(words):
        name = option.replace("_", "-").replace("--no-", "--", 1)
        if name in seen and not (name in many and name in REPEATED):
            raise IrgymError(f"{option} is given twice: give it once, with all its values")
        nothing = value is None or value.startswith("--")
        if value == "" or (nothing and name in many):
            given = "nothing" if nothing else "'', which names nothing"
            raise IrgymError(f"{option} is given {given}: give it a value, or leave it out")
        seen.add(name)


def together(words: Sequence[str]) -> list[str]:
    """Return a command line in which each option of `REPEATED` stands once, with all its values."""
    found: list[str] = []
    values: dict[str, list[str]] = {}
    taking: list[str] | None = None
    for place, word in enumerate(words):
        if word == "--":
            found += words[place:]
            break
        option, equals, value = word.partition("=")
        if option in REPEATED:
            if option not in values:
                found.append(option)
            taking = values.setdefault(option, [])
            taking += [value] if equals else []
        elif taking is None or word.startswith("--"):
            taking = None
            found.append(word)
        else:
            taking.append(word)
    return [part for word in found for part in (word, *values.pop(word, ()))]


def _options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the options and the value that follows each, None where none does."""
    for word, follower in zip_longest(words, words[1:]):
        if word == "--":
            return
        if word.startswith("--"):
            option, equals, value = word.partition("=")
            yield option, value if equals else follower


def sentence(error: Exception) -> str:
    """Return the message of an error on one line, with nothing in it that a terminal would obey."""
    text = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(error)
    )
    return " ".join(map(_shortened, text.split(" ")))


def _shortened(word: str) -> str:
    half = LONGEST // 2
    return word if len(word) <= LONGEST else f"{word[:half]}...{word[-half:]}"
