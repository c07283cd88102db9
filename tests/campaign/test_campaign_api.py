"""The campaign of calls from Python: bad arguments, and plug-ins and methods of others that do not work."""

import copy
import pickle
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from campaign_uris import LONG
from commands import without_progress
from grouped import grouped
from passes import PASSES, URIS

import irgym
from irgym.base.errors import IrgymError, PluginError
from irgym.cli.main import main
from irgym.comparing.comparison import ComparisonPlan, run_comparison
from irgym.core.catalogue import ENVIRONMENTS, environment_of
from irgym.core.cost import Job, Measurement, Outcome
from irgym.core.reward import LogSpeedup
from irgym.core.reward_names import reward_from, reward_names
from irgym.gym.env import TaskEnv
from irgym.gym.registration import register_all
from irgym.loggers.events import without_tensorflow
from irgym.search import SEARCHES
from irgym.search.budget import Budget

PROGRAMS = ("loops://mm/24x20x17", "loops://mm/16x16x16")
NAN = float("nan")
Make = Callable[..., gymnasium.Env[Any, Any]]


class Invented:
    """Costs that depend on the schedule's text alone."""

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        return [Measurement(Outcome.OK, (1000.0 + zlib.crc32(job.schedule.encode()) % 999,)) for job in jobs]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path))
    made: list[gymnasium.Env[Any, Any]] = []

    def build(**options: Any) -> gymnasium.Env[Any, Any]:
        given = {"programs": PROGRAMS, "evaluator": Invented(), "peak_gflops": 100.0} | options
        made.append(gymnasium.make("irgym/Loops-v0", **given))
        return made[-1]

    yield build
    for env in made:
        env.close()


def sentence(error: BaseException) -> str:
    """Return a message, which is one line, and not a long one."""
    text = str(error)
    assert text and "\n" not in text and len(text) < 1000, text
    return text


def shown(value: object) -> str:
    """Return a value as the name of a test, the same in every process: without addresses."""
    return re.sub(r" at 0x\w+", "", ascii(value))[:60]


ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    *(
        ({"programs": programs}, "programs")
        for programs in ([], (), "loops://mm/4x4x4", 5, [5], [None], b"x", {})
    ),
    *(
        ({"programs": [uri]}, "loops")
        for uri in ("", "x", "hlo://gpt2", "loops://mm/0x1x1", "loops://mm/4x4x4\0", LONG[:300])
    ),
    ({"programs": None, "dataset": ""}, "dataset is '', which names nothing"),
    *(({"programs": None, "dataset": name}, "data set") for name in ("mine", "mm_random:", LONG[:300])),
    *(({"programs": None, "split": name}, "split") for name in ("", "both", "TRAIN", None)),
    *(
        ({"observation": name}, "observation")
        for name in ("", "smell", [], ["features", "smell"], 5, [5], [["features"]])
    ),
    *(({"reward": reward}, "reward") for reward in ("", "joy", 5, LogSpeedup, object(), lambda costs: 0.0)),
    *(({"reward": reward}, "reward") for reward in ("dense:every=-1", "dense:x=1")),
    *(({"horizon": steps}, "horizon") for steps in (0, -1, 1.5, NAN, float("inf"), "5", True, [5], 0.0)),
    *(({"backend": name}, "back end") for name in ("", "gpu", "[/b]")),
    *(({"peak_gflops": peak}, "peak_gflops") for peak in (0, -1.0, NAN, float("inf"), "fast", True)),
    *(({"objective": name}, "objective") for name in ("", "size", "TIME")),
    *(({"render_mode": mode}, "render mode") for mode in ("human", "rgb_array", "")),
    ({"environment": "nowhere"}, "environment"),
]


@pytest.mark.filterwarnings("ignore:.*render_mode")
@pytest.mark.parametrize(("options", "word"), ARGUMENTS, ids=shown)
def test_bad_arguments_of_make(make: Make, options: dict[str, Any], word: str) -> None:
    with pytest.raises(IrgymError) as caught:
        make(**options)
    assert word in sentence(caught.value)


ACTIONS: list[Any] = [
    *(
        -1,
        10**6,
        10**30,
        -(10**30),
        1.7,
        1.0,
        NAN,
        "3",
        "up",
        None,
        True,
        np.True_,
        np.float64(2),
        np.int64(-1),
    ),
    *(
        [1],
        [1, 2],
        (1,),
        [],
        {},
        np.array([3]),
        np.zeros((2, 2)),
        np.array(2.5),
        [[1], [1, 2]],
        b"\1",
        object(),
    ),
]


