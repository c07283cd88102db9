import json
import math
import os
import re
import shutil
import subprocess
from dataclasses import asdict
from html.parser import HTMLParser

import pytest
from observers import Given
from staged import Staged

from irgym.base.errors import StorageError
from irgym.comparing.comparison import ComparisonPlan, run_comparison
from irgym.comparing.results import Comparison
from irgym.comparing.rows import Row
from irgym.comparing.steps import read_steps, steps_of, write_steps
from irgym.core.cost import Measurement, Outcome
from irgym.core.schedule import Schedule
from irgym.reporting.report import write_report
from irgym.search.budget import Budget

pytest.importorskip("matplotlib")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

METRICS = [
    {"iteration": i, "seconds": 2.0 * i, "evaluations": 900 * i, "reward_mean": 1 - 1 / i, "entropy": 2 / i}
    | {"speedup": 1.0 + i, "best_speedup": None if i < 3 else 2.0 * i, "validation": None, "kl": 0.01}
    for i in range(1, 9)
]


@pytest.fixture
def comparison(environment, bench, load_policy) -> Comparison:
    methods = ("base", "random", "evolutionary", "policy:mine", "numpy", "absent")
    uris = ("toy://easy", "toy://hard", "toy://broken")
    return run_comparison(ComparisonPlan(environment, uris, methods, Budget(12)), bench, Given(load_policy))


@pytest.fixture
def run(tmp_path, environment, bench, comparison):
    """A run folder with everything that a report shows."""
    folder = tmp_path / "a <run> & more"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in METRICS))
    (folder / "comparison.json").write_text(json.dumps(comparison.to_json()))
    (folder / "evaluation.json").write_text(json.dumps(comparison.to_json()))
    task = environment.task("toy://hard")
    steps = steps_of(task, bench, Schedule.parse("set_0_3 set_1_2", task.space))
    (folder / "steps.json").write_text(json.dumps([asdict(step) for step in steps]))
    return folder


class Page(HTMLParser):
    """Collects what a page refers to, its ids and its text; checks that elements close."""

    VOID = frozenset({"meta", "br", "img", "link", "hr", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self._note(attributes)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self._note(attributes)

    def _note(self, attributes):
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "srcset", "data", "action"):
                self.references.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def report(run) -> str:
    out = run / "report.html"
    write_report(run, out)
    return out.read_text()


@pytest.fixture(scope="module")
def reports() -> dict[str, str]:
    """Reports that were written already, by name."""
    return {}


@pytest.fixture
def text(run, reports) -> str:
    """The report of a run folder with everything in it, written once."""
    return reports["text"] if "text" in reports else reports.setdefault("text", report(run))


def test_the_page_needs_nothing_else(text):
    page = Page(text)
    assert page.references and all(reference.startswith("#") for reference in page.references)
    assert {reference[1:] for reference in page.references} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert "script" not in page.tags and "link" not in page.tags
    assert not re.search(r"@import|url\((?!#)", text)


def test_everything_in_the_folder_is_shown(text):
    page = Page(text)
    assert page.tags.count("svg") == 1 + 2 * 3
    for words in (
        "mean reward",
        "gain of the episodes",
        "3 rounds",
        "a toy <machine>, 1 thread",
        "set_1_2",
    ):
        assert words in page.text
    assert "for <i> in (3, 2)" in page.text and "6.00x" in page.text
    assert "it <crashed> & burnt" in page.text
    assert "a <run> & more" in page.text


def test_colours_come_from_the_style_sheet(text):
    assert "prefers-color-scheme: dark" in text and "var(--s0)" in text and "currentColor" in text
    assert not re.search(r"#010[23]0[0-9a-f]", text)


def test_the_result_comes_first_and_the_settings_last(run):
    (run / "config.json").write_text(json.dumps({"environment": "toy", "agent": "PPOConfig"}))
    anchors = re.findall(r'<section id="(\w+)">', report(run))
    assert anchors == ["comparison", "evaluation", "steps", "training", "settings"]


def test_the_page_has_only_sections_with_content(tmp_path):
    (tmp_path / "metrics.jsonl").write_text(json.dumps(METRICS[0]) + "\n")
    text = report(tmp_path)
    assert re.findall(r'<section id="(\w+)">', text) == ["training"]
    assert "1 iteration," in Page(text).text


def test_the_agent_its_data_set_and_its_settings_are_shown(tmp_path):
    lines = [json.dumps(row | {"epsilon": 0.3}) + "\n" for row in METRICS]
    (tmp_path / "metrics.jsonl").write_text("".join(lines))
    learner = {"hidden": [64, 32], "lr": 0.0007, "start": ""}
    described = {"environment": "toy", "agent": "PPOConfig", "dataset": "few <programs>", "config": learner}
    (tmp_path / "config.json").write_text(json.dumps(described))
    text = Page(report(tmp_path)).text
    assert all(words in text for words in ("PPOConfig", "few <programs>", "64, 32", "0.0007", "none"))
    assert "entropy" in text and "exploration" not in text, "it never changed"


def test_a_metrics_line_that_was_cut_off_is_left_out(tmp_path):
    lines = "".join(json.dumps(row) + "\n" for row in METRICS)
    (tmp_path / "metrics.jsonl").write_text(lines + '{"iteration": 9, "rew')
    assert "8 iterations" in Page(report(tmp_path)).text


def test_many_programs_become_curves(tmp_path):
    rows = [
        Row(f"toy://p{place}", method, 1e6 / speedup, speedup, None, 1.0, 5, True)
        for place in range(220)
        for method, speedup in (("base", 1.0), ("mcts", 1.5 + place / 100), ("random $x$", 1.2))
    ]
    data = Comparison("toy", None, tuple(rows)).to_json()
    (tmp_path / "comparison.json").write_text(json.dumps(data))
    page = Page(report(tmp_path))
    assert "percentage of programs" in page.text and "random $x$" in page.text


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("metrics.jsonl", "{not json}\n" + json.dumps(METRICS[0]) + "\n"),
        ("metrics.jsonl", "[1, 2]\n"),
        ("metrics.jsonl", b"\xff\xfe\x00bad\n"),
        ("comparison.json", '{"rows": ['),
        ("comparison.json", '{"baseline": "numpy", "rows": [{"program": 1}]}'),
        ("evaluation.json", "3"),
        ("evaluation.json", b"\xff\xfe"),
        ("steps.json", '[{"action": "split"}]'),
        ("steps.json", "7"),
    ],
)
def test_damaged_files_are_named_in_one_sentence(tmp_path, file, content):
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(StorageError, match=re.escape(file)) as error:
        report(tmp_path)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "report.html").exists()


