"""Rows that no generator knows of: right command lines, and mistakes that go beyond one option."""

from campaign_options import BASES, LONG, PROGRAM, Row

SEARCH = ("--search", "random", "--evaluations", "4")
TRAIN = ("train", "passes", "--run", "new", "--iterations", "1", "--set", "episodes=2", "hidden=8")


def right(*arguments: str, output: tuple[str, ...]) -> Row:
    """Return a row of a command line that does its work, and what it prints."""
    return Row(arguments, None, f"right: {' '.join(arguments)}", output)


def wrong(*arguments: str, words: tuple[str, ...]) -> Row:
    """Return a row of a command line that is refused."""
    return Row(arguments, words, f"wrong: {' '.join(arguments)}")


RIGHT = (
    right("envs", output=("loops", "hlo", "linalg", "passes")),
    right("check", "keeping", "--walks", "1", output=("keeping keeps", "of keeping://")),
    right("programs", "passes", output=(PROGRAM, "4 train, 4 test")),
    right("programs", "loops", "--dataset", "mm_random:count=3,seed=2", output=("loops://mm/",)),
    right("programs", "loops", "--split", "test", output=("0 train, 216 test",)),
    right("programs", "passes", "--holdout", "0.5", output=("1 train, 3 test",)),
    *(
        right(
            "replay",
            f"loops://einsum/{spec}?m=4&k=4&n=4",
            "",
            output=(f"loops://einsum/{whole}?k=4&m=4&n=4",),
        )
        for spec, whole in (
            ("mk,kn", "mk,kn->mn"),
            ("m k, kn\n-> mn", "mk,kn->mn"),
            ("mk,kn->", "mk,kn->"),
        )
    ),
    right("tune", PROGRAM, *SEARCH, output=(PROGRAM, "random search: 4 candidates", "yes: 1 input")),
    right(
        "tune",
        PROGRAM,
        "--search",
        "greedy",
        "--seconds",
        "0.05",
        output=("greedy search", "original: 167"),
    ),
    right("tune", PROGRAM, *SEARCH, "--seed", str(2**63 - 1), output=("random search",)),
    right("tune", PROGRAM, *SEARCH, "--json", "a.json", "--export", "a.txt", output=("written: a.txt",)),
    right("tune", PROGRAM, *SEARCH, "--target", "x86-64-v3", output=("random search: 4 candidates",)),
    right("replay", PROGRAM, "fold0", "--target", "aarch64", output=("schedule: fold0",)),
    right("compare", "passes", "--methods", "base", "--limit", "1", "--target", "x86-64", output=("base",)),
    right("evaluate", "{inputs}/run", "--limit", "1", "--target", "x86-64-v4", output=("geometric mean",)),
    right(*TRAIN, "--target", "x86-64-v3", output=("policy: new/policy.pt",)),
    right("replay", PROGRAM, "fold0 fold2", output=("167", "1.22x", "fold0 fold2")),
    right("replay", PROGRAM, " fold0\tfold2 ", output=("schedule: fold0 fold2",)),
    right("replay", PROGRAM, "", output=("schedule: (none)", "1.00x")),
    right("compare", "passes", "--methods", "base,core", output=("geometric means", "core")),
    right(
        "compare",
        "passes",
        "--methods",
        "base,base",
        "--limit",
        "1",
        output=("base", "checked on 1 random input"),
    ),
    right("compare", "passes", "--methods", "base", "--limit", "1000000", output=("passes://late",)),
    right(
        "compare",
        "passes",
        "--methods",
        "base",
        "--programs",
        PROGRAM,
        "--unvalidated",
        output=("not validated",),
    ),
    right("evaluate", "{inputs}/run", "--limit", "1", output=("geometric mean over 1 programs",)),
    right(
        "evaluate",
        "{inputs}/run",
        "--environment",
        "passes",
        "--programs",
        PROGRAM,
        output=("geometric mean over 1 programs",),
    ),
    right("programs", "passes", "--dataset", f"{PROGRAM}+passes://late/0-0-0-0-0-0-30-30", output=(PROGRAM,)),
    right("train", "passes", "--run", "new", "--config", "{inputs}/run", output=("policy: new/policy.pt",)),
    right("report", "{inputs}/run", "--out", "a.html", output=("written: a.html",)),
    right("--version", output=("irgym ",)),
    right("cache", "stats", output=("rows",)),
    right("cache", "clear", output=("cleared: ",)),
    right(*TRAIN[:-1], "hidden=", output=("policy: new/policy.pt",)),  # a network without hidden layers
    right(*TRAIN, output=("iteration    1", "policy: new/policy.pt")),
    right(
        "tune",
        PROGRAM,
        *SEARCH,
        "--json",
        "name-\udcff",
        "--export",
        "name-\udcff.txt",
        output=("written: name-\udcff.txt",),
    ),
    *(right(command, "--help", output=(f"irgym {command}",)) for command in BASES),
)
"""Command lines that do their work."""

