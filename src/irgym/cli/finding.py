"""How `tune` and `replay` show a result."""

from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from irgym.cli.output import cost_text
from irgym.core.environment import Bench, Environment
from irgym.core.task import Task
from irgym.evaluate.tuning import Finding


def data_of(environment: Environment, bench: Bench, task: Task[Any], finding: Finding) -> dict[str, Any]:
    """Return a finding as data; costs in nanoseconds."""
    work = task.ideal_cost(1.0)
    peak = work / finding.peak.peer_ns if work and finding.peak else None
    return {
        "program": task.uri,
        "schedule": finding.schedule.text(task.space),
        "cost_ns": finding.cost,
        "baseline_ns": finding.baseline,
        "speedup": finding.speedup,
        "gflops": None if work is None else work / finding.cost,
        "peak_gflops": peak,
        "peak_share": finding.peak_share,
        f"{environment.reference_peer or 'peer'}_ratio": finding.peer_ratio,
        "validated": finding.validation.ok,
        "validation_error": finding.validation.error,
        "tolerance": finding.validation.tolerance,
        "program_after": task.describe(finding.state),
        "peer": finding.versus.detail if finding.versus else None,
        "machine": bench.machine,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def print_finding(out: Console, task: Task[Any], finding: Finding, data: dict[str, Any]) -> None:
    """Print a finding for people."""
    out.print(f"[bold]{task.uri}[/bold]", highlight=False)
    out.print(f"schedule: [bold]{data['schedule'] or '(none)'}[/bold]", highlight=False)
    out.print(data["program_after"], highlight=False, markup=False)
    table = Table(show_header=False)
    cost, baseline = (cost_text(value, task.objective) for value in (finding.cost, finding.baseline))
    table.add_row(task.objective, f"{cost} (as written: {baseline})")
    table.add_row("speedup", f"{finding.speedup:.2f}x over the program as written")
    if finding.peak:
        table.add_row(
            "throughput",
            f"{data['gflops']:.1f} GFLOP/s, {finding.peak_share:.0%} of the core's peak timed in turn "
            f"({finding.peak.detail}; median of {len(finding.peak.ratios)} rounds)",
        )
    if finding.versus and finding.peer_ratio:
        verdict = "faster" if finding.peer_ratio > 1 else "slower"
        factor = max(finding.peer_ratio, 1 / finding.peer_ratio)
        rounds = f"median of {len(finding.versus.ratios)} rounds"
        table.add_row("peer", f"{factor:.2f}x {verdict} than {finding.versus.detail}; {rounds}")
    table.add_row(
        "validated",
        f"yes: {finding.validation.inputs} inputs, greatest error {finding.validation.error:.2g} "
        f"({finding.validation.tolerance})",
    )
    if "evaluations" in data:
        table.add_row(
            "search", f"{data['search']}: {data['evaluations']} candidates in {data['seconds']:.1f} s"
        )
    table.add_row("machine", f"{data['machine']}; {data['date']}")
    out.print(table)
