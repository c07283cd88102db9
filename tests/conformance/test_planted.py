"""Planted violations: each is found, and the error names the rule and a smallest schedule."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keeping import (
    DOUBLE,
    HALVE,
    KEEPING,
    SPACE,
    STOP,
    Keeping,
    KeepingBench,
    KnownTask,
    Registers,
    RegisterTask,
)

import irgym
from irgym.base.errors import IrgymError
from irgym.conformance.errors import ConformanceError
from irgym.conformance.rules import RULES
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.cost import Call, Job, Measurement, Outcome, Validation
from irgym.core.dataset import Dataset
from irgym.core.kinds import ActionKind
from irgym.core.objective import TIME
from irgym.core.reward import LogSpeedup
from irgym.core.schedule import Schedule

START = (4, 6)
NUMBERS = count()


def broken_by(task: Any, **keywords: Any) -> ConformanceError:
    with pytest.raises(ConformanceError) as caught:
        irgym.check_task(task, bench=KeepingBench(), **keywords)
    return caught.value


def test_a_task_and_an_environment_that_keep_all_rules_pass():
    irgym.check_environment(KEEPING, seed=1, walks=6)
    irgym.check_task(KnownTask(START), bench=KeepingBench())


@dataclass
class Shared:
    """A state that steps change, with the hash of its place in memory."""

    values: list[int]
    stopped: bool = False

    __hash__ = object.__hash__


class SharesState(RegisterTask):
    def initial(self) -> Any:
        return Shared(list(self.values))

    def step(self, state: Any, action: Action) -> Any:
        after = RegisterTask.step(self, Registers((state.values[0], state.values[1]), state.stopped), action)
        state.values[:] = after.values  # the fork has the list of its origin
        return Shared(state.values, after.stopped)


class MutatesItsArgument(SharesState):
    def step(self, state: Any, action: Action) -> Any:
        after = RegisterTask.step(self, Registers((state.values[0], state.values[1]), state.stopped), action)
        state.values, state.stopped = list(after.values), after.stopped
        return Shared(list(after.values), after.stopped)


class MaskTooWide(RegisterTask):
    def mask(self, state: Registers) -> Mask:
        mask = super().mask(state)
        return mask if state.stopped else replace(mask, candidates=((HALVE, "a"), (HALVE, "b")))

    def step(self, state: Registers, action: Action) -> Registers:
        assert action.kind != HALVE or state.values["ab".index(action.candidate)] % 2 == 0, "odd"
        return super().step(state, action)


class MaskTooNarrow(RegisterTask):
    def mask(self, state: Registers) -> Mask:
        mask = super().mask(state)
        return mask if state.values[0] < 8 else SPACE.mask([False] * 4, mask.params.tolist())


class MaskForbidsWhatIsAccepted(RegisterTask):
    def accepts(self, state: Registers, action: Action) -> bool:
        return action.kind != HALVE or super().accepts(state, action)


class MaskWithoutChoices(RegisterTask):
    def mask(self, state: Registers) -> Mask:
        mask = super().mask(state)
        return replace(mask, params=np.zeros(SPACE.param_count, np.bool_))


class CandidateTwice(RegisterTask):
    def mask(self, state: Registers) -> Mask:
        mask = super().mask(state)
        return replace(mask, candidates=mask.candidates * 2)


class StopThatDoesNotStop(RegisterTask):
    def step(self, state: Registers, action: Action) -> Registers:
        return state if action.kind == STOP else super().step(state, action)


class StopThatChangesThePrograms(RegisterTask):
    def step(self, state: Registers, action: Action) -> Registers:
        return Registers((0, 0), stopped=True) if action.kind == STOP else super().step(state, action)


class CountsTooFast(RegisterTask):
    def taken(self, state: Registers) -> int:
        return 2 * int(state.stopped)


class StepsAtRandom(RegisterTask):
    def step(self, state: Registers, action: Action) -> Registers:
        after = super().step(state, action)
        return Registers((after.values[0], next(NUMBERS) * 2)) if action.kind == HALVE else after


class BatchThatDiffers(RegisterTask):
    @classmethod
    def step_many(cls, tasks: Sequence[Any], states: Sequence[Any], actions: Sequence[Action]) -> list[Any]:
        return [task.initial() for task in tasks]


class TextThatDoesNotParse(RegisterTask):
    space = ActionSpace(
        (*SPACE.kinds[:2], ActionKind("set_0", candidates=True), *SPACE.kinds[3:]), capacity=4
    )

    def mask(self, state: Registers) -> Mask:
        mask = super().mask(state)
        named = tuple((kind, f"{name}_@x y") for kind, name in mask.candidates)
        return replace(mask, candidates=named)


class ForgetfulKey(KnownTask):
    def key(self, state: Registers) -> str:
        return f"{state.values[0]}"


class ForgetfulKeyOfMeasured(RegisterTask):
    def key(self, state: Registers) -> str:
        return f"{state.values[0]}"

    cost_features = analysis = recorded = None


class ChangingJob(RegisterTask):
    def job(self, state: Registers) -> Job:
        return replace(super().job(state), toolchain=f"toy {next(NUMBERS)}")


class JobOfAnotherKey(RegisterTask):
    def job(self, state: Registers) -> Job:
        return replace(super().job(state), schedule=self.describe(state))


class JobThatCannotBeSent(RegisterTask):
    def validation(self, state: Registers, inputs: int, seed: int) -> Call:
        return Call("keeping:validate", (lambda: inputs,))


class OriginalNotMarked(RegisterTask):
    def job(self, state: Registers) -> Job:
        return replace(super().job(state), original=False)


class InfiniteKnownCost(KnownTask):
    def job(self, state: Registers) -> Job:
        known = Measurement(Outcome.OK, (float("nan"),))
        return replace(super().job(state), known=known if state.values[0] > 4 else super().job(state).known)


class WrongKnownCost(KnownTask):
    def job(self, state: Registers) -> Job:
        return replace(super().job(state), known=Measurement(Outcome.OK, (1.0 + sum(state.values),)))


def noisy(values: tuple[int, int]) -> Measurement:
    return Measurement(Outcome.OK, (1.0 if values == START else float(next(NUMBERS)),))


def raising(values: tuple[int, int]) -> Measurement:
    if values[0] > START[0]:
        raise ZeroDivisionError("the compiler is not there")
    return Measurement(Outcome.OK, (1.0,))


def silent(values: tuple[int, int]) -> Measurement:
    return Measurement(Outcome.CRASH) if values != START else Measurement(Outcome.OK, (1.0,))


def wrong(values: tuple[int, int]) -> Validation:
    return Validation(False, 1.0, "equality", 1, "every element differs")


class CallsPlanted(RegisterTask):
    function = ""

    def job(self, state: Registers) -> Job:
        return replace(super().job(state), call=Call(f"{__name__}:{self.function}", (state.values,)))


class NoisyCost(CallsPlanted):
    function = "noisy"


class FailingStateRaises(CallsPlanted):
    function = "raising"


class FailureWithoutDetail(CallsPlanted):
    function = "silent"


class WrongResults(RegisterTask):
    def validation(self, state: Registers, inputs: int, seed: int) -> Call:
        return Call(f"{__name__}:wrong", (state.values,))


class ValidatesTheOriginal(RegisterTask):
    def validation(self, state: Registers, inputs: int, seed: int) -> Call:
        return super().validation(self.initial(), inputs, seed)


class ComparesNothing(RegisterTask):
    def validation(self, state: Registers, inputs: int, seed: int) -> Call:
        return super().validation(state, 0, seed)


class NoToolchain(RegisterTask):
    def job(self, state: Registers) -> Job:
        return replace(super().job(state), toolchain="")


class ObservationOutOfItsSpace(RegisterTask):
    def seen(self, state: Registers) -> Any:
        return np.array([*state.values, 1], np.float32)


class WrongDtype(RegisterTask):
    def seen(self, state: Registers) -> Any:
        return np.array(state.values, np.float64)


class NotANumber(RegisterTask):
    def seen(self, state: Registers) -> Any:
        return np.array([np.nan if state.values[0] > 4 else 1.0, 1.0], np.float32)


class UnsteadyObservation(RegisterTask):
    def seen(self, state: Registers) -> Any:
        return np.array([next(NUMBERS) % 7, 1], np.float32)


class RowsMissing(RegisterTask):
    def rows(self, state: Registers) -> Any:
        seen = super().rows(state)
        return replace(seen, candidates=seen.candidates[:1])


class ExportsNothing(RegisterTask):
    def export(self, state: Registers, path: Path) -> list[Path]:
        return [path] if path.suffix == ".txt" else super().export(state, path)


class ExportsAnySuffix(RegisterTask):
    def export(self, state: Registers, path: Path) -> list[Path]:
        path.write_text("x")
        return [path]


class SketchTooLong(RegisterTask):
    def sketch(self, rng: np.random.Generator) -> Sequence[Action]:
        return [Action(0, (0, 0))] * 11


class AnalysisThatIsNoShare(RegisterTask):
    def analysis(self, state: Registers) -> Any:
        return np.array([float(sum(state.values))])


class JobWithFeaturesOfTheStart(RegisterTask):
    def job_features(self, job: Job) -> Any:
        return self.cost_features(self.initial())


class EstimateAsCost(RegisterTask):
    def estimate(self, state: Registers) -> Job:
        return self.job(state)


class RecordsOfAnotherKey(RegisterTask):
    def recorded(self, key: str) -> Registers | None:
        return None if "no" in key else Registers((1, 1))


VIOLATIONS = {
    SharesState: "fork",
    MutatesItsArgument: "fork",
    MaskTooWide: "allowed",
    MaskTooNarrow: "terminal",
    MaskForbidsWhatIsAccepted: "forbidden",
    MaskWithoutChoices: "mask",
    CandidateTwice: "mask",
    StopThatDoesNotStop: "stop",
    StopThatChangesThePrograms: "stop",
    StepsAtRandom: "fork",
    BatchThatDiffers: "batch",
    ForgetfulKey: "key",
    ForgetfulKeyOfMeasured: "equal-costs",
    ChangingJob: "job",
    JobOfAnotherKey: "job",
    JobThatCannotBeSent: "job",
    OriginalNotMarked: "original",
    InfiniteKnownCost: "known",
    WrongKnownCost: "known-measured",
    NoisyCost: "exact",
    FailingStateRaises: "evaluated",
    FailureWithoutDetail: "evaluated",
    WrongResults: "validates",
    ValidatesTheOriginal: "validation",
    ComparesNothing: "validates",
    NoToolchain: "job",
    ObservationOutOfItsSpace: "observation-space",
    WrongDtype: "observation-space",
    NotANumber: "observation-finite",
    UnsteadyObservation: "observation-steady",
    RowsMissing: "observation-rows",
    ExportsNothing: "export",
    ExportsAnySuffix: "export-suffix",
    SketchTooLong: "sketches",
    AnalysisThatIsNoShare: "analysis",
    JobWithFeaturesOfTheStart: "cost-features",
    EstimateAsCost: "estimates",
    RecordsOfAnotherKey: "records",
    CountsTooFast: "turns",
}


@pytest.mark.parametrize("planted", VIOLATIONS, ids=lambda planted: planted.__name__)
def test_planted_violations_are_found(planted: type[RegisterTask]):
    found = broken_by(planted(START))
    assert found.rule == VIOLATIONS[planted], found
    assert repr(found.rule) in str(found) and "\n" not in str(found)
    assert isinstance(found, IrgymError)


def test_the_schedule_is_the_smallest():
    assert broken_by(MaskTooNarrow(START)).schedules in [("double_0",)]
    [schedule] = broken_by(FailingStateRaises(START)).schedules
    assert len(Schedule.parse(schedule, SPACE)) == 1
    first, second = broken_by(ForgetfulKey(START)).schedules
    assert sorted(len(Schedule.parse(text, SPACE)) for text in (first, second)) == [0, 1]


class Overlap(Keeping):
    def dataset(self, name: str) -> Dataset:
        data = super().dataset(name)
        return replace(data, test=data.train)


class NoTestPrograms(Keeping):
    def dataset(self, name: str) -> Dataset:
        return replace(super().dataset(name), test=())


class NoTrainingPrograms(Keeping):
    def dataset(self, name: str) -> Dataset:
        return replace(super().dataset(name), train=())


class DatasetsThatChange(Keeping):
    def dataset(self, name: str) -> Dataset:
        return replace(super().dataset(name), train=(f"keeping://{next(NUMBERS)}-1",))


class AnyBackend(Keeping):
    def task(self, uri: str, backend: Any = None, target: Any = None, objective: Any = None) -> RegisterTask:
        return super().task(uri, None, target, objective)


class AnyUri(Keeping):
    def task(self, uri: str, backend: Any = None, target: Any = None, objective: Any = None) -> RegisterTask:
        return super().task(uri if "-such" not in uri else "keeping://1-1", backend, target, objective)


class OtherCanonicalUris(Keeping):
    def canonical(self, uri: str) -> str:
        return f"{uri}?"


class ReferenceThatIsNotListed(Keeping):
    reference_baseline = "numpy"


class PipelinesThatAreNotOffered(Keeping):
    pipelines = ()
    reference_pipeline = None


class ObjectivesThatDiffer(Keeping):
    objectives = (*Keeping.objectives, TIME)


class MeasuresTheSame(RegisterTask):
    objectives = (*RegisterTask.objectives, TIME)


class ObjectivesMeasuredAlike(ObjectivesThatDiffer):
    made = MeasuresTheSame


class MethodThatIsNotThere(Keeping):
    default_methods = ("base", "bean")


class MethodWithoutItsPolicy(Keeping):
    default_methods = ("base", "policy:default")


class NoMethods(Keeping):
    default_methods = ()


class RewardThatIsAClass(Keeping):
    default_reward: Any = LogSpeedup


class PolicyOfOtherActions(Keeping):
    def policies(self) -> Any:
        return ENVIRONMENTS.load("loops").policies()


class PolicyThatIsNotThere(Keeping):
    def policies(self) -> Any:
        return {"default": Path("nowhere.pt")}


OF_ENVIRONMENTS = {
    Overlap: "splits",
    NoTestPrograms: "datasets",
    NoTrainingPrograms: "datasets",
    DatasetsThatChange: "datasets",
    AnyBackend: "backends",
    AnyUri: "uri",
    OtherCanonicalUris: "uri",
    ReferenceThatIsNotListed: "names",
    ObjectivesThatDiffer: "objectives",
    ObjectivesMeasuredAlike: "objectives",
    MethodThatIsNotThere: "names",
    MethodWithoutItsPolicy: "names",
    NoMethods: "names",
    RewardThatIsAClass: "names",
    PolicyOfOtherActions: "policies",
    PipelinesThatAreNotOffered: "offers",
    PolicyThatIsNotThere: "names",
}


@pytest.mark.parametrize("planted", OF_ENVIRONMENTS, ids=lambda planted: planted.__name__)
def test_planted_violations_of_environments_are_found(planted: type[Keeping]):
    with pytest.raises(ConformanceError) as caught:
        irgym.check_environment(planted())
    assert caught.value.rule == OF_ENVIRONMENTS[planted]
    assert str(caught.value).startswith("keeping breaks the rule ")


def test_the_account_lists_what_was_checked_and_what_was_not():
    found = irgym.check_environment(KEEPING, measure=False, skip={"splits": "on purpose"})
    assert {*found.rules, *found.left_out} == set(RULES) and all(found.rules.values())
    assert found.left_out["splits"] == "on purpose"
    assert found.left_out["exact"] == "nothing was measured"
    assert found.rules["mask"] == found.states > 6
    alone = irgym.check_task(NeverStops(START), walks=1, steps=1)
    assert alone.programs == ("keeping://4-6",) and "uri" not in {*alone.rules, *alone.left_out}
    assert alone.left_out["key"] == "no two states had equal keys: take more walks"


class NeverStops(RegisterTask):
    def mask(self, state: Registers) -> Mask:
        mask = super().mask(state)
        return replace(mask, kinds=np.array([*mask.kinds[:STOP], False]))


class DoublesNothing(RegisterTask):
    def step(self, state: Registers, action: Action) -> Registers:
        return state if action.kind == DOUBLE else super().step(state, action)


@dataclass(frozen=True)
class Remembering(Registers):
    """A state that holds the number of steps, which nobody sees."""

    steps: int = 0


class DoublesNothingButCounts(DoublesNothing):
    def initial(self) -> Any:
        return Remembering(self.values)

    def step(self, state: Any, action: Action) -> Any:
        after = super().step(state, action)
        return Remembering(after.values, after.stopped, state.steps + 1)


class Moves(DoublesNothingButCounts):
    def seen(self, state: Any) -> Any:
        return np.array([state.steps, 0], np.float32)


@pytest.mark.parametrize("planted", [DoublesNothing, DoublesNothingButCounts])
def test_actions_without_effect_are_counted(planted: type[RegisterTask]):
    found = irgym.check_task(planted(START))
    assert found.useless["double"] == found.tried["double"] > 2
    assert "halve" not in found.useless and "stop" not in found.tried


def test_what_is_observed_is_an_effect():
    """A cursor moves, and the program stays as it is."""
    assert "double" not in irgym.check_task(Moves(START)).useless


@pytest.mark.parametrize(
    ("options", "message"),
    [({"walks": 0}, "0 walks"), ({"steps": 10**9}, "many: give 1 to"), ({"seed": -1}, "seed")],
)
def test_a_check_of_nothing_is_refused(options: dict[str, int], message: str):
    with pytest.raises(IrgymError, match=message):
        irgym.check_task(KnownTask(START), **options)


def test_rules_are_skipped_with_a_reason():
    irgym.check_task(OriginalNotMarked(START), skip={"original": "nothing is measured"})
    with pytest.raises(IrgymError, match="without a reason"):
        irgym.check_task(OriginalNotMarked(START), skip={"original": ""})
    with pytest.raises(IrgymError, match="there is no rule 'orignal' to skip: choose among uri, task"):
        irgym.check_task(OriginalNotMarked(START), skip={"orignal": "a slip"})


def test_measuring_rules_need_a_bench():
    irgym.check_task(NoisyCost(START))


def test_every_rule_has_a_sentence():
    assert all(rule.demand.endswith(".") and rule.name == name for name, rule in RULES.items())