COMMANDS = (
    wrong("replay", "loops://mm/4x4x4", "", "--target", "x86-64-v9", words=("no target 'x86-64-v9'",)),
    wrong(
        *("replay", "loops://mm/4x4x4", "", "--backend", "avx512", "--target", "x86-64"),
        words=("not for the target x86-64", "does not run here"),
    ),
    wrong("tune", "hlo://gpt2?layers=1", "--target", "X86-64-V3", words=("no target 'X86-64-V3'",)),
    wrong(words=("Missing", "Required", "required")),
    wrong("fly", words=("fly",)),
    wrong("", words=("Unrecognized",)),
    wrong("TUNE", words=("TUNE",)),
    wrong("tune", words=("Missing from irgym tune",)),
    wrong("tune", PROGRAM, PROGRAM, words=(PROGRAM,)),
    wrong("tune", PROGRAM, "--seed", words=("seed",)),
    wrong("tune", PROGRAM, "--speed", "1", words=("speed",)),
    wrong("tune", PROGRAM, "-seed", "1", words=("-seed",)),
    wrong("tune", PROGRAM, *SEARCH, "--seed=1", "--seed", "2", words=("--seed is given twice",)),
    wrong("train", *TRAIN[1:], "--set", "lr=1", words=("--set is given twice",)),
    wrong("check", "passes", words=("passes breaks the rule 'splits'",)),
    wrong("compare", "passes", "--time", "--no-time", words=("--no-time is given twice",)),
    wrong("compare", "passes", "--run-folder", "a", "--run_folder", "b", words=("is given twice",)),
    wrong("train", "passes", "--run", "", words=("--run is given ''",)),
    wrong("train", "passes", "--run=", words=("--run is given ''",)),
    wrong("train", "passes", words=("--run",)),
)
"""Command lines that are no command, or lack something."""

SCHEDULES = tuple(
    wrong("replay", PROGRAM, schedule, words=("action", schedule[:20]))
    for schedule in (
        "fold9",
        "idle0 idle0",
        "stop fold0",
        "FOLD0",
        "fold0_1",
        "[/b]",
        "\u00e9",
        "fold0 \0",
        LONG,
    )
)

POLICIES = tuple(
    wrong("tune", PROGRAM, "--evaluations", "4", "--policy", policy, words=("policy", "trained", policy))
    for policy in (
        *(
            "default",
            "nonsense",
            " ",
            "[/b]",
            LONG,
            "n" * 300,
            "a\0b",
            "/",
            "/dev/null",
            "missing/policy.pt",
            "name-\udcff",
        ),
        *(
            "{inputs}/folder",
            "{inputs}/fifo",
            "{inputs}/loop",
            "{inputs}/garbage",
            "{inputs}/latin",
            "{inputs}/empty",
        ),
    )
)

METHODS = tuple(
    wrong(
        "compare",
        "passes",
        "--limit",
        "1",
        "--evaluations",
        "4",
        "--methods",
        method,
        words=(method.replace(",", ":").rpartition(":")[2][:30] or method, "compare"),
    )
    for method in (
        *(
            "magic",
            "base:",
            "base:x",
            "random:",
            "random:x",
            "policy",
            "policy:",
            "raw:",
            "raw:nowhere",
            ":x",
            "guided",
            "guided:nonsense",
            "numpy",
        ),
        *(
            "policy:{inputs}/garbage",
            "policy:{inputs}/fifo",
            "policy:/dev/null",
            "base,magic",
            "[/b]",
            "policy:[/b]",
            ",,",
        ),
    )
)

FARMS = tuple(
    wrong("tune", PROGRAM, *SEARCH, "--farm", farm, words=("farm", "workers", "processes", farm[:20]))
    for farm in (
        *(
            "local:0",
            "local:-1",
            "local:x",
            "local:1.5",
            "local:",
            "local:99999999999",
            "LOCAL",
            "dask:",
            "dask://",
        ),
        *(
            "dask://127.0.0.1",
            "dask://127.0.0.1:0",
            "dask://127.0.0.1:x",
            "dask://127.0.0.1:99999",
            "dask://127.0.0.1:1/x",
        ),
        *(
            "dask://:1",
            "slurm?workers=0",
            "slurm?workers=x",
            "slurm?nonsense=1",
            "slurm?workers=1&workers=2",
            "slurm:1",
            "[/b]",
        ),
    )
)

