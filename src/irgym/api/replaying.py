"""Schedules found before: applied to a program, and listed."""

from typing import TYPE_CHECKING, Any

from irgym.api.checks import check_options
from irgym.api.inputs import Inputs, Sizes, named_with
from irgym.api.modules import as_called
from irgym.api.requests import Measuring, checked
from irgym.api.tuning import Note, original_of, say_nothing
from irgym.base.errors import ScheduleError
from irgym.core.catalogue import locate

if TYPE_CHECKING:
    from irgym.judging.history import Known
    from irgym.judging.result import Tuned


def replay(
    program: object,
    schedule: str,
    *arguments: Any,
    inputs: Inputs | None = None,
    sizes: Sizes | None = None,
    environment: str | None = None,
    seed: int = 0,
    measuring: Measuring = Measuring(),
    note: Note | None = None,
    **keywords: Any,
) -> "Tuned":
    """Apply a schedule to a program, check its results and measure it.

    Args:
        program: As for `tune`, and so are the other arguments.
        schedule: Text of a schedule, as in `Tuned.schedule`: actions separated by blanks or commas; empty
            for the original program.
        arguments: Arguments of an object.
        inputs: As for `tune`, and so are the sizes.
        sizes: Sizes of open dimensions.
        environment: Name of the environment that is to take an object.
        seed: Seed of the inputs that results are checked on.
        measuring: Objective, back end, target and farm.
        note: Called with a line of text when something new begins.
        keywords: Keyword inputs of a torch module, or `example_inputs`.

    Returns:
        The program after the schedule.

    Raises:
        ScheduleError: The schedule does not parse, or an action does not apply.
        IrgymError: As for `tune`.
    """
    check_options(seed=seed, environment=environment)
    checked(measuring, Measuring).check_unlimited("a replay")
    if not isinstance(schedule, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ScheduleError(f"a schedule is a text, not {schedule!r}: give the text of `Tuned.schedule`")
    program, arguments = as_called(named_with(program, inputs, sizes), arguments, keywords)
    home, uri = locate(program, arguments, environment)
    tell = note or say_nothing
    tell(f"{uri}: reading the program")
    with measuring.bench(home) as bench:
        bench.prepare()
        from irgym.core.schedule import Schedule, candidate_of
        from irgym.judging.judge import Judge
        from irgym.judging.result import tuned
        from irgym.judging.validator import Validator

        task = measuring.task(home, uri)
        candidate = candidate_of(task, Schedule.parse(schedule, task.space))
        tell(f"{task.uri}: checking and evaluating the schedule")
        judge = Judge(home, bench, task, Validator(bench, home.validation_inputs, seed))
        return tuned(judge, judge.confirm(candidate), None, original_of(home, program, arguments))


def history(
    program: object,
    *arguments: Any,
    inputs: Inputs | None = None,
    sizes: Sizes | None = None,
    environment: str | None = None,
    measuring: Measuring = Measuring(),
    **keywords: Any,
) -> "list[Known]":
    """Return the results of `tune` for a program on this machine, the oldest first.

    Args:
        program: As for `tune`, and so are the other arguments.
        arguments: Arguments of an object.
        inputs: As for `tune`, and so are the sizes.
        sizes: Sizes of open dimensions.
        environment: Name of the environment that is to take an object.
        measuring: Objective, back end, target and farm.
        keywords: Keyword inputs of a torch module, or `example_inputs`.

    Raises:
        IrgymError: As for `tune`; or the record cannot be read.
    """
    check_options(environment=environment)
    checked(measuring, Measuring).check_unlimited("the history")
    from irgym.judging.history import History

    program, arguments = as_called(named_with(program, inputs, sizes), arguments, keywords)
    home, uri = locate(program, arguments, environment)
    task = measuring.task(home, uri)
    with measuring.bench(home) as bench:
        return History().of(task, bench.conditions)
