"""The error that a broken rule raises."""

from irgym.base.errors import IrgymError


class ConformanceError(IrgymError):
    """A task, an environment or an agent breaks a rule.

    Attributes:
        rule: Name of the rule.
        subject: URI of the task, or name of the environment or the agent's configuration.
        detail: How the rule is broken, in words.
        schedules: Texts of the smallest schedules that show it: one, or two where two states are compared;
            none where no state is involved.
    """

    def __init__(self, rule: str, subject: str, detail: str, schedules: tuple[str, ...] = ()) -> None:
        self.rule = rule
        self.subject = subject
        self.detail = detail
        self.schedules = schedules
        after = " and after ".join(repr(schedule) if schedule else "no action" for schedule in schedules)
        place = f", after {after}" if schedules else ""
        super().__init__(f"{subject} breaks the rule {rule!r}{place}: {detail}")
