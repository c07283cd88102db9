"""The task: scheduling the loops of one contraction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError, ScheduleError
from irgym.core.actions import Action, Mask
from irgym.core.baseline import ROUNDS
from irgym.core.cost import Call, Job
from irgym.core.observation import ObservationView
from irgym.core.schedule import Schedule, replay
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.envs.loops import actions
from irgym.envs.loops.compiling.backends import Backend, threads_of
from irgym.envs.loops.compiling.export import FORMS, export
from irgym.envs.loops.modelling.analytical import ranked
from irgym.envs.loops.modelling.parts import LARGE
from irgym.envs.loops.nest import initial_nest, parse_nest
from irgym.envs.loops.observing.features import features
from irgym.envs.loops.programs.contraction import Contraction
from irgym.envs.loops.sketches import route, sketch
from irgym.envs.loops.state import HISTORY, LoopsState
from irgym.measure.baselines import held_to
from irgym.measure.code_digest import digest_of
from irgym.measure.timing import Timing

ANALYTICAL = "analytical"
"""Name of the pipeline that a model chooses without measurements."""

ESTIMATED = "time, by a part"
"""Objective of estimates."""

MODEL = "envs/loops/modelling"
"""Code on which estimates depend, beside that of back ends."""

PARALLEL_TIMING = Timing(budget_ns=30_000_000, sample_ns=3_000_000, slow_ns=30_000_000, clock="process")
"""Timing of kernels on several threads: samples long enough to make the start of threads negligible."""


class LoopsTask(Task[LoopsState]):
    """Scheduling one contraction, compiled by a back end and timed on one core for each of its threads."""

    space = actions.SPACE

    def __init__(
        self,
        contraction: Contraction,
        backend: Backend,
        target: Target,
        timing: Timing | None = None,
        horizon: int = 50,
    ) -> None:
        """Make the task.

        Args:
            contraction: The program.
            backend: The back end that compiles it.
            target: Target of the code.
            timing: Timing protocol of candidates.
            horizon: Steps of an episode. LoopTune's 10 are too few for cache blocks and packing; 40 would
                truncate one in ten sketches of a convolution.
        """
        self.contraction = contraction
        self.backend = backend
        self._target = target
        self.threads = threads_of(backend.name)
        self.forms = FORMS if self.threads == 1 else {}
        self.timing = timing or (Timing() if self.threads == 1 else PARALLEL_TIMING)
        self.uri = contraction.uri
        self.horizon = horizon
        self._toolchain = backend.toolchain()
        self._original = initial_nest(contraction)

    @property
    def target(self) -> Target:
        """Target of the generated code."""
        return self._target

    def initial(self) -> LoopsState:
        """Return the unscheduled nest with the cursor on its outermost loop."""
        return LoopsState(initial_nest(self.contraction))

    def mask(self, state: LoopsState) -> Mask:
        """Return the mask of the actions that apply to the loop under the cursor; none apply after `stop`."""
        if state.stopped:
            return self.space.mask([False] * len(self.space.kinds), [False] * self.space.param_count)
        return actions.mask_at(self._position(state))

    def step(self, state: LoopsState, action: Action) -> LoopsState:
        """Return the state after `action`.

        Raises:
            ScheduleError: The schedule has stopped.
        """
        if state.stopped:
            raise ScheduleError("no action applies after stop")
        previous = (*state.previous, self.space.flat_index(action))[-HISTORY:]
        ended = self.space.kinds[action.kind].ends == "episode"
        nest, cursor = actions.apply(self._position(state), action)
        return LoopsState(nest, cursor, previous, stopped=ended)

    def _position(self, state: LoopsState) -> actions.Position:
        return actions.Position(self.contraction, state.nest, state.cursor, self.target)

    def terminal(self, state: LoopsState) -> bool:
        """Say whether `stop` was taken."""
        return state.stopped

    @property
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, the default first."""
        from irgym.envs.loops.observing.observations import VIEWS

        return VIEWS

    def cost_features(self, state: LoopsState) -> NDArray[np.float64]:
        """Return the features of the nest with the cursor on its outermost loop, shape [FEATURES]."""
        return features(self.contraction, state.nest, 0, (), self.target).astype(np.float64)

    def sketch(self, rng: np.random.Generator) -> Sequence[Action]:
        """Return a random schedule of a register tile, cache blocks and packed inputs."""
        return sketch(self.contraction, self.target, rng)

    def pipeline(self, name: str) -> Schedule:
        """Return the actions of the nest that the analytical model calls best.

        Raises:
            IrgymError: There is no such pipeline.
        """
        if name != ANALYTICAL:
            raise IrgymError(f"loops has no pipeline {name!r}: choose {ANALYTICAL}")
        nest = ranked(self.contraction, self.target)[0]
        return Schedule(tuple(route(self.contraction, nest, self.target))[: self.horizon])

    def recorded(self, schedule: str) -> LoopsState | None:
        """Return the nest of a text, cursor on the outermost loop; None if it is of another contraction."""
        try:
            nest = parse_nest(schedule)
        except ValueError:
            return None
        dims = {loop.dim for loop in initial_nest(self.contraction).loops}
        whole = {loop.dim for loop in nest.loops if loop.step == 1} == dims
        return LoopsState(nest) if whole and {loop.dim for loop in nest.loops} == dims else None

    def recorded_actions(self, schedule: str) -> Sequence[Action] | None:
        """Return the actions that lead to the nest of a text; None if there are none within the horizon."""
        state = self.recorded(schedule)
        if state is None:
            return None
        found = Schedule(tuple(route(self.contraction, state.nest, self.target)))
        if len(found) >= self.horizon or replay(self, found).nest != state.nest:
            return None
        return found.actions

    def key(self, state: LoopsState) -> str:
        """Return the nest as text; cursor and history do not affect its code."""
        return state.nest.text()

    def job(self, state: LoopsState) -> Job:
        """Return the request for the run time of the nest; cursor and history do not affect it."""
        arguments = (self.uri, state.nest, self.backend.name, self.target, self.timing)
        return Job(
            Call("irgym.envs.loops.runner:measure", arguments),
            program=self.uri,
            schedule=self.key(state),
            toolchain=f"{self._toolchain}; {self.timing.version}",
            original=state.nest == self._original,
            target=self.target_text,
        )

    def estimate(self, state: LoopsState) -> Job | None:
        """Return the request for about the run time of a large nest, from a part of it; None for others."""
        if self.threads > 1 or self.contraction.flops < LARGE:
            return None
        job = self.job(state)
        return replace(
            job,
            call=Call("irgym.envs.loops.runner:estimate", job.call.arguments),
            toolchain=f"{job.toolchain}; {digest_of(MODEL)}",
            objective=ESTIMATED,
            original=False,
        )

    def validation(self, state: LoopsState, inputs: int, seed: int) -> Call:
        """Return the call that compares the results of the nest with numpy in float64."""
        arguments = (self.uri, state.nest, self.backend.name, self.target, inputs, seed)
        return Call("irgym.envs.loops.runner:validate", arguments)

    def baseline_call(self, name: str, state: LoopsState, rounds: int = ROUNDS) -> Call:
        """Return the call that times a baseline and a nest in turn."""
        arguments = (self.uri, state.nest, self.backend.name, self.target, name, rounds, self.timing)
        held = held_to(self.target) if name in ("numpy", "torch") else ()
        return Call("irgym.envs.loops.runner:compare", arguments, held)

    def peak_call(self, state: LoopsState, rounds: int = ROUNDS) -> Call | None:
        """Return the call that times a nest and the core's peak in turn; None on several threads."""
        if self.threads > 1:
            return None
        arguments = (self.uri, state.nest, self.backend.name, self.target, rounds)
        return Call("irgym.envs.loops.runner:share_of_peak", arguments)

    def describe(self, state: LoopsState) -> str:
        """Return the nest as indented text, the cursor marked by an arrow."""
        lines: list[str] = []
        for place, loop in enumerate(state.nest.loops):
            trips = state.nest.trips(self.contraction, place)
            tail = state.nest.tail(self.contraction, place)
            notes = [f"{trips} x {loop.step}"]
            if tail:
                notes.append(f"the last {tail}")
            if loop.mark.value:
                notes.append(loop.mark.name.lower())
            lines.extend(f"   {'  ' * place}pack {name.upper()}" for name in loop.packs)
            arrow = "->" if place == state.cursor else "  "
            lines.append(f"{arrow} {'  ' * place}for {loop.dim} ({', '.join(notes)})")
        lines.append(f"   {'  ' * len(state.nest.loops)}{self.contraction.statement}")
        return "\n".join(lines)

    def export(self, state: LoopsState, path: Path) -> list[Path]:
        """Write C source (.c), an object (.o) or a shared library (.so) of the nest.

        Raises:
            IrgymError: The suffix is none of these, or the file cannot be written.
        """
        return export(self.contraction, state.nest, self.backend, path)

    def ideal_cost(self, peak_gflops: float) -> float:
        """Return the nanoseconds that the operations take at the peak of the cores used."""
        return self.contraction.flops / (peak_gflops * self.threads * self.contraction.elements.share())