def test_a_folder_with_nothing_or_no_folder(tmp_path):
    with pytest.raises(StorageError, match="nothing to report"):
        report(tmp_path)
    with pytest.raises(StorageError, match="there is no folder"):
        write_report(tmp_path / "nowhere", tmp_path / "report.html")


def test_an_unwritable_place_is_named(run, undrawn):
    with pytest.raises(StorageError, match="cannot write"):
        write_report(run, run / "no" / "such" / "report.html")


def test_steps_hold_costs_before_and_after_each_action(environment, bench, tmp_path):
    task = environment.task("toy://broken")
    steps = steps_of(task, bench, Schedule.parse("set_0_2 stop", task.space))
    assert [step.action for step in steps] == ["", "set_0_2", "stop"]
    assert [step.cost for step in steps] == [5000.0, None, None]
    write_steps(tmp_path / "steps.json", steps)
    assert read_steps(tmp_path / "steps.json") == steps and read_steps(tmp_path / "none.json") == []


class Staging:
    """Measures the toy of stages by what it costs."""

    def evaluate(self, jobs):
        return [Measurement(Outcome.OK, (float(len(job.schedule)),)) for job in jobs]


@pytest.fixture
def drawn(tmp_path):
    """A run folder with the steps of a program that is drawn."""
    task = Staged("sstts")
    schedule = Schedule.parse("merge@x0 merge@x2 fuse@x0 stop", task.space)
    write_steps(tmp_path / "steps.json", steps_of(task, Staging(), schedule))
    return tmp_path


def test_programs_that_are_drawn_are_shown_before_and_after(drawn):
    steps = read_steps(drawn / "steps.json")
    assert [step.action for step in steps] == ["", "merge x 2", "fuse@x0", "stop"]
    assert [step.drawing is None for step in steps] == [False, True, True, False]
    text = report(drawn)
    page = Page(text)
    assert page.tags.count("svg") == 2 and "merge x 2" in page.text and "<pre>" not in text
    assert text.count(' gone"') == 4 and text.count(' new"') == 1
    assert len(page.ids) == len(set(page.ids))


def test_drawings_of_wrong_content_are_one_sentence_or_harmless(drawn, undrawn):
    whole = json.loads((drawn / "steps.json").read_text())
    refused = 0
    for number, path in enumerate(places(whole)):
        for value in [*WRONG[number % 3 :: 3], "x1"]:
            data = changed(json.loads(json.dumps(whole)), path, value)
            (drawn / "steps.json").write_text(json.dumps(data))
            refused += not survives(drawn, "steps.json")
    assert refused > 60


