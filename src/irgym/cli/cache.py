"""`irgym cache`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rich.table import Table
from tyro.conf import Positional

from irgym.cli.output import console, write_json_to
from irgym.measure.cache import CostCache, default_path


@dataclass(frozen=True)
class Cache:
    """Show what the cost cache holds, or empty it."""

    action: Positional[Literal["stats", "clear"]]
    """stats shows what it holds; clear removes it."""
    json: Path | None = None
    """Write the statistics, or the path of the file that was removed, as JSON to this file."""

    def run(self) -> None:
        """Show or clear."""
        path = default_path()
        if self.action == "clear":
            CostCache.clear(path)
            print(f"cleared: {path}")
            write_json_to(self.json, {"cleared": str(path)})
            return
        with CostCache(path) as cache:
            stats = cache.stats()
        table = Table("what", "value")
        for name, value in asdict(stats).items():
            table.add_row(name.replace("_", " "), str(value))
        console().print(table)
        write_json_to(self.json, asdict(stats))
