"""`irgym envs`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from irgym.api.doctor import Extra, Kept, extras, hidden_parts, installation, kept, mismatched
from irgym.api.programs import environments
from irgym.cli.output import console, write_json_to
from irgym.core.datasets import DatasetSpec, registered


@dataclass(frozen=True)
class Envs:
    """List the environments, whether their back ends run here, and what to install if they do not.

    Extras, versions, the machine, and what the caches take are shown too.
    """

    json: Path | None = None
    """Write the same as JSON to this file."""

    def run(self) -> None:
        """Print the tables."""
        table = Table("environment", "back end", "runs here", "detail")
        rows: list[dict[str, Any]] = []
        for environment in environments():
            for status in environment.backends:
                available = "yes" if status.available else "no"
                remedy = f"; to mend it: {status.remedy}" if status.remedy and not status.available else ""
                table.add_row(environment.name, status.name, available, status.detail + remedy)
                rows.append(
                    {"environment": environment.name, "summary": environment.summary} | asdict(status)
                )
        out, here, parts, caches, hidden = console(), installation(), extras(), kept(), hidden_parts()
        own, unloadable = registered()[0], mismatched()
        out.print(here)
        out.print(table)
        for sentence in (*hidden, *unloadable):
            out.print(sentence)
        if own:
            out.print(_datasets_table(own))
        out.print(_extras_table(parts))
        out.print(_kept_text(caches))
        found = {
            "installation": here,
            "environments": rows,
            "hidden": hidden,
            "mismatched": unloadable,
            "datasets": {name: spec.environment for name, spec in own.items()},
            "extras": [asdict(extra) for extra in parts],
            "caches": {"folder": str(caches.folder), "bytes": dict(caches.sizes), "free": caches.free},
        }
        write_json_to(self.json, found)


def _datasets_table(own: Mapping[str, DatasetSpec]) -> Table:
    table = Table("data set", "environment", "programs")
    for name, spec in own.items():
        table.add_row(name, spec.environment, spec.description)
    return table


def _extras_table(found: list[Extra]) -> Table:
    table = Table("extra", "installed", "missing", "to install it")
    for extra in found:
        table.add_row(extra.name, ", ".join(extra.installed), ", ".join(extra.missing), extra.remedy)
    return table


def _kept_text(caches: Kept) -> str:
    total = sum(size for _, size in caches.sizes)
    greatest = ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in caches.sizes if size >= 1e6)
    text = f"caches: {caches.folder}, {total / 1e6:.0f} MB; {caches.free / 1e9:.0f} GB of the disk are free"
    return f"{text}; the greatest: {greatest}" if greatest else text