COMBINATIONS = (
    wrong("tune", PROGRAM, *SEARCH, "--policy", "default", words=("takes no policy",)),
    wrong("tune", PROGRAM, *SEARCH, "--export", "a.TAR", words=("end the name in",)),
    wrong("tune", PROGRAM, *SEARCH, "--export", "missing/a.txt", words=("missing",)),
    wrong("tune", "loops://mm/4x4x4", "--backend", "gpu", words=("no back end 'gpu'",)),
    wrong("tune", "linalg://matmul/4x4x4", "--backend", "openmp:0", words=("no back end 'openmp:0'",)),
    wrong("tune", "linalg://matmul/4x4x4", "--backend", "openmp:\uff12", words=("no back end",)),
    wrong("tune", "hlo://gpt2", "--backend", "cuda", words=("no back end 'cuda'",)),
    wrong("tune", "hlo://gpt2", "--objective", "joy", words=("no objective 'joy'",)),
    wrong("replay", "loops://mm/4x4x4", "split_9", words=("no action 'split_9'",)),
    wrong("replay", "loops://mm/4x4x4", "down up merge", words=("action 3",)),
    wrong("compare", "passes", "--validation-inputs", "2", "--unvalidated", words=("exclude each other",)),
    wrong("evaluate", "default", "--limit", "1", words=("no run folder default", "the environment")),
    wrong("evaluate", "default", "--environment", "passes", words=("default",)),
    wrong("programs", "passes", "--dataset", f"{PROGRAM}+", words=("joins nothing",)),
    wrong("train", "passes", "--run", "new", "--config", "{inputs}/run", "--limit", "0", words=("limit",)),
    wrong("compare", "passes", "--resume", words=("--resume needs",)),
    wrong("compare", "passes", "--programs", "loops://mm/4x4x4", words=("no module",)),
    wrong("compare", "loops", "--programs", PROGRAM, words=("loops program",)),
    wrong("compare", "passes", "--also", "joy", words=("no objective 'joy'",)),
    wrong("compare", "passes", "--methods", "base", "--programs", words=("--programs is given nothing",)),
    wrong("compare", "passes", "--programs", "--methods", "base", words=("--programs is given nothing",)),
    wrong("train", "passes", "--run", "name-\udcff", words=("no UTF-8",)),
    wrong("compare", "hlo", "--dataset", "full", "--split", "train", words=("no training programs",)),
    wrong("train", "hlo", "--run", "new", "--dataset", "full", words=("no training programs",)),
    wrong(*TRAIN[:4], "--validate", "1", words=("validation needs both",)),
    wrong(*TRAIN[:4], "--reward", "joy", words=("no reward 'joy'",)),
    wrong(*TRAIN[:4], "--agent", "joy", words=("no agent 'joy'",)),
    wrong(*TRAIN[:4], "--resume", words=("not a training run", "no run in new")),
    wrong("train", "passes", "--run", "{inputs}/run", "--iterations", "1", words=("already holds a run",)),
    wrong("imitate", "passes", "--out", "a.pt", "--searched", "0", words=("at least 1",)),
    wrong("imitate", "passes", "--out", "a.pt", "--search", "guided", words=("policy",)),
)
"""Options that are right one by one."""

SETTINGS = tuple(
    wrong(
        "train",
        "passes",
        "--run",
        "new",
        "--iterations",
        "1",
        "--set",
        *words,
        words=(words[-1].partition("=")[0], "no policy at /missing"),
    )
    for words in (
        *(
            ("lr",),
            ("lr=",),
            ("=1",),
            ("lr=fast",),
            ("speed=1",),
            ("seed=-5",),
            ("seed=x",),
            ("threads=0",),
            ("threads=-1",),
        ),
        *(
            ("gamma=nan",),
            ("lr=nan",),
            ("lr=inf",),
            ("lr=-1",),
            ("episodes=0",),
            ("episodes=-1",),
            ("hidden=0",),
            ("hidden=,",),
        ),
        *(
            ("encoder=none",),
            ("activation=none",),
            ("lr=1", "lr=2"),
            ("lr==1",),
            ("start=/missing",),
            ("[/b]=1",),
            ("lr=[/b]",),
        ),
    )
)

DAMAGED = tuple(
    wrong(
        command,
        f"{{inputs}}/{folder}",
        words=(
            "damaged",
            "not a training run",
            "cannot be read",
            "nothing to report",
            "no folder",
            "no regular file",
        ),
    )
    for command in ("evaluate", "report")
    for folder in ("run-fifo", "run-folder", "run-garbage", "run-latin", "run-empty", "run-loop")
)
"""Run folders whose files are of a wrong kind."""

ROWS = (*RIGHT, *COMMANDS, *SCHEDULES, *POLICIES, *METHODS, *FARMS, *COMBINATIONS, *SETTINGS, *DAMAGED)
"""All of them."""
