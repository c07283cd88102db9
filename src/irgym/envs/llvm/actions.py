"""The actions: LLVM's passes under LLVM's names, groups of them, whole pipelines, and `stop`.

The list is one for every LLVM, so that policies carry over; what the library that is loaded does not know is
masked.
"""

from dataclasses import dataclass

from irgym.core.actions import ActionSpace
from irgym.core.kinds import ActionKind


@dataclass(frozen=True)
class PassAction:
    """An action that runs one or more passes.

    Attributes:
        name: Name of the action.
        passes: The passes, as LLVM's `opt` takes them; empty if there are none any more.
        older: The same for releases before 20, if they were others.
    """

    name: str
    passes: str
    older: str = ""


def _within(form: str, names: str) -> tuple[PassAction, ...]:
    """Return actions of single passes.

    Args:
        form: What they run on, as `opt` has it, with `{}` in place of a pass: `function({})`. In a list of
            passes, LLVM takes what is left out from the first of them.
        names: The passes.
    """
    return tuple(PassAction(name, form.format(name)) for name in names.split())


COMBINE = "instcombine<no-verify-fixpoint>"
"""Without the option, the pass ends the process where it has not reached a fixed point."""

CANONICAL = (
    "simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-lookup;no-keep-loops;hoist-common-insts;"
    "sink-common-insts>"
)
"""The control flow as LLVM's pipelines leave it at their end: lookup tables, common instructions merged."""

SCALARS = f"sroa<modify-cfg>,early-cse<memssa>,{COMBINE},simplifycfg"

PIPELINES = (
    PassAction("default-o1", "default<O1>"),
    PassAction("default-o2", "default<O2>"),
    PassAction("default-o3", "default<O3>"),
    PassAction("default-oz", "", older="default<Oz>"),
)
"""LLVM's own pipelines. Releases since 20 have none for size: there, O2 looks at the attributes `optsize` and
`minsize` of each function, and `default<Oz>` ends the process."""

GROUPS = (
    PassAction("clean", f"function({COMBINE},simplifycfg)"),
    PassAction("clean-scalars", f"function({SCALARS})"),
    PassAction("clean-all", f"function({SCALARS},gvn,dse,adce,{CANONICAL}),globaldce"),
    PassAction("clean-loops", "function(loop-simplify,lcssa,loop(indvars,loop-deletion),simplifycfg)"),
    PassAction("inline-clean", f"cgscc(inline,function-attrs,function({SCALARS}))"),
)
"""Passes that mostly pay together."""

SINGLE = (
    *_within(
        "{}",
        "always-inline called-value-propagation constmerge deadargelim "
        "elim-avail-extern global-merge-func globaldce globalopt globalsplit hotcoldsplit inferattrs "
        "ipsccp iroutliner mergefunc openmp-opt partial-inliner rel-lookup-table-converter "
        "rpo-function-attrs strip-dead-prototypes",
    ),
    *_within(
        "cgscc({})",
        "argpromotion function-attrs inline",
    ),
    *_within(
        "function({})",
        "adce aggressive-instcombine alignment-from-assumptions bdce callsite-splitting consthoist "
        "constraint-elimination correlated-propagation dce dfa-jump-threading div-rem-pairs "
        "drop-unnecessary-assumes dse early-cse expand-memcmp fix-irreducible flatten-cfg float2int gvn "
        "gvn-hoist infer-alignment instsimplify irce jump-threading jump-table-to-switch lcssa "
        "libcalls-shrinkwrap load-store-vectorizer loop-data-prefetch loop-distribute loop-fusion "
        "loop-load-elim loop-simplify loop-sink loop-unroll loop-vectorize loop-versioning "
        "lower-constant-intrinsics lower-expect lower-switch mem2reg memcpyopt mergeicmps mldst-motion "
        "nary-reassociate partially-inline-libcalls reassociate reg2mem sccp scalarizer "
        "separate-const-offset-from-gep simplifycfg sink slp-vectorizer slsr speculative-execution sroa "
        "tailcallelim typepromotion vector-combine",
    ),
    *_within(
        "function(loop({}))",
        "canon-freeze indvars loop-deletion loop-flatten loop-idiom loop-instsimplify loop-interchange "
        "loop-predication loop-reduce loop-rotate loop-simplifycfg loop-term-fold loop-unroll-full "
        "loop-unroll-and-jam loop-versioning-licm simple-loop-unswitch",
    ),
    *_within(
        "function(loop-mssa({}))",
        "licm lnicm",
    ),
    PassAction("early-cse-memssa", "function(early-cse<memssa>)"),
    PassAction("instcombine", f"function({COMBINE})"),
    PassAction("ipsccp-no-specialization", "ipsccp<no-func-spec>"),
    PassAction("loop-rotate-no-duplication", "function(loop(loop-rotate<no-header-duplication>))"),
    PassAction("loop-unswitch-nontrivial", "function(loop(simple-loop-unswitch<nontrivial>))"),
    PassAction("simplifycfg-late", f"function({CANONICAL})"),
)
"""Single passes.

Left out are passes that instrument code (sanitizers, profiles), that prepare the generation of code, that
change what a module means to others (`internalize`, `strip`), that drop the order of atomics or exceptions
(`lower-atomic`, `lower-invoke`), and those for other targets. So are the attributors: that of LLVM 23.1.4
takes the variable of a loop for its first value (`compare_numbers` of the kernel signals.c never ends). So
are `newgvn`, which drops a store in a loop (`multiply_numbers`, after `gvn` and `dse`), and `gvn-sink`, which
now and then makes different modules of equal ones.
"""

PASSES = (*PIPELINES, *GROUPS, *SINGLE)
"""All actions but `stop`."""

STOP = len(PASSES)
"""Kind of the action that ends a schedule."""

SPACE = ActionSpace((*(ActionKind(action.name) for action in PASSES), ActionKind("stop", ends="episode")))
"""The action space: no kind has parameters."""

KIND = {action.name: kind for kind, action in enumerate(PASSES)}
"""Kind of each action's name."""

HORIZON = 45
"""Steps of an episode: CompilerGym's."""

OLDER = 20
"""The release before which `PassAction.older` holds."""


def passes_of(kind: int, release: int) -> str:
    """Return the passes of an action, as LLVM's `opt` takes them; empty if this LLVM has none.

    Args:
        kind: The action.
        release: Major version of LLVM.
    """
    action = PASSES[kind]
    return action.older if action.older and release < OLDER else action.passes
