"""`irgym check`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table
from tyro.conf import Positional

from irgym.base.errors import IrgymError
from irgym.cli.output import console, write_json_to
from irgym.conformance.checked import Checked
from irgym.conformance.checking import check_environment
from irgym.core.catalogue import ENVIRONMENTS, locate

SHOWN = 5
"""Kinds of useless actions that are listed."""


@dataclass(frozen=True)
class Check:
    """Check on random walks that an environment keeps the rules that searches and learners rely on."""

    environment: Positional[str]
    """Name of the environment."""
    programs: tuple[str, ...] = ()
    """URIs or files, small ones; by default a training and a test program of the default data set."""
    seed: int = 0
    """Seed of the random walks."""
    walks: int = 3
    """Random walks from each program."""
    steps: int = 8
    """Greatest number of actions of a walk."""
    measure: bool = True
    """Check the rules that measure too; --no-measure leaves them out, where they take long."""
    skip: tuple[str, ...] = ()
    """Rules to leave out, each with the reason: RULE=REASON."""
    json: Path | None = None
    """Write what was checked as JSON to this file."""

    def run(self) -> None:
        """Check, and print what was checked."""
        environment, skip = ENVIRONMENTS.load(self.environment), _reasons(self.skip)
        out = console()
        with out.status(f"checking {self.environment}"):
            found = check_environment(
                environment,
                [locate(program)[1] for program in self.programs],
                seed=self.seed,
                walks=self.walks,
                steps=self.steps,
                measure=self.measure,
                skip=skip,
            )
        out.print(_table(found))
        out.print(_summary(self.environment, found))
        write_json_to(self.json, {"environment": self.environment} | asdict(found))


def _reasons(words: Sequence[str]) -> dict[str, str]:
    """Return the reasons to leave out rules, by the name of the rule.

    Raises:
        IrgymError: A word is no RULE=REASON, or a rule is given twice.
    """
    given: dict[str, str] = {}
    for word in words:
        rule, equals, reason = word.partition("=")
        if not equals or not reason:
            raise IrgymError(f"{word!r} skips a rule without a reason: write RULE=REASON")
        if rule in given:
            raise IrgymError(f"the rule {rule!r} is skipped twice: skip it once")
        given[rule] = reason
    return given


def _table(found: Checked) -> Table:
    table = Table("rule", "result")
    for rule, count in found.rules.items():
        table.add_row(rule, f"kept, in {count:,} {'check' if count == 1 else 'checks'}")
    for rule, reason in found.left_out.items():
        table.add_row(rule, f"not checked: {reason}", style="yellow")
    return table


def _summary(environment: str, found: Checked) -> str:
    programs = ", ".join(found.programs)
    lines = [f"{environment} keeps {len(found.rules)} rules in {found.states} states of {programs}"]
    if found.left_out:
        lines[0] += f"; {len(found.left_out)} were not checked"
    if found.useless:
        kinds = [f"{kind} {number} of {found.tried[kind]}" for kind, number in found.useless.items()]
        more = f" and {len(kinds) - SHOWN} other kinds" if len(kinds) > SHOWN else ""
        lines.append(
            f"actions without effect: {sum(found.useless.values())} of {sum(found.tried.values())} tried "
            f"({', '.join(kinds[:SHOWN])}{more}); they cost evaluations, so let the mask leave out those "
            "that it can tell"
        )
    return "\n".join(lines)
