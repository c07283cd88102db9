"""Rules that fail where they say that they apply: counted, and left out there."""

import logging
from collections import Counter

_LOG = logging.getLogger(__name__)


class Failures:
    """How often each rule failed, which no rule should.

    Attributes:
        counts: By the name of the rule.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.counts: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """How many failures there were."""
        return self.counts.total()

    def note(self, rule: str, place: str, error: Exception) -> None:
        """Count a failure, and tell the user of the rule's first one.

        Args:
            rule: The name of the rule.
            place: The site, or the node at which its pattern begins.
            error: What it raised.
        """
        self.counts[rule] += 1
        if self.counts[rule] == 1:
            _LOG.warning(
                "irgym: the rule %s fails at %s and is left out there; please report it: %s",
                rule,
                place,
                error,
            )
        _LOG.debug("the rule %s fails at %s", rule, place, exc_info=error)
