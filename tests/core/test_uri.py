"""The grammar of URIs: what is printed reads back, and mistakes are one sentence."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irgym.base.errors import ProgramError
from irgym.core.uri import Family, Files, Grammar, Option, Value, read_options

PLAIN = Family(
    "plain",
    "sizes and options",
    (
        Option("count", 3, high=64, low=2),
        Option("step", 32, high=1 << 10, low=32, multiple=32),
        Option("fast", False),
        Option("word", "one", choices=("one", "two")),
    ),
    sizes=("M", "N"),
)
PRESET = Family(
    "preset",
    "defaults by another option, options that must fit together",
    (
        Option("shape", "tiny", choices=("tiny", "full")),
        Option("mode", "train", choices=("train", "forward")),
        Option("width", 8, presets=(("full", 768),)),
        Option("heads", 2, presets=(("full", 12),)),
        Option("clip", True, only=("mode", "train")),
    ),
    multiples=(("width", "heads", 2),),
    at_most=(("heads", "width"),),
    presets="shape",
)
RANKS = Family("ranks", "one to three sizes", sizes=("A", "B"), ranks=(1, 3))
SEED = Family("seed", "a number that may be zero", sizes=("SEED",), least=0)
BODY = Family("body", "a text", (Option("a", 0), Option("b", 0)), body="ab->a")
FAMILIES = {family.name: family for family in (PLAIN, PRESET, RANKS, SEED, BODY)}
GRAMMAR = Grammar("toy", FAMILIES, Files((".c", ".ll"), fragments=True))


@st.composite
def members(draw: st.DrawFn) -> tuple[Family, tuple[int, ...], str, dict[str, Value]]:
    family = draw(st.sampled_from(list(FAMILIES.values())))
    least, greatest = family.ranks or (len(family.sizes),) * 2
    sizes = draw(st.lists(st.integers(family.least, 99), min_size=least, max_size=greatest))
    values: dict[str, Value] = {}
    for option in draw(st.lists(st.sampled_from(family.options), unique=True)) if family.options else ():
        if option.choices:
            values[option.name] = draw(st.sampled_from(option.choices))
        elif isinstance(option.default, bool):
            values[option.name] = draw(st.booleans())
        else:
            number = draw(st.integers(-(-option.low // option.multiple), option.high // option.multiple))
            values[option.name] = number * option.multiple
    body = draw(st.text("abc,->[]+*x/&= ", min_size=1)) if family.body else ""
    return family, tuple(sizes), body, values


@given(members(), st.randoms(use_true_random=False))
def test_printed_uris_parse_back(member, random):
    family, sizes, body, values = member
    uri = GRAMMAR.text(family.name, sizes, body, values)
    try:
        named = GRAMMAR.parse(uri)
    except ProgramError as error:
        assert any(words in str(error) for words in ("multiple of", "exceed", "mode=train only"))
        return
    assert named.uri == uri and GRAMMAR.parse(named.uri) == named
    assert (named.family, named.sizes, named.body, named.path) == (family.name, sizes, body, None)
    assert {name: named.options[name] for name in values} == values
    assert list(named.options) == [option.name for option in family.options]
    words = [
        f"{name}={str(value).lower()}" for name, value in named.values if value or isinstance(value, bool)
    ]
    random.shuffle(words)
    assert GRAMMAR.parse(f"{uri.partition('?')[0]}?{'&'.join(words)}") == named, "in any order, defaults too"


@given(st.text(max_size=30), st.sampled_from(["", "toy:", "toy://", "toy://plain/", "toy://plain/1x2?"]))
def test_any_text_is_a_program_or_refused_in_one_sentence(text: str, start: str):
    try:
        GRAMMAR.parse(start + text)
    except ProgramError as error:
        assert "\n" not in str(error)


def test_the_canonical_text_is_sorted_and_without_defaults():
    assert GRAMMAR.parse("toy://plain/016x8?").uri == "toy://plain/16x8"
    long = "toy://plain/4x8?word=two&fast=1&step=32&count=5"
    assert GRAMMAR.parse(long).uri == "toy://plain/4x8?count=5&fast=true&word=two"
    assert GRAMMAR.parse("toy://preset?width=768&shape=full&heads=6").uri == "toy://preset?heads=6&shape=full"


def test_presets_choose_the_other_defaults():
    assert GRAMMAR.parse("toy://preset").numbers["width"] == 8
    assert GRAMMAR.parse("toy://preset?shape=full").numbers["width"] == 768


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        (
            "plain",
            "'plain' is no toy program: write toy://plain/MxN?count=3&step=32&fast=false&..., toy://pre",
        ),
        ("other://plain/1x2", "is no toy program"),
        ("TOY://plain/1x2", "is no toy program"),
        ("toy://", "no program family '' in toy: choose among plain, preset, ranks, seed, body"),
        ("toy://plan/1x2", "no program family 'plan'"),
        ("toy://plain", "is malformed: write toy://plain/MxN"),
        ("toy://plain/1x2x3", "with 2 whole numbers"),
        ("toy://plain/1x-2", "with 2 whole numbers"),
        ("toy://plain/1x\u0662", "with 2 whole numbers"),
        ("toy://plain/1x1234567890", "size above 999999999: every size must be at most that"),
        ("toy://plain/1234567890", "with 2 whole numbers"),
        ("toy://plain/1x0", "size below 1: every size must be at least 1"),
        ("toy://ranks/1x2x3x4", "write toy://ranks/AxB..., with 1 to 3 whole numbers"),
        ("toy://preset/4", "with no whole numbers"),
        ("toy://preset/", "with no whole numbers"),
        ("toy://body", "is malformed: write toy://body/ab->a?a=0&b=0"),
        ("toy://body/x?a=0", "a must be a whole number in 1 to 999999999"),
        ("toy://plain/1x2?count", "'count' is no option; write name=value, joined by &"),
        ("toy://plain/1x2?count=3&", "'' is no option"),
        ("toy://plain/1x2?depth=1", "plain has no option 'depth'; its options: count, step, fast, word"),
        ("toy://ranks/1?depth=1", "its options: none"),
        ("toy://plain/1x2?count=3&count=3", "count is given twice"),
        ("toy://plain/1x2?count=1", "count must be a whole number in 2 to 64"),
        ("toy://plain/1x2?count=65", "count must be a whole number in 2 to 64"),
        ("toy://plain/1x2?count=true", "count must be a whole number"),
        ("toy://plain/1x2?step=33", "a whole number in 32 to 1024, a multiple of 32"),
        ("toy://plain/1x2?fast=yes", "fast must be true or false"),
        ("toy://plain/1x2?word=three", "word must be one or two"),
        ("toy://preset?width=6", "width (6) must be a multiple of 2 times heads (2)"),
        ("toy://preset?heads=16&mode=forward&width=8", "must be a multiple of"),
        ("toy://preset?mode=forward&clip=false", "clip has a meaning in mode=train only"),
        ("toy:", "names no file: write toy://"),
        ("toy:#main", "names no file"),
        ("toy:a.onnx", "toy reads no such file; name it one of *.c, *.ll"),
        ("toy:missing.c", "there is no such file"),
        ("toy:missing.c#", "names no part of the file"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(uri: str, words: str):
    with pytest.raises(ProgramError) as caught:
        GRAMMAR.parse(uri)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_options_that_exceed_others_are_refused():
    family = Family("f", "", (Option("top", 2), Option("count", 4)), at_most=(("top", "count"),))
    grammar = Grammar("toy", {"f": family})
    assert grammar.parse("toy://f?top=4").uri == "toy://f?top=4"
    with pytest.raises(ProgramError, match=r"top \(5\) may not exceed count \(4\)"):
        grammar.parse("toy://f?top=5")


def test_a_default_may_be_given_without_the_option_it_needs():
    assert GRAMMAR.parse("toy://preset?mode=forward&clip=true").uri == "toy://preset?mode=forward"


def test_files_keep_their_path_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.c").write_text("")
    (tmp_path / "B.LL").write_text("")
    (tmp_path / "folder.c").mkdir()
    monkeypatch.chdir(tmp_path)
    for text in ("a.c", "./a.c", "B.LL", f"{tmp_path}/a.c"):
        named = GRAMMAR.parse(f"toy:{text}")
        assert (named.uri, named.family, named.path, named.fragment) == (f"toy:{text}", "", Path(text), "")
    with pytest.raises(ProgramError, match="is a folder: name a file"):
        GRAMMAR.parse("toy:folder.c")


def test_a_fragment_names_a_part_of_a_file(tmp_path: Path):
    file = tmp_path / "a.c"
    file.write_text("")
    named = GRAMMAR.parse(f"toy:{file}#crc32")
    assert (named.path, named.fragment, named.uri) == (file, "crc32", f"toy:{file}#crc32")
    odd = tmp_path / "b#1.c"
    odd.write_text("")
    whole = replace(GRAMMAR, files=Files((".c",)))
    assert whole.parse(f"toy:{odd}").path == odd
    with pytest.raises(ProgramError, match=r"name it \*\.c"):
        whole.parse(f"toy:{file}#crc32")


BOUND = Grammar("toy", FAMILIES, Files((".c",), bindings=True))


@given(
    st.dictionaries(st.text(st.characters(exclude_characters="&=?#"), min_size=1), st.integers(1, 99)),
    st.randoms(use_true_random=False),
)
def test_names_of_a_file_are_bound_in_any_order(tmp_path_factory, bindings, random):
    file = tmp_path_factory.getbasetemp() / "bound.c"
    file.write_text("")
    words = [f"{name}={number}" for name, number in bindings.items()]
    random.shuffle(words)
    named = BOUND.parse(f"toy:{file}?{'&'.join(words)}")
    assert named.bindings == tuple(sorted(bindings.items())) and named.path == file
    assert BOUND.parse(named.uri) == named and named.uri.endswith("?") is False
    assert named.uri == BOUND.parse(f"toy:{file}?{'&'.join(sorted(words))}").uri


def test_bindings_stand_before_the_part_of_a_file(tmp_path: Path):
    file = tmp_path / "a.c"
    file.write_text("")
    grammar = replace(GRAMMAR, files=Files((".c",), fragments=True, bindings=True))
    named = grammar.parse(f"toy:{file}?n=007&batch=1#crc32")
    assert named.uri == f"toy:{file}?batch=1&n=7#crc32"
    assert (named.bindings, named.fragment) == ((("batch", 1), ("n", 7)), "crc32")
    assert BOUND.parse(f"toy:{file}").bindings == BOUND.parse(f"toy:{file}?").bindings == ()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("batch", "'batch' binds no name; write name=number, joined by &"),
        ("=1", "'=1' binds no name"),
        ("a=1&", "'' binds no name"),
        ("a=1&a=1", "a is given twice"),
        ("a=0", "a must be a whole number in 1 to 999999999"),
        ("a=-1", "a must be a whole number"),
        ("a=x", "a must be a whole number"),
    ],
)
def test_wrong_bindings_are_reported_in_one_sentence(tmp_path: Path, query: str, words: str):
    file = tmp_path / "a.c"
    file.write_text("")
    with pytest.raises(ProgramError) as caught:
        BOUND.parse(f"toy:{file}?{query}")
    assert words in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(ProgramError, match=r"name it \*\.c"):
        replace(BOUND, files=Files((".c",))).parse(f"toy:{file}?a=1")


def test_options_stand_elsewhere_too():
    options = (Option("count", 100, high=9), Option("seed", 0, low=0))
    assert read_options("name:count=3,seed=0", "count=3,seed=0", options, "it", ",") == {
        "count": 3,
        "seed": 0,
    }
    with pytest.raises(ProgramError, match="joined by ,"):
        read_options("name:count", "count", options, "it", ",")


def test_texts_of_a_file_are_canonical_beside_a_part_of_it(tmp_path):
    grammar = Grammar("toy", {}, Files((".c",), fragments=True, texts=("args", "with")))
    file = tmp_path / "a.c"
    file.write_text("")
    named = grammar.parse(f"toy:{file}?with=b.c&args=-n 1 %41%26%23%25#main")
    assert named.uri == f"toy:{file}?args=-n 1 A%26%23%25&with=b.c#main"
    assert named.texts == (("args", "-n 1 A&#%"), ("with", "b.c")) and named.fragment == "main"
    assert grammar.parse(named.uri) == named
