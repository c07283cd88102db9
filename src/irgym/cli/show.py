"""`irgym show`."""

import math
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

from tyro.conf import OmitArgPrefixes, Positional

from irgym.api.objects import named_object
from irgym.api.requests import Measuring
from irgym.api.showing import Shown, shown
from irgym.cli.output import console, write_json_to
from irgym.judging.units import cost_text

WHOLE = 40
"""Lines of a program up to which it is printed whole after each action; of longer ones, what changed."""


@dataclass(frozen=True)
class Show:
    """Show a program, and what each action of a schedule makes of it, without measuring."""

    uri: Positional[str]
    """The program, as `tune` takes it."""
    schedule: Positional[str] = ""
    """A schedule: actions separated by blanks or commas."""
    environment: str | None = None
    """Environment that takes a torch module: `graph` by default, or `linalg`."""
    measure: bool = False
    """Also measure the cost after each action, without checking results; `replay` does."""
    measuring: OmitArgPrefixes[Measuring] = field(default_factory=Measuring)
    json: Path | None = None
    """Write the programs, with their costs where they are known, as JSON to this file."""

    def run(self) -> None:
        """Print the programs."""
        program, inputs = named_object(self.uri) or (self.uri, ())
        out = console()
        with out.status(f"{self.uri}: reading the program") as status:
            found = shown(
                program,
                self.schedule,
                *inputs,
                environment=self.environment,
                measure=self.measure,
                measuring=self.measuring,
                note=status.update,
            )
        write_json_to(self.json, found.to_json())
        out.print(found.task.uri)
        for place, action in enumerate(found.actions):
            out.print(f"\n{place}  {action or 'original'}{_cost(found, place)}", style="bold")
            out.print(_text(found, place))


def _cost(found: Shown, place: int) -> str:
    """Return the cost after an action in words, beside the original's; empty where it is not known."""
    if found.costs is None:
        return ""
    cost, first = found.costs[place], found.costs[0]
    if not math.isfinite(cost):
        return "  failed"
    over = f" ({first / cost:.2f}x)" if place and cost and math.isfinite(first) else ""
    return f"  {cost_text(cost, found.task.objective)}{over}"


def _text(found: Shown, place: int) -> str:
    """Return the program after an action; of a long one, the lines that the action changed."""
    lines = found.texts[place].splitlines()
    if not place or len(lines) <= WHOLE:
        return found.texts[place]
    before = found.texts[place - 1].splitlines()
    changes = [
        line for line in unified_diff(before, lines, lineterm="", n=1) if not line.startswith(("---", "+++"))
    ]
    return "\n".join(changes) or "(nothing changed)"
