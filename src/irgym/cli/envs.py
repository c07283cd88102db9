"""`irgym envs`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from irgym.api.programs import environments
from irgym.cli.output import console, write_json_to


@dataclass(frozen=True)
class Envs:
    """List the environments, whether their back ends run here, and what to install if they do not."""

    json: Path | None = None
    """Write the same as JSON to this file."""

    def run(self) -> None:
        """Print the table."""
        table = Table("environment", "back end", "runs here", "detail", "to mend it")
        rows: list[dict[str, Any]] = []
        for environment in environments():
            for status in environment.backends:
                available = "yes" if status.available else "no"
                table.add_row(environment.name, status.name, available, status.detail, status.remedy)
                rows.append(
                    {"environment": environment.name, "summary": environment.summary} | asdict(status)
                )
        console().print(table)
        write_json_to(self.json, rows)
