"""Data sets by whatever names their programs."""

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import irgym
from irgym.base.errors import IrgymError, ProgramError
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.datasets import DATASETS, DatasetSpec, Programs, dataset_named, dataset_names, registered
from irgym.core.program_files import digest_of, list_text
from irgym.envs.graph.environment import GraphEnvironment

LOOPS, HLO, GRAPH = (ENVIRONMENTS.load(name) for name in ("loops", "hlo", "graph"))
TASO = ENVIRONMENTS.load("graph-taso")
MM = [f"loops://mm/{size}x8x8" for size in range(1, 41)]


def listed(folder: Path, *lines: str) -> Path:
    path = folder / "list.txt"
    path.write_text("\n".join(lines))
    return path


def models(folder: Path, count: int = 6) -> Path:
    """Make files that only look like ONNX models, which is all that a data set asks of them."""
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"m{number}.onnx").write_text(f"model {number}")
    return folder


def names(environment: str, given: Programs, **options: float) -> set[str]:
    found = dataset_named(ENVIRONMENTS.load(environment), given, **options)
    return {uri.rpartition("/")[2] for uri in found.all}


def test_names_and_generated_sets_keep_their_splits():
    fixed = LOOPS.dataset("mm64_128_16_range")
    assert dataset_named(LOOPS, "mm64_128_16_range") == fixed
    assert (len(fixed.train), len(fixed.test)) == (115, 10)
    assert dataset_named(LOOPS).name == LOOPS.default_dataset
    grid = dataset_named(LOOPS, "mm:m=64:128:16,n=64:128:16,k=64:128:16")
    assert (grid.train, grid.test) == (fixed.train, fixed.test)


def test_generated_sets_have_test_programs():
    for seed in range(6):
        found = dataset_named(LOOPS, f"mm_random:count=4,seed={seed}")
        assert found.train and found.test


def test_a_share_divides_a_set_again():
    assert len(dataset_named(LOOPS, "mm64_128_16_range", 0.5).test) > 40
    assert not dataset_named(LOOPS, "mm64_128_16_range", 0).test
    assert dataset_named(HLO, "full", 0.2).train


def test_a_uri_alone_is_in_both_splits_and_two_are_divided():
    single = dataset_named(LOOPS, MM[0])
    assert single.train == single.test == (MM[0],)
    assert dataset_named(LOOPS, "loops://einsum/mk,kn->mn?n=4&m=2&k=3").train == (
        "loops://einsum/mk,kn->mn?k=3&m=2&n=4",
    )
    two = dataset_named(LOOPS, MM[:2])
    assert len(two.train) == len(two.test) == 1


@pytest.mark.parametrize("given", [MM, "+".join(MM), [*MM, MM[0]]])
def test_several_are_one_set(given: str | Sequence[str]):
    found = dataset_named(LOOPS, given)
    assert sorted(found.all) == sorted(MM) and not set(found.train) & set(found.test)


def test_the_first_set_that_names_a_program_decides_its_split():
    fixed = LOOPS.dataset("mm64_128_16_range")
    moved = fixed.test[0]
    found = dataset_named(LOOPS, ["mm64_128_16_range", moved, "mm:m=1:40,n=8,k=8"], None)
    assert moved in found.test and moved not in found.train and set(fixed.train) <= set(found.train)
    assert set(MM) <= set(found.all) and len(set(found.test)) == len(found.test)


def test_a_list_that_comes_first_decides(tmp_path: Path):
    other = dataset_named(LOOPS, MM).train[0]
    listing = listed(tmp_path, "# test", other)
    assert dataset_named(LOOPS, [listing, *MM]).test.count(other) == 1
    assert other not in dataset_named(LOOPS, [listing, *MM]).train
    assert other not in dataset_named(LOOPS, [*MM, listing]).test


def test_a_single_program_beside_a_set_is_in_the_split_that_lacks_programs(tmp_path: Path):
    taught = dataset_named(LOOPS, [listed(tmp_path, "# train", MM[0]), MM[1]])
    assert (taught.train, taught.test) == ((MM[0],), (MM[1],))
    tested = dataset_named(LOOPS, [listed(tmp_path, "# test", MM[0]), MM[1]])
    assert (tested.train, tested.test) == ((MM[1],), (MM[0],))


def test_plus_within_brackets_joins_nothing():
    grid = "einsum/n[2*h+r],rf->nhf:n=1,h=4/8,f=8,r=3"
    assert names("loops", f"{grid}+{MM[0]}") == {
        "1x8x8",
        *(f"n[2*h+r],rf->nhf?f=8&h={h}&n=1&r=3" for h in "48"),
    }


def test_a_folder_with_a_plus_in_its_name(tmp_path: Path):
    folder = models(tmp_path / "a+b" / "c")
    assert names("graph", str(folder)) == {f"m{number}.onnx" for number in range(6)}
    assert names("graph", f"graph:{folder}/m1.onnx") == names("graph", folder / "m1.onnx") == {"m1.onnx"}


