"""The account of a check that found no broken rule: its rules, and the actions that did nothing."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from irgym.conformance.case import Case, seen_in
from irgym.conformance.rule import PairRule, Rule, StateRule, attempt
from irgym.conformance.rules.observations import same_observations
from irgym.core.actions import Action, Mask


@dataclass(frozen=True)
class Checked:
    """Account of a check that found no broken rule.

    Attributes:
        programs: URIs of the programs.
        rules: How often each rule was checked, in the order of checking.
        left_out: The rules that were not checked, each with the reason.
        states: Number of states that the walks visited.
        tried: By kind of action, how often one was tried that ends neither a turn nor the episode.
        useless: By kind, how many of these did nothing; the greatest number first. A mask that can tell
            leaves them out, since they cost evaluations.
    """

    programs: tuple[str, ...]
    rules: Mapping[str, int]
    left_out: Mapping[str, str]
    states: int
    tried: Mapping[str, int]
    useless: Mapping[str, int]


@dataclass
class Tally:
    """Counts of a check that is under way.

    Attributes:
        rules: Checks of each rule.
        tried: By kind, actions that were tried; those that end a turn or the episode do not count.
        useless: By kind, those that did nothing.
        states: States that were visited.
    """

    rules: Counter[str] = field(default_factory=Counter[str])
    tried: Counter[str] = field(default_factory=Counter[str])
    useless: Counter[str] = field(default_factory=Counter[str])
    states: int = 0

    def visit(self, case: Case) -> None:
        """Count a state, and what some legal actions do there."""
        self.states += 1
        for action in case.legal:
            kind = case.task.space.kinds[action.kind]
            if kind.ends is None:
                self.tried[kind.name] += 1
                nothing, _ = attempt(_does_nothing, case, action)
                self.useless[kind.name] += bool(nothing)

    def account(
        self, programs: tuple[str, ...], rules: Iterable[Rule], skip: Mapping[str, str], measured: bool
    ) -> Checked:
        """Return the account of the whole check.

        Args:
            programs: URIs of the programs.
            rules: The rules that were to be checked, and those that were skipped.
            skip: The rules that were skipped, each with the reason.
            measured: Whether anything was measured.
        """
        checked = {rule.name: self.rules[rule.name] for rule in rules if self.rules[rule.name]}
        left_out = {
            rule.name: skip.get(rule.name) or _why(rule, measured)
            for rule in rules
            if rule.name not in checked
        }
        useless = {name: number for name, number in self.useless.most_common() if number}
        return Checked(programs, checked, left_out, self.states, dict(self.tried), useless)


def _why(rule: Rule, measured: bool) -> str:
    """Return why a rule that is not skipped was never checked."""
    if isinstance(rule, StateRule | PairRule) and rule.measures and not measured:
        return "nothing was measured"
    return "no two states had equal keys: take more walks"


def _does_nothing(case: Case, action: Action) -> bool:
    """Say whether an action leads to the same program with the same choices and observations.

    A cursor that moves leaves the program as it is, too, but is observed elsewhere. Tasks that forget an
    action without effect have equal identities.
    """
    task = case.task
    after = task.step(case.state, action)
    if task.identity(after) == task.identity(case.state):
        return True
    return (
        task.key(after) == task.key(case.state)
        and _choices(task.mask(after)) == _choices(case.mask)
        and same_observations(case.seen, seen_in(task, after))
    )


def _choices(mask: Mask) -> tuple[object, ...]:
    return mask.kinds.tobytes(), mask.params.tobytes(), mask.candidates
