"""A process that speaks lines, and misbehaves as each request says. An answer ends with `done NUMBER`."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def say(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def raw(data: bytes) -> None:
    sys.stdout.flush()
    with contextlib.suppress(BrokenPipeError):
        while data:
            data = data[os.write(1, data) :]


def answer(word: str, rest: str) -> bool:
    """Answer one request; false to end."""
    if word == "echo":
        say(f"you said {rest}", f"done {rest}")
    elif word == "lines":
        say(*(f"line {number}" for number in range(int(rest))), "done 0")
    elif word == "words":  # without a number
        say("some words")
    elif word == "length":
        say(f"done {len(rest)}")
    elif word == "process":
        say(f"done {os.getpid()}")
    elif word == "environment":
        say(f"done {os.environ.get(rest, '-')} {Path.cwd()}")
    elif word == "sleep":  # and answer late
        time.sleep(float(rest))
        say("done late")
    elif word == "twice":
        say("done first")
        time.sleep(float(rest or 0))
        say("done nobody asked")
    elif word == "chatter":
        say("done chatter", "some words", "and others")
    elif word == "unfinished":
        say("done unfinished")
        raw(b"done unf")
    elif word == "die":
        print("the last words", file=sys.stderr, flush=True)
        os._exit(int(rest))
    elif word == "abort":
        raw(b"half a li")
        os.abort()
    elif word == "leave":  # answer, then end
        say("done leave")
        return False
    elif word == "deaf":  # close the output and live on
        os.close(1)
        time.sleep(60)
    elif word == "bytes":
        raw(b"before\n\xff\xfe\x00garbage\ndone 0\n")
    elif word == "endless-line":
        while True:
            raw(b"x" * 65536)
    elif word == "endless-lines":
        while True:
            raw(b"no end\n" * 9000)
    elif word == "complain":  # more than any pipe holds
        os.write(2, b"complaint\n" * 100_000)
        say("done complain")
    elif word == "crlf":
        raw(b"one\r\ndone 0\r\n")
    elif word == "grandchild":  # which keeps the pipes open
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        say(f"done {child.pid}")
    elif word == "orphan":  # dies, and leaves one behind that holds its output
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        os._exit(3)
    else:
        say(f"done? {word}")
    return True


def main() -> None:
    if "dies" in sys.argv:
        print("cannot find my library", file=sys.stderr)
        sys.exit(127)
    if "mute" in sys.argv:
        time.sleep(60)
    if "stubborn" in sys.argv:  # neither the end of its input nor SIGTERM ends it
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "greets" in sys.argv:
        say("welcome", "ready")
    for line in sys.stdin:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "quit":
            if "witness" in sys.argv:
                Path(sys.argv[-1]).write_text("quit")
            break
        if not answer(word, rest):
            return
    if "stubborn" in sys.argv:
        time.sleep(60)


main()
