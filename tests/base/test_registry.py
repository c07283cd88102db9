"""Parts of other packages: wrong ones and those whose name is taken are told in one sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import irgym
from irgym.agents import AGENTS
from irgym.agents.algorithms.ppo import PPOConfig
from irgym.base.errors import PluginError
from irgym.base.registry import Registry
from irgym.cli.main import main
from irgym.core.catalogue import ENVIRONMENTS
from irgym.envs.loops.environment import LOOPS
from irgym.loggers import LOGGERS
from irgym.networks.encoders import ENCODERS
from irgym.search import SEARCHES
from irgym.search.strategies.greedy import Greedy

Install = Callable[..., None]
REGISTRIES = (SEARCHES, AGENTS, ENVIRONMENTS, ENCODERS, LOGGERS)
CONFIG = """
from dataclasses import dataclass
from irgym.agents.hyperparameters import TrainingOptions
@dataclass(frozen=True)
class Config(TrainingOptions):
    {body}
"""
FAULTS: dict[str, tuple[Registry[Any], str, str]] = {
    "environment": (ENVIRONMENTS, "THING = 1", "is no Environment"),
    "logger": (LOGGERS, "THING = int", "has no method `start`"),
    "encoder": (ENCODERS, "THING = int", "has no method `suited_to`"),
    "search that is none": (SEARCHES, "THING = 1", "cannot be called"),
    "search with parameters": (SEARCHES, "def THING(width): ...", "makes no strategy .* a TypeError"),
    "search that does not run": (SEARCHES, "THING = int", "without a method `run`"),
    "agent that is none": (AGENTS, "THING = 1", "is no dataclass"),
    "agent that can change": (
        AGENTS,
        "from dataclasses import dataclass\n@dataclass\nclass THING:\n    seed: int = 0",
        "is not frozen",
    ),
    "agent that builds nothing": (AGENTS, CONFIG.format(body="pass") + "THING = Config", "no method `build`"),
    "agent without a field": (
        AGENTS,
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass THING:\n    iterations: int = 1\n"
        "    seed: int = 0\n    threads: int = 1\n    def build(self, problem): ...",
        "has no field 'validate_every'",
    ),
    "agent without a default": (
        AGENTS,
        "from dataclasses import dataclass\nfrom irgym.agents.hyperparameters import TrainingOptions\n"
        "@dataclass(frozen=True)\nclass Base:\n    depth: int\n"
        "@dataclass(frozen=True)\nclass THING(TrainingOptions, Base):\n    def build(self, problem): ...",
        "has no default for its field 'depth'",
    ),
}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs a package with one part, `THING` of its module."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def installed(package: str, registry: Registry[Any], name: str, source: str) -> None:
        (tmp_path / f"{package}.py").write_text(source)
        info = tmp_path / f"{package}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[{registry.group}]\n{name} = {package}:THING\n")

    return installed


def refusal(registry: Registry[Any], name: str) -> str:
    with pytest.raises(PluginError) as caught:
        registry.load(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("case", FAULTS)
def test_a_part_of_another_kind_is_refused_in_a_sentence(case: str, install: Install):
    registry, source, words = FAULTS[case]
    package = f"wrong_{list(FAULTS).index(case)}"
    install(package, registry, "odd", source)
    said = refusal(registry, "odd")
    assert said.startswith(f"the {registry.kind} 'odd' of {package} ")
    assert said.endswith(f" ({package}:THING): mend that package, or uninstall it")
    with pytest.raises(PluginError, match=words):
        registry.load("odd")


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_own_parts_are_right(registry: Registry[Any]):
    module, _, name = registry.fault.partition(":")
    fault = vars(__import__(module, fromlist=[name]))[name]
    for known in registry.builtin:
        assert fault(registry.load(known)) == ""


def test_a_right_part_is_loaded(install: Install):
    install("right", SEARCHES, "mine", "from irgym.search.strategies.greedy import Greedy as THING")
    assert SEARCHES.load("mine") is Greedy
    assert "mine" in SEARCHES.names() and not SEARCHES.hidden()


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_a_name_of_two_packages_is_refused(registry: Registry[Any], install: Install):
    install("anna", registry, "mine", "")
    install("bert", registry, "mine", "")
    assert refusal(registry, "mine") == (
        f"the {registry.kind} 'mine' is ambiguous, since anna and bert each have it: uninstall all but one"
    )
    assert registry.names().count("mine") == 1


def test_our_own_parts_go_before_others_of_their_names(install: Install, capsys: pytest.CaptureFixture[str]):
    install("anna", ENVIRONMENTS, "loops", "1 / 0")
    install("bert", SEARCHES, "greedy", "1 / 0")
    install("carl", AGENTS, "ppo", "1 / 0")
    assert ENVIRONMENTS.load("loops") is LOOPS
    assert SEARCHES.load("greedy") is Greedy and AGENTS.load("ppo") is PPOConfig
    own, hidden = [status for status in irgym.environments() if status.name == "loops"]
    assert own.summary and [status.available for status in hidden.backends] == [False]
    main(["envs"])
    said = " ".join(capsys.readouterr().out.replace("\u2502", " ").split())
    for kind, name, package in (
        ("environment", "loops", "anna"),
        ("search", "greedy", "bert"),
        ("agent", "ppo", "carl"),
    ):
        assert f"the {kind} '{name}' of {package} is hidden by irgym's own" in said
        assert "rename it in that package, or uninstall it" in said


def test_an_ambiguous_name_ends_commands_in_a_sentence(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for package in ("anna", "bert"):
        install(package, SEARCHES, "mine", "")
    with pytest.raises(SystemExit) as end:
        main(["tune", "loops://mm/16x16x16", "--search", "mine"])
    assert end.value.code == 2
    assert "is ambiguous, since anna and bert each have it" in capsys.readouterr().err