def test_metrics_that_are_not_finite_are_left_out(tmp_path):
    row = {"iteration": 1, "reward_mean": math.nan, "speedup": 2.0, "entropy": math.inf, "kl": -1e200}
    rows = [row, row | {"iteration": 2, "speedup": 3.0}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = Page(report(tmp_path)).text
    assert "gain of the episodes" in text
    assert not any(words in text for words in ("entropy", "mean reward", "divergence"))


@pytest.mark.parametrize(
    ("environment", "objective", "word"),
    [
        ("loops", None, "speedup"),
        ("hlo", None, "improvement"),
        ("hlo", "time", "speedup"),
        ("hlo", "x", "gain"),
    ],
)
def test_only_times_have_speedups(tmp_path, environment, objective, word):
    rows = [{"iteration": number, "speedup": number, "best_speedup": number + 1} for number in (1, 2)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "config.json").write_text(json.dumps({"environment": environment, "objective": objective}))
    text = Page(report(tmp_path)).text
    assert f"{word} of the episodes" in text and f"best {word}" in text


def changed(data, path, value):
    """Set what stands at a path of names and places; remove it for ..."""
    *way, last = path
    inner = data
    for part in way:
        inner = inner[part]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return data


WRONG = [None, True, -1, 1e999, "text", [], {}, 10**400, "\ud800", 1.5, ...]


def places(data, path=()):
    """Yield the path of everything in some data, lists by their first item and their last."""
    if path:
        yield path
    if isinstance(data, dict):
        for name in data:
            yield from places(data[name], (*path, name))
    elif isinstance(data, list):
        for number in {0, len(data) - 1} if data else ():
            yield from places(data[number], (*path, number))


def survives(run, file):
    """A report comes, or one sentence that names the file."""
    try:
        write_report(run, run / "report.html")
    except StorageError as error:
        assert str(run / file) in str(error) and "\n" not in str(error) and len(str(error)) < 400
        return False
    return True


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out the plots, which take long."""
    for name in ("training_curves", "per_program", "anytime_curves"):
        monkeypatch.setattr(f"irgym.reporting.report.{name}", lambda *_: None)
    monkeypatch.setattr("irgym.base.files.os.fsync", lambda _: None)


@pytest.mark.parametrize("file", ["comparison.json", "steps.json", "metrics.jsonl"])
def test_every_part_of_wrong_type_is_one_sentence_or_harmless(run, file, undrawn):
    """Each value of a file in turn becomes a third of `WRONG`."""
    lines = file == "metrics.jsonl"
    text = (run / file).read_text()
    (run / "evaluation.json").unlink()
    whole = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    if file == "comparison.json":
        whole |= {"rows": whole["rows"][:3], "traces": whole["traces"][:1]}
    refused = 0
    for number, path in enumerate(places(whole)):
        for value in WRONG[number % 3 :: 3]:
            data = changed(json.loads(json.dumps(whole)), path, value)
            rows = "".join(json.dumps(row) + "\n" for row in data) if lines else json.dumps(data)
            (run / file).write_text(rows)
            refused += not survives(run, file)
    assert refused > {"comparison.json": 200, "steps.json": 20, "metrics.jsonl": 40}[file]


@pytest.mark.parametrize("value", [5e-324, 1e29, 0.0])
def test_extreme_numbers_are_one_sentence_or_drawn(run, value):
    data = json.loads((run / "comparison.json").read_text())
    for row in data["rows"][::2]:
        for name in ("cost", "speedup", "baseline_ratio", "best_seen", "seconds"):
            row[name] = value if row[name] is not None else None
    for trace in data["traces"]:
        trace["points"] = [[1, value, 5.0], [2, 1.0, value]]
    (run / "comparison.json").write_text(json.dumps(data))
    survives(run, "comparison.json")


def test_names_of_any_kind_are_drawn(run):
    text = (run / "comparison.json").read_text()
    names = ("$x $\\frac{ <b>]]>", "\x00\x1b[31m\u202e", "n" * 5000)
    for name, method, program in zip(
        names, ("numpy", "random", "base"), ("easy", "hard", "broken"), strict=True
    ):
        for old in (method, f"toy://{program}"):
            assert f'"{old}"' in text
            text = text.replace(f'"{old}"', json.dumps(name))
    (run / "comparison.json").write_text(text)
    assert survives(run, "comparison.json")


OTHER = [b"\n", b"{", b"null\n", b"3\n", b"[" * 100_000 + b"\n", b"\xff\xfe\n", b"1" * 5000 + b"\n", b'"x"\n']


@pytest.mark.parametrize("file", ["comparison.json", "evaluation.json", "steps.json", "metrics.jsonl"])
def test_other_content_is_one_sentence(run, file, undrawn):
    for content in OTHER:
        (run / file).write_bytes(content)
        torn = file == "metrics.jsonl" and content == b"{"
        assert survives(run, file) is torn, "a last line that was cut off is left out"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_fifo_or_folder_or_device_is_refused_in_one_sentence(run, make, undrawn):
    (run / "comparison.json").unlink()
    make(run / "comparison.json")
    assert not survives(run, "comparison.json")


def test_every_truncation_is_one_sentence(run, undrawn):
    content = (run / "comparison.json").read_bytes()
    for length in range(0, len(content), 97):
        (run / "comparison.json").write_bytes(content[:length])
        assert not survives(run, "comparison.json")


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to open the report: none is installed")
def test_opens_in_a_browser_without_any_request(run, tmp_path):
    assert CHROMIUM is not None
    report(run)
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1100,3000",
        f"--screenshot={tmp_path / 'page.png'}",
        "--dump-dom",
    ]
    process = subprocess.run(
        [CHROMIUM, *flags, (run / "report.html").as_uri()], capture_output=True, text=True, timeout=90
    )
    assert process.returncode == 0, process.stderr[-2000:]
    assert process.stdout.count("<svg") == 7 and "geometric" in process.stdout
    assert (tmp_path / "page.png").stat().st_size > 20_000
