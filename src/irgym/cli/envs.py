"""`irgym envs`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from irgym.cli.options import check_file
from irgym.cli.output import console, write_json
from irgym.core.environment import ENVIRONMENTS


@dataclass(frozen=True)
class Envs:
    """List the environments, whether their back ends run here, and what to install if not."""

    json: Path | None = None
    """Write the same as JSON to this file."""

    def run(self) -> None:
        """Print the table."""
        check_file(self.json)
        table = Table("environment", "back end", "runs here", "detail", "to mend it")
        rows: list[dict[str, Any]] = []
        for name in ENVIRONMENTS.names():
            environment = ENVIRONMENTS.load(name)
            for status in environment.backends():
                table.add_row(
                    name, status.name, "yes" if status.available else "no", status.detail, status.remedy
                )
                rows.append({"environment": name, "summary": environment.summary} | asdict(status))
        console().print(table)
        write_json(self.json, rows)
