"""Failures of rules at sites where they claim to apply: counted, and the site skipped."""

import logging
from collections import Counter

_LOG = logging.getLogger(__name__)


class Failures:
    """Counts of failures, which correct rules never have.

    Attributes:
        counts: Failures by name of the rule.
    """

    def __init__(self) -> None:
        """Start with no failures."""
        self.counts: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Number of failures of all rules."""
        return self.counts.total()

    def note(self, rule: str, place: str, error: Exception) -> None:
        """Count a failure, and warn the user about the first of each rule.

        Args:
            rule: Name of the rule.
            place: Name of the site, or of the node where its pattern begins.
            error: The exception.
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
