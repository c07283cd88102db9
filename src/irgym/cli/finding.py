"""How `tune` and `replay` show a result."""

from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from irgym.cli.output import Output
from irgym.core import capabilities
from irgym.core.environment import Bench, Environment
from irgym.core.schedule import states_along
from irgym.core.task import Task
from irgym.evaluate.targets import machine_text
from irgym.evaluate.tuning import Finding, gain_ratio, over, reference_of
from irgym.evaluate.units import cost_text, gain_word


def data_of(environment: Environment, bench: Bench, task: Task[Any], finding: Finding) -> dict[str, Any]:
    """Return a finding as data; costs in the unit of the task's objective.

    Raises:
        IrgymError: The environment's reference pipeline fails on this program.
    """
    work = capabilities.ideal_cost(task, 1.0)
    peak = work / finding.peak.baseline_ns if work and finding.peak else None
    reference = reference_of(environment, bench, task)
    checked = finding.validation
    return {
        "program": task.uri,
        "schedule": finding.schedule.text(task.space),
        "objective": task.objective.name,
        "cost": finding.cost,
        "original_cost": finding.original_cost,
        "speedup": finding.speedup,
        "gflops": None if work is None else work / finding.cost,
        "peak_gflops": peak,
        "peak_share": finding.peak_share,
        f"{environment.reference_baseline or 'baseline'}_ratio": finding.baseline_ratio,
        "reference": None if reference is None else reference.name,
        "reference_cost": None if reference is None else reference.cost,
        "reference_ratio": None if reference is None else over(reference.cost, finding.cost),
        "gain_ratio": reference and gain_ratio(finding.original_cost, reference.cost, finding.cost),
        "steps": _steps(task, finding),
        "validated": checked is not None and checked.checked,
        "not_checkable": checked.blind or None if checked else None,
        "validation_error": None if checked is None else checked.error,
        "tolerance": None if checked is None else checked.tolerance,
        "program_after": task.describe(finding.state),
        "baseline": finding.versus.detail if finding.versus else finding.no_baseline or None,
        "target": None if task.target is None else task.target.name,
        "machine": machine_text(bench, task),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _steps(task: Task[Any], finding: Finding) -> list[dict[str, Any]]:
    """Return action, cost and gain of each step, where the states know their costs."""
    states = states_along(task, finding.schedule)
    costs = [known.cost for state in states if (known := task.job(state).known) is not None and known.ok]
    if len(costs) < len(states):
        return []
    return [
        {"action": task.space.text(action), "cost": after, "gain": before - after}
        for action, before, after in zip(finding.schedule.actions, costs, costs[1:], strict=False)
    ]


def print_finding(out: Output, task: Task[Any], finding: Finding, data: dict[str, Any]) -> None:
    """Print a finding for people."""
    out.print(task.uri, style="bold")
    out.print(Text.assemble("schedule: ", (data["schedule"] or "(none)", "bold")))
    out.print(data["program_after"])
    if data["steps"]:
        out.print(_step_table(task, data["steps"]))
    table = Table(show_header=False)
    for name, value in _facts(task, finding, data):
        table.add_row(name, value)
    out.print(table)


def _step_table(task: Task[Any], steps: list[dict[str, Any]]) -> Table:
    """Return what each action gains, and its share of the whole gain."""
    table = Table("action")
    for column in (task.objective.name, "gain", "share"):
        table.add_column(column, justify="right")
    whole = sum(step["gain"] for step in steps)
    for step in steps:
        share = f"{step['gain'] / whole:.1%}" if whole > 0 else "-"
        cost, gain = (cost_text(step[name], task.objective) for name in ("cost", "gain"))
        table.add_row(step["action"], cost, gain, share)
    return table


def _facts(task: Task[Any], finding: Finding, data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of the result: what is said, and what about it."""
    cost, original_cost = (
        cost_text(value, task.objective) for value in (finding.cost, finding.original_cost)
    )
    gain = gain_word(task.objective)
    facts = [
        (task.objective.name, f"{cost} (as written: {original_cost})"),
        (gain, f"{finding.speedup:.2f}x over the program as written"),
    ]
    if data["reference"]:
        facts.append((data["reference"], _reference_text(task, data)))
    if finding.peak:
        facts.append(
            (
                "throughput",
                f"{data['gflops']:.1f} GFLOP/s, {finding.peak_share:.0%} of the core's peak timed in turn "
                f"({finding.peak.detail}; median of {len(finding.peak.ratios)} rounds)",
            )
        )
    if finding.versus and finding.baseline_ratio:
        verdict = "faster" if finding.baseline_ratio > 1 else "slower"
        factor = max(finding.baseline_ratio, 1 / finding.baseline_ratio)
        rounds = f"median of {len(finding.versus.ratios)} rounds"
        facts.append(("baseline", f"{factor:.2f}x {verdict} than {finding.versus.detail}; {rounds}"))
    if finding.no_baseline:
        facts.append(("baseline", f"none: {finding.no_baseline}"))
    facts.append(("validated", _validation_text(finding)))
    if "evaluations" in data:
        facts.append(
            ("search", f"{data['search']}: {data['evaluations']} candidates in {data['seconds']:.1f} s")
        )
    return [*facts, ("machine", f"{data['machine']}; {data['date']}")]


def _reference_text(task: Task[Any], data: dict[str, Any]) -> str:
    """Return how a result compares with the default schedule."""
    cost = cost_text(data["reference_cost"], task.objective)
    text = f"{cost} by default; ratio to it {data['reference_ratio']:.3f}"
    if data["gain_ratio"] is None:
        return f"{text}; the default reduces nothing"
    return f"{text}; reduction relative to the default's {data['gain_ratio']:.3f} (arXiv 2308.14364)"


def _validation_text(finding: Finding) -> str:
    checked = finding.validation
    if checked is None:
        return "no"
    if not checked.inputs:
        return f"yes: {checked.tolerance}"
    inputs = "1 input" if checked.inputs == 1 else f"{checked.inputs} inputs"
    if checked.blind:
        return f"not checkable on {inputs}: results agree, but {checked.blind}"
    return f"yes: {inputs}, greatest error {checked.error:.0%} of what is allowed ({checked.tolerance})"
