"""`irgym envs`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from irgym.cli.options import check_file
from irgym.cli.output import console, write_json
from irgym.core.environment import ENVIRONMENTS, BackendStatus
from irgym.core.errors import PluginError


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
            summary, statuses = _found(name)
            for status in statuses:
                table.add_row(
                    name, status.name, "yes" if status.available else "no", status.detail, status.remedy
                )
                rows.append({"environment": name, "summary": summary} | asdict(status))
        console().print(table)
        write_json(self.json, rows)


def _found(name: str) -> tuple[str, list[BackendStatus]]:
    """Return an environment's summary and back ends; of one in a broken package, why it cannot be used."""
    try:
        environment = ENVIRONMENTS.load(name)
        return environment.summary, environment.backends()
    except PluginError as error:
        what, _, remedy = str(error).rpartition(": ")
        return "", [BackendStatus("-", False, what, remedy)]
    except Exception as error:
        if name in ENVIRONMENTS.builtin:
            raise
        return "", [
            BackendStatus("-", False, f"it raised {type(error).__name__}: {error}", "mend its package")
        ]
