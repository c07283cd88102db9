"""Things that candidates may do to the process that runs them; imported by the isolated child."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from irgym.base.errors import BackendError
from irgym.core.cost import Measurement, Outcome
from irgym.measure import locks
from irgym.measure.machine import core_lock, tell, timing_slot
from irgym.measure.native import ExecutableBuffer
from irgym.measure.timing import interleave


def double(number):
    return 2 * number


def length(data):
    return len(data)


def blob(count):
    return bytes(count)


def measurement(cost):
    return Measurement(Outcome.OK, (cost,), 0.5)


def nap(seconds):
    time.sleep(seconds)
    return seconds


def nap_and_tell(seconds):
    begin = time.monotonic()
    time.sleep(seconds)
    return os.getpid(), begin, time.monotonic()


def nap_and_note(path, number, seconds):
    time.sleep(seconds)
    with Path(path).open("a") as file:
        file.write(f"{number}\n")
    return number


def process_id():
    return os.getpid()


def variable(name):
    return os.environ.get(name)


def affinity():
    return os.sched_getaffinity(0)


def affinity_while_timing():
    with timing_slot():
        return affinity()


def compile_error():
    return Measurement(Outcome.COMPILE_ERROR, detail="no such instruction")


def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)


def end_by(number):
    os.kill(os.getpid(), number)


def killed():
    end_by(signal.SIGKILL)


def note(path):
    """Append this process's number to a file."""
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")


def note_and_nap(path, seconds):
    note(path)
    time.sleep(seconds)
    return seconds


def note_and_end_by(path, number):
    note(path)
    end_by(number)


def note_and_hang(path):
    note(path)
    native_hang()


def compare_naps(seconds):
    """Return the number of rounds of a comparison in which every round is disturbed and retaken."""
    return len(interleave(lambda _: time.sleep(seconds), lambda _: time.sleep(seconds), rounds=3))


def burn():
    """Use the processor until the process is killed."""
    resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
    while True:
        pass


def jump_to_zero():
    print("about to jump", file=sys.stderr, flush=True)
    ctypes.CFUNCTYPE(None)(0x10)()


def leave(status):
    os._exit(status)


def system_exit():
    sys.exit(7)


def native_hang():
    code = ExecutableBuffer(b"\xeb\xfe")  # jmp to itself
    ctypes.PYFUNCTYPE(None)(code.address)()  # does not release the interpreter lock


def stubborn_hang():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGIO):
        signal.signal(number, signal.SIG_IGN)
    native_hang()


def exhaust():
    return len(bytearray(1 << 44))


def exhaust_by_growing():
    parts = []
    while True:
        parts.append(bytearray(1 << 26))


def hold(size):
    return len(bytearray(size))


HOARD = []


def hoard(size):
    """Leak memory, which later calls will lack."""
    HOARD.append(bytearray(size))
    return size


def fail(message):
    raise KeyError(message)


def user_error():
    raise BackendError("install the compiler")


def chatter(text):
    print(text, flush=True)
    print(text, file=sys.stderr, flush=True)
    os.write(1, text.encode())
    return len(text)


def close_pipes():
    os.closerange(3, 1024)


def babble():
    """Write invalid data to every descriptor except the standard ones, as a wild write could."""
    for descriptor in range(3, 1024):  # with many open files, a parent passes high numbers
        try:
            os.write(descriptor, b"\xff" * 64)
        except OSError:
            continue
    time.sleep(10)


def spawn_sleeper(pid_file):
    """Start a grandchild that outlives its parent unless the whole group is killed, then hang."""
    sleeper = subprocess.Popen(["sleep", "60"])
    Path(pid_file).write_text(f"{os.getpid()} {sleeper.pid}")
    native_hang()


def fork_and_die():
    """Leave a forked process behind that keeps the pipes open."""
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    os._exit(3)


def fork_bomb(depth):
    """Become 2^depth processes that stay."""
    for _ in range(depth):
        os.fork()
    signal.pause()


def lock_core_in(folder, core, seconds):
    locks.FOLDERS = (folder,)
    return lock_core(core, seconds)


def lock_core(core, seconds):
    with core_lock(core):
        time.sleep(seconds)
    return core


def tells(count):
    """Tell the parent of each of some steps."""
    for step in range(count):
        tell(f"step {step}")
    return count
