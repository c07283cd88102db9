"""Run a command under a lock, unless another process has it: alone.py LOCK COMMAND...

The lock is the command's, and that of all that it starts: the system frees it once they have ended, however.
"""

import fcntl
import os
import sys
from pathlib import Path


def main(lock: Path, command: list[str]) -> None:
    """Become the command; exit with 1 and one sentence where the lock is taken."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = lock.read_text().strip() or "another one"
        sys.exit(f"process {owner} does the same in this folder: wait until it has ended, or end it")
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    os.set_inheritable(descriptor, True)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
