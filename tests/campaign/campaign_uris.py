"""URIs that are wrong in one part each: scheme, family, sizes, options, files; and names of data sets."""

from collections.abc import Iterator

from campaign_options import LONG, Row

NUMBERS = (
    *(
        "",
        "0",
        "-1",
        "+1",
        "1.5",
        "1e3",
        "nan",
        "inf",
        "x",
        "0x10",
        "1_0",
        "\uff11\uff16",
        "\u00b2",
        " 1",
        "1 ",
        "1\n",
        "%31",
    ),
    *("99999999999", "9" * 5000, "1\0", "[4]", "[/b]", "4;ls", "-"),
)
"""Texts that are no size, and no value of an option either."""

OPTIONS = (
    "{0}",
    "=1",
    "&{0}=1",
    "{0}=1&",
    "{0}=1&&",
    "{0}=1&{0}=1",
    "{0}=1&{0}=2",
    "{0}=1?{0}=1",
    "{0}=1#x",
    "{0}=1;x",
)
"""Options that are malformed or given twice, whatever their values."""

NAMES = (
    "",
    " ",
    "nonsense",
    "[red]x[/red]",
    "[/b]",
    "\u00e9",
    "a\nb",
    "a\0b",
    "%6dm",
    "..",
    "a/../b",
    "${HOME}",
    LONG,
)
"""Texts that name no family and no option."""

SCHEMES = (
    "",
    "{0}",
    "{0}:",
    "{0}:/",
    "{0}://",
    "{0}:{1}",
    "{0}//{1}",
    "{0}:///{1}",
    " {0}://{1}",
    "{0}x://{1}",
    "http://{1}",
)
"""Beginnings of URIs: {0} stands for the scheme, {1} for what comes after it."""


def broken(
    scheme: str, family: str, sizes: int, options: dict[str, tuple[str, ...]], right: str
) -> Iterator[str]:
    """Yield wrong URIs of a family.

    Args:
        scheme: The environment's.
        family: The family.
        sizes: Number of sizes after the family; 0 for none.
        options: Names, and values that are wrong for each beside `NUMBERS`.
        right: A right URI of the family, less the scheme and `://`.
    """
    path, _, query = right.partition("?")
    yield from (form.format(scheme, right) for form in SCHEMES)
    yield f"{scheme.upper()}://{right}"
    yield from (f"{scheme}://{name}{right.removeprefix(family)}" for name in NAMES)
    if sizes:
        words = path.rpartition("/")[2].split("x")
        for number in NUMBERS:
            yield f"{scheme}://{family}/{'x'.join([number, *words[1:]])}"
            yield f"{scheme}://{family}/{'x'.join([*words[:-1], number])}"
        yield from (
            f"{scheme}://{family}/{'x'.join(some)}"
            for some in ([*words, "4"], words[1:], [*words, ""], ["", *words])
        )
        yield from (
            f"{scheme}://{family}/{path.rpartition('/')[2]}{end}" for end in ("/", "/4", "x", "!", "[/b]")
        )
    for name in NAMES:
        if name:
            yield f"{scheme}://{path}?{'&'.join(filter(None, (query, name + '=1')))}"
    for name, values in options.items():
        yield from (f"{scheme}://{path}?{form.format(name)}" for form in OPTIONS)
        yield from (f"{scheme}://{path}?{name}={value}" for value in (*NUMBERS, *values))
        yield f"{scheme}://{path}?{name.upper()}=1"


def loops() -> Iterator[str]:
    """Yield wrong URIs of loops."""
    yield from broken("loops", "conv", 7, {"stride": ("true",)}, "conv/1x4x4x3x2x3x3")
    form = "loops://einsum/{}?m=4&k=4&n=4"
    specs = (
        "",
        "mk->m",
        "mk,kn->mn->m",
        "mk,kn,nm->m",
        "mk,kn->mz",
        "mk,kn->mm",
        "MK,kn->mn",
        "mk,kn->m+n",
    )
    more = (
        "m\0k,kn->mn",
        "[h+r,kn->mn",
        "[]k,kn->mn",
        "[0*m]k,kn->mn",
        "[m+m]k,kn->mn",
        "mk,kn-%3Emn",
    )
    yield from (
        form.format(spec)
        for spec in (*specs, *more, "[m-k],kn->mn", "[00*m]k,kn->mn", "[99999999*m]k,kn->mn", LONG)
    )
    for query in (
        "",
        "?m=4",
        "?m=4&k=4&n=4&z=4",
        "?m=4&k=4&n=4&m=8",
        "?m=4&k=4&n",
        "?m=0&k=4&n=4",
        "?m=4&k=4&n=\uff14",
    ):
        yield f"loops://einsum/mk,kn->mn{query}"
    yield from ("loops://mm/99999x99999x9", "loops://bmm/9999x9999x9999x9999", "loops://bmm/1x1x1")


