"""Findings of a judge that is still at work: an interrupt ends with the best of them."""

from dataclasses import dataclass, field

from irgym.judging.finding import Finding


@dataclass
class SoFar:
    """Programs that are validated so far, and what is known of each.

    Attributes:
        doing: What the judge is at, in words.
        findings: The latest finding of each validated program, by key. Costs that are not measured yet are
            infinite, and what was not timed in turn yet is None.
        left_out: Action candidates whose effect no check could see.
        rejected: For each program that was rejected, by key, a sentence that says why.
        best: The judge's own result; None until it is there.
    """

    doing: str = "measuring the finalists again"
    findings: dict[str, Finding] = field(default_factory=dict[str, Finding])
    left_out: tuple[str, ...] = ()
    rejected: dict[str, str] = field(default_factory=dict[str, str])
    best: Finding | None = None

    @property
    def visible(self) -> list[Finding]:
        """Findings without an action whose effect no check can see."""
        return [
            finding
            for finding in self.findings.values()
            if finding.validation is None or not set(finding.validation.unseen) - set(self.left_out)
        ]

    def reject(self, key: str, why: str) -> None:
        """Take note that a program is wrong, or no longer runs."""
        self.rejected[key] = why
        self.findings.pop(key, None)
