import re
from pathlib import Path

from irgym.envs.llvm.observing.counts import AUTOPHASE, INST_COUNT
from irgym.envs.llvm.observing.opcodes import NEWER

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "llvm-compilergym.md").read_text()


def section(title):
    return re.split(r"\n##+ ", PAGE.partition(f"\n### {title}\n")[2])[0]


def names(text):
    """Names by place: both of each pair of cells."""
    return {int(place): name for place, name in re.findall(r"\| (\d+) \| `(\w+)`", text)}


def test_the_page_names_every_value_at_its_place():
    assert names(section("InstCount")) == dict(enumerate(INST_COUNT))
    assert names(section("Autophase")) == dict(enumerate(AUTOPHASE))
    assert len({row.split("|")[3] for row in section("Autophase").splitlines() if "| `" in row}) == len(
        AUTOPHASE
    )


def test_the_page_names_newer_opcodes():
    rows = [row for row in section("InstCount").splitlines() if "| LLVM " in row]
    said = {
        name: row.rpartition("`")[0].rpartition("`")[2]
        for row in rows
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert said == {name: older for name, (_, older) in NEWER.items()}