@pytest.mark.parametrize("action", ACTIONS, ids=shown)
def test_actions_that_are_none(make: Make, action: Any) -> None:
    env = cast(TaskEnv, make().unwrapped)
    env.reset(seed=0)
    before = env.state, env.schedule
    with pytest.raises(IrgymError, match="an action is a whole number from 0 to"):
        env.step(action)
    assert (env.state, env.schedule) == before


@pytest.mark.parametrize("action", [0, [0], [-1] * 9, [0.5] * 9, "x", None, [10**9] * 9], ids=str)
def test_vectors_that_are_no_action(action: Any) -> None:
    from irgym.core.actions import ActionSpace
    from irgym.core.kinds import ActionKind
    from irgym.gym.spaces import action_of

    space = ActionSpace((ActionKind("tile", (tuple(range(8)),) * 8),))
    assert not space.listable
    with pytest.raises(IrgymError, match="an action is a vector of 9 whole numbers"):
        action_of(space, action)
    assert action_of(space, np.array([0, *range(8)])).params == tuple(range(8))


@pytest.mark.parametrize(
    "options",
    [
        {"programm": PROGRAMS[0]},
        {"program": PROGRAMS[0], "seed": 1},
        {"program": 5},
        {"program": ""},
        {"program": "x"},
        {5: 5},
        "x",
        [1],
        7,
    ],
    ids=str,
)
def test_bad_options_of_reset(make: Make, options: Any) -> None:
    env = make()
    env.reset(seed=0)
    before = cast(TaskEnv, env.unwrapped).task.uri
    with pytest.raises(IrgymError) as caught:
        env.unwrapped.reset(options=options)
    assert sentence(caught.value) and cast(TaskEnv, env.unwrapped).task.uri == before


def test_a_step_before_any_episode(make: Make) -> None:
    with pytest.raises(IrgymError, match="call reset before step"):
        make().unwrapped.step(0)


def test_rewards_by_name(make: Make) -> None:
    loops = ENVIRONMENTS.load("loops")
    for name in reward_names(loops):
        assert cast(TaskEnv, make(reward=name).unwrapped).setting.course.reward == reward_from(loops, name)


def play(env: gymnasium.Env[Any, Any], steps: int, seed: int = 0) -> list[tuple[float, bool, bool]]:
    """Return rewards and ends of random legal steps."""
    rng = np.random.default_rng(seed)
    ends: list[tuple[float, bool, bool]] = []
    for _ in range(steps):
        mask = cast(TaskEnv, env.unwrapped).action_masks().copy()
        mask[-1] = False  # stop
        _, reward, terminated, truncated, _ = env.step(int(rng.choice(np.flatnonzero(mask))))
        ends.append((float(reward), terminated, truncated))
    return ends


def test_a_time_limit_of_make_leaves_the_reward_of_the_end(make: Make) -> None:
    limited = make(reward=LogSpeedup(), max_episode_steps=3)
    own = make(reward=LogSpeedup(), horizon=3)
    again = gymnasium.make(cast(Any, limited.spec))
    for env in (limited, own, again):
        env.reset(seed=4)
    courses = [play(env, 3, seed=1) for env in (limited, own, again)]
    assert courses[0] == courses[1] == courses[2]
    assert [truncated for *_, truncated in courses[0]] == [False, False, True]
    assert courses[0][-1][0] != 0.0
    assert cast(TaskEnv, make(max_episode_steps=9, horizon=2).unwrapped).horizon == 2
    again.close()


@pytest.mark.parametrize(
    "copied", [lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy], ids=["pickle", "deepcopy"]
)
def test_a_pickled_environment_goes_on(make: Make, copied: Callable[[Any], Any]) -> None:
    env = make(reward="default", max_episode_steps=6)
    env.reset(seed=1)
    play(env, 3)
    twin = copied(env)
    first, other = cast(TaskEnv, env.unwrapped), cast(TaskEnv, twin.unwrapped)
    assert other.state == first.state and other.schedule == first.schedule and other.cost() == first.cost()
    assert play(env, 3, seed=2) == play(twin, 3, seed=2)
    assert [env.reset()[1]["uri"] for _ in range(9)] == [twin.reset()[1]["uri"] for _ in range(9)]
    twin.close()


def test_a_pickled_environment_measures_for_itself(make: Make) -> None:
    env = make(programs=["loops://mm/8x8x8"], evaluator=None)
    twin = pickle.loads(pickle.dumps(env))
    assert twin.reset(seed=0)[1]["cost"] > 0
    twin.close()


def test_an_evaluator_that_cannot_be_pickled(make: Make) -> None:
    evaluator = Invented()
    evaluator.hook = lambda: None  # pyright: ignore
    with pytest.raises(IrgymError, match="evaluator of this environment cannot be pickled"):
        pickle.dumps(make(evaluator=evaluator))