def test_a_folder_and_a_glob(tmp_path: Path):
    folder = models(tmp_path / "mine" / "deep").parent
    (folder / "README.txt").write_text("not a model")
    (folder / "deep" / "m1.onnx.data").write_text("weights")
    (folder / ".hidden.onnx").write_text("nor this")
    models(folder / ".git", 9)
    everything = {f"m{number}.onnx" for number in range(6)}
    assert names("graph", folder) == names("graph", f"{folder}/**/*.onnx") == everything
    assert dataset_named(GRAPH, folder).left_out == ()
    assert names("graph-taso", folder) == everything  # a variant has the files of its original
    assert names("graph", f"{folder}/deep/m[12].onnx") == {"m1.onnx", "m2.onnx"}
    assert names("graph", f"{folder}/deep/m1.onnx?batch=2") == {"m1.onnx?batch=2"}


def test_the_split_of_a_file_stays_when_its_folder_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def split(folder: Path | str) -> list[str]:
        return [plain(uri) for uri in dataset_named(GRAPH, folder, 0.5).test]

    folder = models(tmp_path / "mine", 20)
    before = split(folder)
    moved = folder.rename(tmp_path / "moved")
    monkeypatch.chdir(moved)
    assert split(moved) == split(".") == before and 0 < len(before) < 20
    (moved / "m0.onnx").rename(moved / "renamed.onnx")
    assert ("renamed.onnx" in split(moved)) == ("m0.onnx" in before)


def test_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    models(tmp_path / "mine", 3)
    files = ("mine/m0.onnx", f"graph:{tmp_path}/mine/m1.onnx", "graph:mine/m2.onnx")
    path = listed(tmp_path, "# mine", "", *files, "  graph://bert?layers=1", "bert:layers=2/3,hidden=64")
    expected = {
        "m0.onnx",
        "m1.onnx",
        "m2.onnx",
        "bert?layers=1",
        "bert?hidden=64&layers=2",
        "bert?hidden=64&layers=3",
    }
    assert names("graph", path) == names("graph", str(path)) == names("graph", [path]) == expected
    monkeypatch.chdir(tmp_path)
    assert names("graph", "list.txt") == names("graph", "mine+list.txt") == expected


def test_a_list_may_fix_the_split(tmp_path: Path):
    found = dataset_named(LOOPS, listed(tmp_path, "# train", *MM[:3], "#Test:", MM[4], "# other", MM[5]))
    assert (found.train, found.test) == (tuple(MM[:3]), (MM[4], MM[5]))
    alone = dataset_named(LOOPS, listed(tmp_path, "# test", MM[0]))
    assert not alone.train and alone.test == (MM[0],)


def test_what_is_saved_reads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    models(tmp_path / "mine", 12)
    before = dataset_named(GRAPH, ["mine", "bert:layers=1/2,hidden=64"])
    (tmp_path / "lists").mkdir()
    path = Path("lists/list.txt")
    path.write_text(list_text(before.train, before.test, "mine", path.parent))
    after = dataset_named(GRAPH, path)
    assert [list(map(plain, split)) for split in (after.train, after.test)] == [
        list(map(plain, split)) for split in (before.train, before.test)
    ]


def plain(uri: str) -> str:
    return re.split("[:/]", uri)[-1] if "?" not in uri else uri.rpartition("/")[2]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((MM[0], "loops://mm/1x2"), "list.txt, line 2: 'loops://mm/1x2' is malformed"),
        (("", "# x", "hlo://gpt2"), "list.txt, line 3: 'hlo://gpt2' is a program of hlo: name one of loops"),
        (("mm:m=1",), "list.txt, line 1: 'mm:m=1' does not say n, k"),
        (("tower.c",), "list.txt, line 1: there is no file or folder .*tower.c"),
        (("tower:x",), "list.txt, line 1: 'tower:x' is no program of loops: write a file"),
        ((MM[0], "# test", MM[1]), "list.txt, line 2: programs stand before this section"),
        (("# nothing",), "list.txt lists no programs"),
        (("x" * 5000,), "list.txt, line 1: "),
    ],
)
def test_bad_lines_are_told_by_file_and_number(lines: Sequence[str], message: str, tmp_path: Path):
    with pytest.raises(ProgramError, match=message) as raised:
        dataset_named(LOOPS, listed(tmp_path, *lines))
    assert "\n" not in str(raised.value)


