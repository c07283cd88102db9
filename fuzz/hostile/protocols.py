"""Hostile archives of source distributions, such as the data set `packages` of `cse` fetches."""

from collections.abc import Mapping
from pathlib import Path

from fuzz.hostile.case import Maker, Opening, python


def _traversing(folder: Path, payload: str) -> Opening:
    """Make an archive of sources that leaves its folder, by names and by links."""
    lines = (
        "import io, tarfile",
        "from pathlib import Path",
        "from irgym.llvmir.programs.packages.fetching import _unpack",
        "archive = Path('work/p.tar.gz')",
        "file = tarfile.open(archive, 'w:gz')",
        "entry = tarfile.TarInfo('../../canary')",
        "file.addfile(entry)",
        "link = tarfile.TarInfo('top/link'); link.type = tarfile.SYMTYPE; link.linkname = '../../..'",
        "file.addfile(link)",
        "file.close()",
        "_unpack(archive, Path('work/unpacked'))",
    )
    del folder, payload
    return python(lines)


CASES: Mapping[str, Maker] = {
    "package_leaves_its_folder": _traversing,
}
"""Inputs, by name."""