def test_stable_baselines_makes_environments_by_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_tensorflow()  # Stable-Baselines3 imports TensorBoard, which takes half a minute with it
    env_util = pytest.importorskip("stable_baselines3.common.env_util")
    options = {"programs": PROGRAMS, "evaluator": Invented(), "peak_gflops": 100.0}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*render_mode")
        envs = env_util.make_vec_env("irgym/Loops-v0", n_envs=2, env_kwargs=options)
    assert envs.reset().shape[0] == 2
    envs.close()


def test_a_data_set_without_programs() -> None:
    with pytest.raises(IrgymError, match="the data set full has no training programs: set the share"):
        TaskEnv("hlo", dataset="full")


@pytest.mark.parametrize(
    "uri",
    ["", ":", "\0", "loops:\0", "nowhere://x", LONG, "loops", "LOOPS://mm/4x4x4"],
    ids=shown,
)
def test_uris_of_no_environment(uri: str) -> None:
    with pytest.raises(IrgymError):
        environment_of(uri).task(uri)


NO_TEXT: tuple[Any, ...] = (None, 5, 1.5, b"x", [], {}, object(), int)
"""Values that are neither texts nor paths."""

PUBLIC: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    *(
        (irgym.tune, (program,), {"evaluations": 1})
        for program in ("", "x", "a.mlir", Path("a.mlir"), *NO_TEXT)
    ),
    *((irgym.task, (program,), {}) for program in ("", "mm/4x4x4", "missing.hlo", Path("/"), *NO_TEXT)),
    *((irgym.tune, (URIS[0], inputs), {}) for inputs in (None, 5, "x", {}, np.zeros(3), (1,))),
    *(
        (irgym.tune, (URIS[0],), {"seconds": value})
        for value in (0, -1.0, NAN, float("inf"), "3", True, [1], 1e300)
    ),
    *((irgym.tune, (URIS[0],), {"evaluations": value}) for value in (0, -1, 1.5, "3", True, NAN, 10**30)),
    *((irgym.tune, (URIS[0],), {"seed": value}) for value in (-1, 2**63, 1.5, "0", None, True, NAN)),
    *((irgym.tune, (URIS[0],), {"search": value}) for value in ("", "oracle", "guided", 5, b"beam", [])),
    *(
        (irgym.tune, (URIS[0],), {"policy": value})
        for value in ("", "nowhere", Path("nowhere"), 5, [], object())
    ),
    *((irgym.tune, (URIS[0],), {name: "nonsense"}) for name in ("objective", "backend", "farm")),
    *((irgym.tune, (URIS[0],), {name: []}) for name in ("objective", "backend", "farm")),
    *(
        (irgym.replay, (URIS[0], schedule), {})
        for schedule in ("fly", "fold9", "stop fold0", "fold0_1", *NO_TEXT)
    ),
    *((irgym.compare, (name,), {}) for name in ("", "towers", *NO_TEXT)),
    *((irgym.compare, ("passes",), {"methods": value}) for value in ((), ("magic",), ("guided",), 5, (5,))),
    *((irgym.compare, ("passes", programs), {}) for programs in ("x", ["x"], [5], 5, [None])),
    *((irgym.compare, ("passes",), {"limit": value}) for value in (0, -1, 1.5, "2", True)),
    *((irgym.compare, ("passes",), {"validation_inputs": value}) for value in (-1, 1.5, "2", 10**30)),
    *((irgym.compare, ("passes",), {"also": value}) for value in (("colour",), (5,), "colour", 5)),
    *(
        (irgym.compare, ("passes",), {name: 5})
        for name in ("json", "run_folder", "dataset", "split", "backend")
    ),
    *((irgym.train, (name, "run"), {}) for name in ("", "towers", *NO_TEXT)),
    *((irgym.train, ("passes", run), {}) for run in NO_TEXT),
    *(
        (irgym.train, ("passes", "run"), {"hyperparameters": value})
        for value in ({"speed": 1}, {5: 5}, [], "lr=1", 5)
    ),
    *(
        (irgym.train, ("passes", "run"), {"hyperparameters": {"lr": value}})
        for value in ("x", NAN, -1, None, [1.0], {})
    ),
    *(
        (irgym.train, ("passes", "run"), {name: "x"})
        for name in ("dataset", "agent", "seconds", "iterations", "reward")
    ),
    *(
        (irgym.train, ("passes", "run"), {name: 5})
        for name in ("dataset", "agent", "reward", "objective", "validate")
    ),
    *((irgym.train, ("passes", "run"), {"screen": value}) for value in (0, 2.0, NAN, "x", True)),
    *(
        (function, (URIS[0],), {name: value})
        for function, name in (
            (irgym.tune, "searching"),
            (irgym.tune, "measuring"),
            (irgym.compare, "comparing"),
            (irgym.history, "measuring"),
        )
        for value in (5, "random", {}, None, irgym.Training())
    ),
    *((irgym.train, ("passes", "run"), {"training": value}) for value in (5, "ppo", {}, irgym.Searching())),
    *((irgym.evaluate, (run,), {}) for run in ("", "nowhere", *NO_TEXT)),
    *((irgym.load_policy, (name,), {}) for name in ("", "default", *NO_TEXT)),
    *((irgym.load_policy, ("default", name), {}) for name in ("", "towers", "passes", 5, b"x")),
]


