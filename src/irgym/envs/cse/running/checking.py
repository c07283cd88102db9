"""Whether a function with some candidates shared computes what it computed before, bit for bit."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from irgym.core.cost import Validation
from irgym.envs.cse.ir.modules import visible
from irgym.envs.cse.ir.syntax import bare
from irgym.envs.cse.running.arguments import Arguments, signature_of
from irgym.envs.cse.running.execution import CALL_S, CALLS, Outcome, Subject, outcomes
from irgym.envs.cse.scoring.scorer import function_at, module_at, verified

TOLERANCE = "bit for bit"

LONGER = 5
"""How many times as long as the function as written the other may take."""


def compared(path: str, name: str, shared: tuple[int, ...], inputs: int, seed: int) -> Validation:
    """Have LLVM's verifier look at a choice, and run it on made-up arguments beside the function as written.

    The function as written runs before and after, the second time with memory at other addresses and new
    memory full of something else: calls whose outcomes depend on that do not count, and nor do those that
    crash or do not end.

    Args:
        path: The module, prepared for this machine.
        name: Name of the function, sigil included.
        shared: The places of the candidates that are shared.
        inputs: Random inputs.
        seed: Seed of these.
    """
    said = verified(path, name, shared)
    if said:
        return Validation(False, 0.0, "LLVM's verifier", 0, said)
    module, function = module_at(path), function_at(path, name)
    header = function.function.header
    signature = signature_of(header, name)
    if signature is None:
        return _blind("its arguments cannot be made up: LLVM's verifier alone has looked at it")
    subject = Subject(bare(name), signature, Arguments(signature), seed)

    def run(
        chosen: Sequence[int], calls: Iterable[int], seconds: float = CALL_S, elsewhere: bool = False
    ) -> Mapping[int, Outcome] | str:
        lines = function.sharing.lines(chosen)
        parts = [*module.around(name, header, lines, whole=True), visible(header, name), *lines, "}", ""]
        return outcomes("\n".join(parts), subject, calls, seconds, elsewhere)

    before = run((), range(inputs * CALLS))
    if isinstance(before, str):
        return _blind(f"on made-up arguments it does not run as written: {before}")
    ended = [call for call, one in before.items() if isinstance(one, bytes)]
    if not ended:
        [(why, _)] = Counter(str(one) for one in before.values()).most_common(1)
        return _blind(f"on made-up arguments it does not run as written: {why}")
    after = run(shared, ended, LONGER * CALL_S)
    if isinstance(after, str):
        return Validation(False, 0.0, TOLERANCE, inputs, after)
    again = run((), ended, LONGER * CALL_S, elsewhere=True)
    if isinstance(again, str):
        return _blind(f"on made-up arguments it does not run twice as written: {again}")
    return _judged(before, after, again, inputs)


def _judged(
    before: Mapping[int, Outcome], after: Mapping[int, Outcome], again: Mapping[int, Outcome], inputs: int
) -> Validation:
    sure = [call for call, one in again.items() if one == before[call]]
    wrong = [call for call in sure if after.get(call) != before[call]]
    if wrong:
        detail = f"{len(wrong)} of {len(sure)} calls differ"
        failures = [one for one in map(after.get, wrong) if isinstance(one, str)]
        return Validation(False, 0.0, TOLERANCE, inputs, "; ".join([detail, *failures[:1]]))
    if len(sure) < 2:
        return _blind("what it leaves of made-up arguments depends on addresses")
    if len({before[call] for call in sure}) < 2:
        return _blind("it makes the same of all made-up arguments")
    return Validation(True, 0.0, TOLERANCE, inputs)


def _blind(why: str) -> Validation:
    return Validation(True, 0.0, TOLERANCE, 0, blind=why)
