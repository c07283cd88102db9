"""Training and evaluating from Python: a run folder as the commands make it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from grouped import grouped
from learners import FARMED
from passes import URIS, PassTask
from trainings import contents

import irgym
from irgym.agents import AGENTS
from irgym.api.hyperparameters import configured
from irgym.api.training import filled_by
from irgym.base.errors import IrgymError, ProgramError
from irgym.cli.main import main
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.recipe import Recipe
from irgym.core.reward_names import reward_names
from irgym.measure.target import host_target
from irgym.policies.run_folder import RunFolder

pytest.importorskip("torch")


SMALL = {"episodes": 4, "hidden": (8,)}


def test_train_then_evaluate_then_tune(tmp_path: Path):
    said: list[str] = []
    seen: list[int] = []
    run = tmp_path / "run"
    policy = irgym.train(
        "passes",
        run,
        note=said.append,
        progress=lambda metrics: seen.append(metrics.iteration),
        training=irgym.Training(iterations=2, device="cpu", hyperparameters=SMALL),
    )
    assert policy.environment == "passes" and seen == [1, 2]
    assert said == ["ppo on 4 programs of all; a toy; learning on cpu"]
    irgym.train(
        "passes",
        tmp_path / "few",
        note=said.append,
        training=irgym.Training(limit=3, iterations=1, hyperparameters={**SMALL, "device": "cpu"}),
    )
    assert said[1] == "ppo on 3 programs of all; a toy; learning on cpu"
    comparison = irgym.evaluate(run, evaluating=irgym.Evaluating(limit=2))
    assert comparison.methods == [f"policy:{run}", f"raw:{run}"]
    assert comparison.programs == [URIS[0], URIS[2]]
    assert json.loads(RunFolder(run).evaluation.read_text()) == comparison.to_json()
    assert RunFolder(run).steps.exists()
    result = irgym.tune(URIS[0], policy=run, searching=irgym.Searching(evaluations=5))
    assert result.search is not None and result.search.policy == str(run)
    led = irgym.tune(URIS[0], policy=irgym.load_policy(run), searching=irgym.Searching(evaluations=5))
    assert led.cost == result.cost


def test_a_run_records_the_device_asked_for_and_resumes_on_another(tmp_path: Path):
    run, training = RunFolder(tmp_path / "run"), irgym.Training(iterations=1, hyperparameters=SMALL)
    irgym.train("passes", run.path, training=replace(training, device="auto"))
    assert run.describe()["config"]["device"] == "auto"
    irgym.train("passes", run.path, training=replace(training, device="cpu", iterations=2, resume=True))
    assert run.describe()["config"]["device"] == "cpu" and len(run.read_metrics()) == 2


def test_a_device_that_is_not_here_is_refused_before_anything_is_written(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(IrgymError, match="torch sees no GPU for device cuda: choose auto or cpu"):
        irgym.train("passes", tmp_path / "run", training=irgym.Training(device="cuda"))
    with pytest.raises(IrgymError, match="there is no device 'gpu': choose auto, cpu, cuda"):
        irgym.imitate("passes", tmp_path / "p.pt", imitating=irgym.Imitating(device="gpu"))
    with pytest.raises(IrgymError, match="device must be a text, not 0"):
        irgym.Training(device=0)  # pyright: ignore[reportArgumentType]
    assert not list(tmp_path.iterdir())


def test_one_program_is_a_data_set(tmp_path: Path):
    said: list[str] = []
    run = tmp_path / "run"
    irgym.train(
        "passes",
        run,
        note=said.append,
        training=irgym.Training(dataset=URIS[1], iterations=1, device="cpu", hyperparameters=SMALL),
    )
    assert said == [f"ppo on 1 programs of {URIS[1]}; a toy; learning on cpu"]
    for split in ("train", "test"):
        assert irgym.evaluate(run, evaluating=irgym.Evaluating(split=split)).programs == [URIS[1]]
    with pytest.raises(ProgramError, match="is a program of loops: name one of passes"):
        irgym.train(
            "passes",
            tmp_path / "other",
            training=irgym.Training(dataset="loops://mm/8x8x8", hyperparameters=SMALL),
        )


def test_programs_as_a_list_are_the_runs(tmp_path: Path):
    run = tmp_path / "run"
    training = irgym.Training(dataset=list(URIS[:3]), holdout=0.5, iterations=1, hyperparameters=SMALL)
    irgym.train("passes", run, training=training)
    assert RunFolder(run).problem().dataset == tuple(URIS[:3])
    both = irgym.evaluate(run, evaluating=irgym.Evaluating(split="all")).programs
    tested = irgym.evaluate(run).programs
    assert sorted(both) == sorted(URIS[:3]) and 0 < len(tested) < 3
    assert irgym.evaluate(run, URIS[3]).programs == [URIS[3]]
    irgym.train("passes", run, training=replace(training, iterations=2, resume=True))
    with pytest.raises(IrgymError, match="dataset"):
        irgym.train("passes", run, training=replace(training, iterations=3, resume=True, dataset=URIS[0]))


@pytest.mark.parametrize("agent", [name for name in AGENTS.builtin if name not in FARMED])
def test_policies_see_what_they_were_trained_on(agent: str, tmp_path: Path):
    run = tmp_path / "run"
    main(["train", "passes", "--run", str(run), "--agent", agent, "--observation", "ops,total",
          "--iterations", "1", "--set", "episodes=4", "hidden=8"])  # fmt: skip
    policy = irgym.load_policy(run)
    task = irgym.task(URIS[0])
    assert policy.observation == "ops,total"
    assert task.observe(task.initial(), policy.observation).tolist() == [
        *task.initial().ops,
        sum(task.initial().ops),
    ]
    assert irgym.evaluate(run, evaluating=irgym.Evaluating(limit=1)).rows[0].speedup is not None
    assert irgym.tune(URIS[0], policy=run, searching=irgym.Searching(evaluations=3)).cost is not None


@pytest.mark.parametrize(
    ("observation", "words"),
    [
        ("nothing", "choose among ops, total"),
        ("text", "reads arrays of numbers, no str"),
        ("cost", "needs the cost"),
    ],
)
def test_observations_that_policies_cannot_see_are_refused(observation: str, words: str, tmp_path: Path):
    with pytest.raises(IrgymError, match=words):
        irgym.train(
            "passes",
            tmp_path / "run",
            training=irgym.Training(observation=observation, iterations=1, hyperparameters=SMALL),
        )


def test_a_run_is_the_same_from_the_command_line_and_resumes_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    irgym.train(
        "passes",
        ours,
        seed=5,
        training=irgym.Training(agent="a2c", limit=2, iterations=1, hyperparameters=SMALL | {"lr": 1e-3}),
    )
    words = ["--limit", "2", "--set", "episodes=4", "hidden=8", "lr=1e-3", "--seed", "5", "--agent", "a2c"]
    main(["train", "passes", "--run", str(theirs), "--iterations", "1", *words])
    assert RunFolder(ours).describe() == RunFolder(theirs).describe()
    main(["train", "passes", "--run", str(ours), "--iterations", "2", "--resume", *words])
    texts = {"episodes": "4", "hidden": [8], "lr": "1e-3"}
    irgym.train(
        "passes",
        theirs,
        seed=5,
        training=irgym.Training(agent="a2c", limit=2, iterations=2, resume=True, hyperparameters=texts),
    )
    rows = [contents(run) for run in (ours, theirs)]
    assert rows[0] == rows[1] and len(rows[0]) == 2


def test_a_resumed_run_keeps_its_peak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    peaks = iter([123.0])  # another measurement raises StopIteration
    monkeypatch.setattr("irgym.api.training.peak_of", lambda bench, task: next(peaks))
    monkeypatch.setattr(PassTask, "target", property(lambda task: host_target()))
    for iterations in (1, 2):
        training = irgym.Training(iterations=iterations, resume=iterations > 1, hyperparameters=SMALL)
        irgym.train("passes", tmp_path, training=training)
    assert RunFolder(tmp_path).problem().peaks == (123.0,)
    assert len(RunFolder(tmp_path).read_metrics()) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hyperparameters": {"speed": 3}}, "'speed=3' is no hyper-parameter of ppo"),
        ({"hyperparameters": {"lr": "fast"}}, "lr of ppo cannot be 'fast'"),
        ({"hyperparameters": {"lr": -1.0}}, "lr of PPO is -1.0: choose more than 0"),
        ({"hyperparameters": {"hidden": "8,x"}}, "hidden of ppo cannot be"),
        ({"agent": "sarsa"}, "no agent 'sarsa'"),
        ({"validate": 1}, "validation needs both"),
        ({"validate": -1}, "0 or more"),
        ({"limit": 0}, "leaves no program"),
        ({"reward": "praise"}, "no reward 'praise'"),
        ({"recipe": "scratch"}, "passes has no recipe 'scratch': it has none"),
        ({"recipe": 3}, "recipe must be a text, not 3"),
        ({"seconds": 0}, "are not enough"),
        ({"iterations": 1.5}, "a whole number"),
        ({"screen": 2.0}, "2"),
        ({"resume": True}, "there is no run in"),
    ],
)
def test_bad_options_leave_nothing_behind(options: dict[str, object], words: str, tmp_path: Path):
    with pytest.raises(IrgymError, match=words):
        irgym.train("passes", tmp_path / "run", **grouped(irgym.Training, **options))
    assert not list(tmp_path.iterdir())


def test_given_options_override_a_recipe(tmp_path: Path):
    run = tmp_path / "run"
    given = {"episodes": 4, "started": 8, "minibatch": 16, "validate_every": 1}
    irgym.train(
        "loops",
        run,
        training=irgym.Training(recipe="scratch", limit=2, validate=2, iterations=1, hyperparameters=given),
    )
    config = RunFolder(run).describe()
    recipe = ENVIRONMENTS.load("loops").recipes["scratch"]
    assert (config["agent"], config["limit"], config["validate"]) == ("ppo", 2, 2)
    wanted = {**recipe.hyperparameters, "iterations": 1, **given}
    assert {name: config["config"][name] for name in wanted} == wanted
    [metrics] = RunFolder(run).read_metrics()
    assert metrics["validation"] is not None


@pytest.mark.parametrize("environment", ENVIRONMENTS.builtin)
def test_recipes_set_hyperparameters_that_exist_and_bring_their_validation(environment: str):
    home = ENVIRONMENTS.load(environment)
    for recipe in home.recipes.values():
        assert recipe.dataset is None or recipe.dataset in home.dataset_names()
        assert recipe.reward is None or recipe.reward in reward_names(home)
        config = configured(AGENTS.load(recipe.agent), recipe.hyperparameters, 0, recipe.agent)
        config.check()
        assert bool(recipe.validate) == bool(config.validate_every)


def test_papers_have_a_recipe_where_they_belong():
    found = {
        (name, environment)
        for environment in ENVIRONMENTS.builtin
        for name, recipe in ENVIRONMENTS.load(environment).recipes.items()
        if recipe.source
    }
    wanted = {("looptune", "loops"), ("xla", "hlo"), ("x-rlflow", "graph-taso")}
    wanted |= {
        ("mlir-rl", "linalg"),
        ("mlir-rl", "linalg-swaps"),
        ("mlir-rl", "linalg-scores"),
        ("mlir-rl", "linalg-flat"),
        ("jit-cse", "cse"),
        ("jit-cse", "superpmi"),
    }
    assert found == wanted


def test_a_recipe_fills_what_is_not_given():
    recipe = Recipe(dataset="theirs", reward="theirs", observation="theirs", limit=3, validate=2)
    request = irgym.Training(dataset="mine", validate=0)
    filled = filled_by(request, recipe)
    assert (filled.dataset, filled.reward, filled.observation) == ("mine", "theirs", "theirs")
    assert (filled.limit, filled.validate, filled.screen) == (3, 0, None)


def test_a_recipe_of_another_agent_is_refused(tmp_path: Path):
    with pytest.raises(IrgymError, match="the recipe 'scratch' trains ppo, not dqn: leave the agent out"):
        irgym.train("loops", tmp_path / "run", training=irgym.Training(agent="dqn", recipe="scratch"))
    with pytest.raises(IrgymError, match="loops has no recipe 'clone': choose among scratch"):
        irgym.train("loops", tmp_path / "run", training=irgym.Training(recipe="clone"))
    assert not list(tmp_path.iterdir())


def test_folders_without_a_run_are_refused(tmp_path: Path):
    with pytest.raises(IrgymError, match="is not a training run"):
        irgym.evaluate(tmp_path)
