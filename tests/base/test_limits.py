import resource
import subprocess
import sys

import pytest

LINES = "import resource; resource.setrlimit(resource.{which}, ({soft}, {hard}))"
START = "; import sys; sys.argv = ['irgym', 'envs']; sys.orig_argv = sys.argv; import irgym; print('started')"


@pytest.mark.parametrize(
    ("which", "soft", "hard", "words"),
    [
        ("RLIMIT_AS", 300_000_000, 300_000_000, "the address space is limited to 300 MB"),
        ("RLIMIT_NOFILE", 16, 16, "only 16 files may be open at once"),
    ],
)
def test_limits_under_which_nothing_works_are_one_sentence(which, soft, hard, words):
    code = LINES.format(which=which, soft=soft, hard=hard) + START
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith(f"irgym: {words}") and done.stderr.count("\n") == 1


def test_a_low_soft_limit_on_files_is_raised():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    code = LINES.format(which="RLIMIT_NOFILE", soft=16, hard=hard) + START
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr
