import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irgym.base.errors import StorageError
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.measure.cache import CostCache, default_path

WRITER = """
import os, sys
from pathlib import Path
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.measure.cache import CostCache

name, count = sys.argv[2], int(sys.argv[3])
with CostCache(Path(sys.argv[1]), "machine") as cache:
    for number in range(count):
        jobs = [Job(Call("m:f"), f"p://{name}", f"{number} {part}", "tools", target="") for part in range(3)]
        cache.put_many(jobs, [Measurement(Outcome.OK, (float(number + 1),))] * 3)
        os.write(1, b"%d\\n" % number)
"""


def job(schedule="s", program="loops://mm/8x8x8", toolchain="t", objective="time", target=""):
    return Job(Call("m:f"), program, schedule, toolchain, objective, target=target)


def ok(cost, detail=""):
    return Measurement(Outcome.OK, (cost,), 0.25, detail)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "costs.sqlite"


@pytest.fixture
def cache(path):
    with CostCache(path, "machine") as opened:
        yield opened


def cached(measurement):
    return replace(measurement, cached=True)


texts = st.text(max_size=8)
few_texts = st.sampled_from(["", "a", "b", "é\x00'\";"])
jobs = st.builds(job, few_texts, few_texts, few_texts, few_texts, few_texts)
seconds = st.floats(0, 1e6)
costs = st.floats(allow_nan=False, allow_infinity=False)
successes = st.builds(
    Measurement, st.just(Outcome.OK), st.lists(costs, min_size=1, max_size=4).map(tuple), seconds, texts
)
failures = st.builds(
    Measurement, st.sampled_from([o for o in Outcome if o is not Outcome.OK]), st.just(()), seconds, texts
)
batches = st.lists(st.tuples(jobs, st.one_of(successes, failures)), max_size=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(batches, st.booleans(), st.sampled_from(["here", "there"])), max_size=6))
def test_it_behaves_like_a_dictionary(tmp_path_factory, history):
    path = tmp_path_factory.mktemp("cache") / "costs.sqlite"
    caches = {machine: CostCache(path, machine) for machine in ("here", "there")}
    oracle = {}
    for batch, reopen, machine in history:
        caches[machine].put_many([key for key, _ in batch], [value for _, value in batch])
        oracle.update({(machine, key): cached(value) for key, value in batch})
        if reopen:
            caches[machine].close()
            caches[machine] = CostCache(path, machine)
        asked = [job(), *(key for _, key in oracle)]
        for name, opened in caches.items():
            assert opened.get_many(asked) == [oracle.get((name, key)) for key in asked]
    for opened in caches.values():
        assert opened.stats().rows == len(oracle)
        opened.close()


@pytest.mark.parametrize("field", ["program", "schedule", "toolchain", "objective"])
def test_every_part_of_a_job_counts(cache, field):
    cache.put_many([job()], [ok(1.0)])
    assert cache.get_many([job(), replace(job(), **{field: "other"})]) == [cached(ok(1.0)), None]


def test_failures_are_kept_and_told_apart(cache):
    measurements = [
        Measurement(outcome, detail=outcome.value) for outcome in Outcome if outcome is not Outcome.OK
    ]
    asked = [job(str(number)) for number in range(len(measurements))]
    cache.put_many(asked, measurements)
    assert cache.get_many(asked) == [cached(measurement) for measurement in measurements]


def test_a_batch_is_recorded_whole_or_not_at_all(cache):
    with pytest.raises(ValueError, match="zip"):
        cache.put_many([job("1"), job("2")], [ok(1.0)])
    assert cache.get_many([job("1")]) == [None]
    cache.put_many([job("1")], [ok(2.0)])
    assert cache.get_many([job("1")]) == [cached(ok(2.0))]


@pytest.mark.parametrize(
    "damage",
    [
        "outcome = 'great'",
        "samples = '[1.0'",
        "samples = '[]'",
        "samples = '[NaN]'",
        "samples = '{}'",
        "samples = '7'",
        f"samples = '{'[' * 100_000}'",
        f"samples = '[{10**400}]'",
    ],
    ids=lambda damage: damage[:20],
)
def test_a_damaged_row_is_a_miss_and_can_be_replaced(cache, path, damage):
    cache.put_many([job("1"), job("2")], [ok(1.0), ok(2.0)])
    with sqlite3.connect(path) as other:
        other.execute(f"UPDATE costs SET {damage} WHERE schedule = '1'")
    other.close()
    assert cache.get_many([job("1"), job("2")]) == [None, cached(ok(2.0))]
    cache.put_many([job("1")], [ok(3.0)])
    assert cache.get_many([job("1")]) == [cached(ok(3.0))]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches, st.integers(0, 8))
def test_records_are_the_newest_of_an_environment_on_this_machine(tmp_path_factory, batch, limit):
    path = tmp_path_factory.mktemp("cache") / "costs.sqlite"
    written = [replace(key, program=f"{scheme}:{key.program}") for scheme in "pq" for key, _ in batch]
    measurements = [value for _ in "pq" for _, value in batch]
    with CostCache(path, "here") as cache, CostCache(path, "there") as other:
        other.put_many(written, measurements)
        for key, value in zip(written, measurements, strict=True):
            cache.put_many([key], [value])
        other.put_many(written[:3], measurements[:3])
        for objective, target in {(key.objective, key.target) for key in written} | {
            ("none", ""),
            ("", "none"),
        }:
            known = {
                (key.program, key.schedule, key.toolchain): cached(value)
                for key, value in zip(written, measurements, strict=True)
                if (key.objective, key.target) == (objective, target) and key.program.startswith("p:")
            }
            records = cache.records("p", objective, target, 100)
            assert {(r.program, r.schedule, r.toolchain): r.measurement for r in records} == known
            assert len(records) == len(known)
            newest = cache.records("p", objective, target, limit)
            assert newest == records[:limit]


def test_records_begin_with_the_newest(cache):
    for number in (3, 1, 2):
        cache.put_many([job(str(number))], [ok(float(number))])
    assert [record.schedule for record in cache.records("loops", "time", "", 9)] == ["2", "1", "3"]
    assert cache.records("loop", "time", "", 9) == []


def test_predictions_are_never_recorded(cache):
    with pytest.raises(ValueError, match="no measurements"):
        cache.put_many([job("1"), job("2")], [ok(1.0), replace(ok(2.0), predicted=True)])
    assert cache.get_many([job("1"), job("2")]) == [None, None]


def test_no_row_is_lost_when_the_writer_is_killed(path):
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), "writer", "1000000"], stdout=subprocess.PIPE
    ) as writer:
        acknowledged = [int(writer.stdout.readline()) for _ in range(200)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout.read().splitlines()]
    asked = [job(f"{n} {part}", "p://writer", "tools") for n in acknowledged for part in range(3)]
    with CostCache(path, "machine") as cache:
        assert [measurement.cost for measurement in cache.get_many(asked)] == [
            float(n + 1) for n in acknowledged for _ in range(3)
        ]


def test_many_processes_create_and_write_at_once(path):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n), "40"], stdout=subprocess.DEVNULL)
        for n in range(4)
    ]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    with CostCache(path, "machine") as cache:
        assert cache.stats().rows == 4 * 40 * 3


def test_a_full_disk_is_one_sentence_and_loses_nothing(path):
    """A limit on the size of files makes writes fail like a full disk."""
    program = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)){WRITER}"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), "writer", "100000"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("irgym.base.errors.StorageError: ")
    acknowledged = [int(line) for line in done.stdout.splitlines()]
    assert len(acknowledged) > 10
    asked = [job(f"{n} {part}", "p://writer", "tools") for n in acknowledged for part in range(3)]
    with CostCache(path, "machine") as cache:
        assert None not in cache.get_many(asked)


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_file_that_is_no_cache_is_refused_and_never_removed(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    for attempt in (CostCache, CostCache.clear):
        with pytest.raises(StorageError, match="move it away, or set IRGYM_CACHE_DIR"):
            attempt(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("logged", [True, False])
def test_a_damaged_cache_is_one_sentence_and_can_be_cleared(cache, path, logged):
    cache.put_many([job(str(n)) for n in range(2000)], [ok(1.0)] * 2000)
    if not logged:
        cache.close()
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xa5" * (path.stat().st_size - 100))
    if not logged:
        with pytest.raises(StorageError, match="move it away, or run irgym cache clear"):
            CostCache(path)
    CostCache.clear(path)
    assert list(path.parent.iterdir()) == []


def test_damage_inside_the_file_is_one_sentence(path):
    with CostCache(path) as cache:
        cache.put_many([job(str(n)) for n in range(2000)], [ok(1.0)] * 2000)
    content = bytearray(path.read_bytes())
    content[4096 * 2 :] = b"\xa5" * (len(content) - 4096 * 2)
    path.write_bytes(content)
    with pytest.raises(StorageError, match="irgym cache clear"), CostCache(path) as cache:
        cache.get_many([job(str(n)) for n in range(2000)])


def test_a_foreign_database_is_left_alone(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    before = path.read_bytes()
    for attempt in (CostCache, CostCache.clear):
        with pytest.raises(StorageError, match="move it away, or set IRGYM_CACHE_DIR"):
            attempt(path)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_another_version_is_refused(path):
    CostCache(path).close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(StorageError, match="version"):
        CostCache(path)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="IRGYM_CACHE_DIR"):
        CostCache(tmp_path / "file" / "costs.sqlite")


def test_a_folder_where_nothing_can_be_made_is_one_sentence():
    with pytest.raises(StorageError, match="IRGYM_CACHE_DIR"):
        CostCache(Path("/proc/irgym/costs.sqlite"))  # not even root can


def test_a_recorded_cost_can_be_read_while_another_process_writes(cache, path):
    cache.put_many([job()], [ok(1.0)])
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with CostCache(path, "machine") as reader:
            assert reader.get_many([job(), job(toolchain="never seen")]) == [cached(ok(1.0)), None]
        other.execute("ROLLBACK")
    other.close()


def test_misuse_is_a_bug_and_not_called_damage(path):
    cache = CostCache(path)
    cache.close()
    with pytest.raises(sqlite3.ProgrammingError):
        cache.get_many([job()])


def test_it_can_be_used_from_another_thread(cache):
    thread = threading.Thread(target=lambda: cache.put_many([job()], [ok(1.0)]))
    thread.start()
    thread.join()
    assert cache.get_many([job()]) == [cached(ok(1.0))]


def test_stats_count_by_family_and_outcome(cache, path):
    asked = [job("1"), job("2"), job("1", "loops://mm/9x9x9"), job("1", "loops://conv/1x2x3")]
    cache.put_many(asked, [ok(1.0), Measurement(Outcome.CRASH), ok(1.0), ok(1.0)])
    stats = cache.stats()
    assert (stats.path, stats.rows, stats.programs, stats.machines) == (str(path), 4, 3, 1)
    assert stats.families == {"loops://mm": 3, "loops://conv": 1}
    assert stats.outcomes == {"ok": 3, "crash": 1}
    assert stats.size_bytes > 0


def test_clearing_removes_every_file(cache, path):
    cache.put_many([job()], [ok(1.0)])
    CostCache.clear(path)
    CostCache.clear(path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/null")])
def test_clearing_removes_no_folder_and_nothing_special(path, make):
    path.parent.mkdir()
    make(path)
    with pytest.raises(StorageError, match="is not irgym's cost cache and stays"):
        CostCache.clear(path)
    assert list(path.parent.iterdir()) == [path]


def test_clearing_follows_links(tmp_path, path):
    CostCache(tmp_path / "there.sqlite").close()
    path.parent.mkdir()
    path.symlink_to(tmp_path / "there.sqlite")
    CostCache.clear(path)
    assert path.is_symlink() and not (tmp_path / "there.sqlite").exists()


def test_clearing_knows_a_cache_whose_mark_is_still_in_the_log(path):
    script = (
        "import os, sys; from pathlib import Path; from irgym.measure.cache import CostCache;"
        "CostCache(Path(sys.argv[1])); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert path.read_bytes()[68:72] == bytes(4)
    CostCache.clear(path)
    assert list(path.parent.iterdir()) == []


def test_the_default_path_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path))
    assert default_path() == tmp_path / "costs.sqlite"