def hlo() -> Iterator[str]:
    """Yield wrong URIs of hlo."""
    options = {
        "layers": ("1&layers=1",),
        "mode": ("TRAIN", "both"),
        "optimizer": ("adam ", "ADAM"),
        "shape": ("big",),
    }
    yield from broken("hlo", "gpt2", 0, options, "gpt2")
    yield from (
        "hlo://gpt2/4x4",
        "hlo://gpt2?layers=65",
        "hlo://gpt2?width=65&heads=4",
        "hlo://gpt2?mode=forward&clip=false",
    )
    yield from ("hlo://moe?top=8&experts=2", "hlo://gpt2?layers=1&mode=forward&layers=2")
    # What files hold is read with the engine, which takes a minute to build.
    yield from files("hlo", ".hlo", ("fifo", "folder", "loop"))


def linalg() -> Iterator[str]:
    """Yield wrong URIs of linalg and of linalg-swaps."""
    yield from broken("linalg", "conv2d", 7, {"stride": ("65",)}, "conv2d/1x2x6x6x4x3x3")
    yield from broken("linalg", "resnet18", 0, {"size": ("33", "2048"), "batch": ()}, "resnet18")
    yield from (
        "linalg://add/1x1x1x1x1x1x1",
        "linalg://conv2d/1x1x2x2x1x3x3",
        "linalg://transformer?width=65&heads=4",
    )
    yield from (
        "linalg://sequence/1?length=7",
        "linalg://sequence/1?length=1",
        "linalg://matmul/999999999x999999999x9",
    )
    yield from files("linalg", ".mlir", ("fifo", "folder", "loop", "garbage", "latin", "empty"))
    yield from (
        "linalg-swaps:",
        "linalg-swaps://",
        "linalg-swaps://nonsense/4x4",
        "linalg-swaps://conv2d/1x2x6x6x4x3x3?stride=1&stride=2",
    )


def files(scheme: str, suffix: str, kept: tuple[str, ...]) -> Iterator[str]:
    """Yield URIs of files that are none, or hold no program."""
    names = (
        f"missing{suffix}",
        "missing.txt.doc",
        "missing",
        "",
        ".",
        "/",
        "..",
        suffix,
        f"n{LONG}{suffix}",
        f"a\0b{suffix}",
    )
    yield from (f"{scheme}:{name}" for name in names)
    yield from (f"{scheme}:{{inputs}}/{name}{suffix}" for name in kept)
    yield from (
        f"{scheme}:{name}{suffix}" for name in ("[/b]", "\u00e9\u202e", "name-\udcff", "missing/[red]x[/red]")
    )


DATASETS = (
    *(
        "",
        " ",
        "nonsense",
        "mm_random:",
        "mm_random:count",
        "mm_random:count=",
        "mm_random:count=1,count=2",
        "MM_random",
    ),
    *(
        "mm_random:count=0",
        "mm_random:count=-1",
        "mm_random:count=999999999",
        "mm_random:low=9,high=8",
        "mm_random:low=0",
    ),
    *(
        "mm_random:speed=1",
        "mm_random:count=1,,seed=1",
        "mm_random:count=\uff11",
        "mm_random:low=99999999,high=999999999",
    ),
    *(
        "_random:count=1",
        "gemm_random:count=1",
        "mm_random:count=1.5",
        "mm_random:count=1\n",
        "[/b]",
        LONG,
        "mm_random:seed=-5",
    ),
)
"""Names of no data set of loops."""


def rows() -> Iterator[Row]:
    """Yield a row for each wrong URI, and for each wrong name of a data set."""
    for scheme, make in (("loops", loops), ("hlo", hlo), ("linalg", linalg)):
        for uri in dict.fromkeys(make()):
            yield Row(
                ("tune", uri, "--search", "random", "--evaluations", "1"),
                (scheme, "program", "family", "is no text", "no public function"),
                repr(uri),
            )
    for name in filter(None, DATASETS):
        yield Row(
            ("programs", "loops", "--dataset", name),
            ("data set", "too large", "_random", "to generate", "holds no programs"),
            f"dataset {name!r}",
        )