def test_what_names_nothing_is_refused(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for given, message in (
        ("towers", "no data set 'towers' of loops: choose among mm64.*, or name a file, a folder"),
        ("mm_random:count=0", "count must be"),
        ("towers.txt", "no file or folder towers.txt"),
        (f"{MM[0]}+", "a \\+ that joins nothing"),
        ("**x.c", "is malformed: let"),
        ("+", "a \\+ that joins nothing"),
        (tmp_path / "empty", "holds no programs of loops; check the path"),
        (tmp_path / "bytes", "is neither a program nor a list"),
        ([], "named by a text, a path or a list"),
        (3, "named by a text, a path or a list"),
        ([MM[0], 3], "not by 3"),
    ):
        with pytest.raises(ProgramError, match=message):
            dataset_named(LOOPS, given)  # pyright: ignore[reportArgumentType]


def test_an_environments_reason_is_told_where_it_knows_the_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CORE_ROOT", raising=False)
    with pytest.raises(ProgramError, match="does not say core_root"):
        dataset_named(ENVIRONMENTS.load("superpmi"), "collection")


def test_a_long_list_is_called_by_its_first_names():
    assert dataset_named(LOOPS, MM).name == f"{MM[0]} + {MM[1]} + {MM[2]} and 37 more"


def test_a_folder_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = models(tmp_path / "mine")

    def scandir(path: object) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.scandir", scandir)
    with pytest.raises(ProgramError, match=r"cannot read .*mine: check its permissions"):
        dataset_named(GRAPH, folder)


def test_files_that_are_no_programs_are_left_out_of_folders_only(tmp_path: Path):
    class Picky(GraphEnvironment):
        def parts(self, uri: str, target: object = None) -> Sequence[str]:
            if uri.endswith("m0.onnx"):
                raise ProgramError("m0 is broken: mend it")
            return [f"{uri}?batch=1", f"{uri}?batch=2"] if uri.endswith("m1.onnx") else ()

    folder = models(tmp_path / "mine", 3)
    found = dataset_named(Picky(), folder)
    assert found.left_out == ("m0 is broken: mend it",)
    assert sorted(map(plain, found.all)) == ["m1.onnx?batch=1", "m1.onnx?batch=2", "m2.onnx"]
    with pytest.raises(ProgramError, match="m0 is broken"):
        dataset_named(Picky(), folder / "m0.onnx")


def test_the_digest_changes_with_a_file_only(tmp_path: Path):
    folder = models(tmp_path / "mine")
    uris = dataset_named(GRAPH, folder).train
    before = digest_of(uris)
    assert digest_of(dataset_named(GRAPH, folder.rename(tmp_path / "moved")).train) == before
    edited = dataset_named(GRAPH, tmp_path / "moved").train
    (tmp_path / "moved" / Path(edited[0]).name).write_text("another")
    assert digest_of(edited) != before and digest_of(edited[1:]) == digest_of(edited[1:])


@pytest.fixture
def own() -> Iterator[None]:
    """Forget the data sets that this process has registered, before and after a test."""
    DATASETS.added.clear()
    yield
    DATASETS.added.clear()


@pytest.mark.usefixtures("own")
def test_names_of_ones_own(tmp_path: Path):
    irgym.register_dataset("small", "loops", "mm:m=1:40,n=8,k=8", description="small ones")
    assert set(dataset_named(LOOPS, "small").all) == set(MM) and "small" in dataset_names(LOOPS)
    assert dataset_named(LOOPS, "small").description == "small ones" and "small" not in dataset_names(HLO)
    assert len(dataset_named(LOOPS, "small", 0.5).test) > 10
    irgym.register_dataset("small", "loops", lambda: MM[:4], test=[MM[9]])
    again = dataset_named(LOOPS, "small")
    assert (again.train, again.test) == (tuple(MM[:4]), (MM[9],))
    irgym.register_dataset("mine", "graph", models(tmp_path / "mine"))
    assert dataset_named(TASO, "mine").train == dataset_named(GRAPH, "mine").train
    with pytest.raises(ProgramError, match="the data set small is of loops: choose one of hlo"):
        dataset_named(HLO, "small")


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "environment", "programs", "message"),
    [
        ("conv_networks", "loops", MM, "has a data set 'conv_networks'"),
        ("a+b", "loops", MM, "cannot name a data set"),
        ("a:b", "loops", MM, "cannot name a data set"),
        ("mine", "towers", MM, "no environment 'towers'"),
        ("mine", "loops", 3, "by texts or paths, not by 3"),
    ],
)
def test_names_that_cannot_be(name: str, environment: str, programs: Programs, message: str):
    with pytest.raises(IrgymError, match=message):
        irgym.register_dataset(name, environment, programs)


@pytest.mark.usefixtures("own")
def test_a_registered_name_may_not_lead_to_itself():
    irgym.register_dataset("mine", "loops", "mine")
    with pytest.raises(ProgramError, match="mine names another such set, mine"):
        dataset_named(LOOPS, "mine")


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "irgym.datasets")


@pytest.mark.usefixtures("own")
def test_names_of_other_packages(monkeypatch: pytest.MonkeyPatch):
    places = {"theirs": "THEIRS", "tiny": "TINY", "bad": "MM"}
    found = [entry(name, f"{__name__}:{place}") for name, place in places.items()]
    found.append(entry("gone", "nothing:HERE"))
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [e for e in found if e.group == group]
    )
    assert set(dataset_named(LOOPS, "theirs").all) == set(MM[:3]) and "theirs" in dataset_names(LOOPS)
    specs, faults = registered()
    assert list(specs) == ["theirs"] and len(faults) == 3
    assert "'tiny' is hidden by one of hlo" in faults[0] and "is no irgym.DatasetSpec" in faults[1]
    assert dataset_named(HLO, "tiny") == HLO.dataset("tiny")


THEIRS = DatasetSpec("loops", MM[:3])
TINY = DatasetSpec("hlo", "hlo://gpt2")