REQUESTS: dict[Callable[..., Any], tuple[type[Any], ...]] = {
    irgym.tune: (irgym.Searching,),
    irgym.compare: (irgym.Comparing,),
    irgym.train: (irgym.Training,),
}
"""Requests that functions take, beside `Measuring`."""


@pytest.mark.parametrize(("function", "arguments", "options"), PUBLIC, ids=shown)
def test_bad_arguments_of_public_functions(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(cast(Any, ENVIRONMENTS.builtin), "passes", "passes:PASSES")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IrgymError) as caught:
        function(*arguments, **grouped(*REQUESTS.get(function, ()), **options))
    assert sentence(caught.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("evaluations", "seconds"),
    [(None, None), (0, None), (-1, None), (None, 0.0), (None, NAN), (None, float("inf"))],
)
def test_budgets_that_are_none(evaluations: int | None, seconds: float | None) -> None:
    with pytest.raises(IrgymError):
        Budget(evaluations, seconds)


class Broken:
    """A search with a bug."""

    def run(self, session: Any, rng: np.random.Generator) -> None:
        raise ZeroDivisionError("division by\nzero")


def test_a_search_that_raises_costs_its_own_row_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast(Any, SEARCHES.builtin), "broken", f"{__name__}:Broken")
    monkeypatch.setitem(
        __import__("sys").modules, __name__, __import__("types").SimpleNamespace(Broken=Broken)
    )
    with PASSES.bench() as bench:
        comparison = run_comparison(
            ComparisonPlan(PASSES, URIS[:2], ("broken", "base", "random"), Budget(4)), bench
        )
    costs = {(row.program, row.method): row.cost for row in comparison.rows}
    assert len(costs) == 6 and all(
        (cost is None) == (method == "broken") for (_, method), cost in costs.items()
    )
    [detail, _] = [row.detail for row in comparison.rows if row.method == "broken"]
    assert "ZeroDivisionError in test_campaign_api.py, line" in detail and "\n" not in detail


PLUGINS = {
    "raising": ("environments", "raise RuntimeError('out of order')"),
    "leaving": ("environments", "import sys; sys.exit(3)"),
    "missing": ("environments", None),
    "empty": ("environments", "THING = None"),
    "failing": (
        "environments",
        "import passes\nclass Thing(passes.PassEnvironment):\n"
        "    def backends(self): raise OSError('no disk')\nTHING = Thing()",
    ),
    "Odd name/[/b]": ("environments", "raise ValueError"),
    "broken-search": ("searches", "1 / 0"),
}


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install packages that do not work."""
    for number, (name, (group, source)) in enumerate(PLUGINS.items()):
        if source is not None:
            (tmp_path / f"plugin{number}.py").write_text(source)
        info = tmp_path / f"plugin{number}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: plugin{number}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[irgym.{group}]\n{name} = plugin{number}:THING\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "raising" in {entry.name for entry in entry_points(group="irgym.environments")}


def test_packages_that_do_not_work_are_listed_as_such(
    plugins: None, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["envs"])
    lines = " ".join(capsys.readouterr().out.replace("\u2502", " ").split())
    for word in ("loops", "linalg", "raising", "out of order", "leaving", "missing", "no disk", "plugin0"):
        assert word in lines
    for name in ("raising", "leaving", "missing", "empty"):
        with pytest.raises(PluginError, match=f"the environment '{name}' of plugin"):
            ENVIRONMENTS.load(name)
    with pytest.raises(PluginError, match="the search 'broken-search'"):
        SEARCHES.load("broken-search")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Overriding environment")
        register_all()
    assert "irgym/Raising-v0" in gymnasium.registry


def test_packages_that_do_not_work_are_refused(plugins: None, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["programs", "raising"],
        ["tune", "raising://x"],
        ["tune", URIS[0], "--search", "broken-search"],
    ):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
            patch.setitem(cast(Any, ENVIRONMENTS.builtin), "passes", "passes:PASSES")
            main(command)
        captured = capsys.readouterr()
        assert end.value.code == 2 and not captured.out
        said = without_progress(captured.err)
        assert said.startswith("irgym: ") and said.count("\n") == 1, captured.err
        assert "cannot be imported" in said
