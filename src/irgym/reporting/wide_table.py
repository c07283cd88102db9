"""Tables that fit the terminal: columns that do not fit beside the first one follow below it."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

BORDERS = 3
"""Characters that a column takes beside its text: a blank on either side and a line."""

NAMES = 0.45
"""Share of the width that the first column may take; longer names are folded."""


@dataclass(frozen=True)
class WideTable:
    """A table whose first column is repeated before as many of the others as fit, until all are shown.

    Attributes:
        title: What stands above.
        columns: Headings; what is in the first column is set flush left, in the others flush right.
        rows: Cells.
        caption: What stands below.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def __rich_console__(self, console: object, options: ConsoleOptions) -> RenderResult:
        """Return the parts, as wide as the options allow."""
        del console
        names, *widths = [self._width(place) for place in range(len(self.columns))]
        names = min(names, int(NAMES * options.max_width))
        room = options.max_width - names - BORDERS - 1
        begin = 0
        while True:
            end, taken = begin, 0
            while end < len(widths) and (end == begin or taken + widths[end] + BORDERS <= room):
                taken += widths[end] + BORDERS
                end += 1
            yield self._part(range(begin + 1, end + 1), names, first=begin == 0, last=end >= len(widths))
            begin = end
            if begin >= len(widths):
                return

    def _width(self, place: int) -> int:
        """Return the width of a column whose cells are on a line each; headings are broken at blanks."""
        cells = [len(row[place]) for row in self.rows]
        return max([*cells, *map(len, self.columns[place].split())], default=0)

    def _part(self, places: range, names: int, *, first: bool, last: bool) -> Table:
        """Return some columns beside the first one."""
        title = self.title if first else f"{self.title} (continued)".lstrip()
        table = Table(
            title=Text(title, style="table.title") if title else None,
            caption=Text(self.caption) if last and self.caption else None,
            caption_justify="left",
        )
        table.add_column(Text(self.columns[0]), max_width=names, overflow="fold")
        for place in places:
            # Without these, rich shares a lack of room among all columns and cuts headings off.
            table.add_column(Text(self.columns[place]), justify="right", min_width=self._width(place))
        for row in self.rows:
            table.add_row(*(Text(row[place]) for place in (0, *places)))
        return table
