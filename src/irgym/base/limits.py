"""Limits of the system under which no command can work, told in a sentence before anything is imported."""

import os
import resource
from contextlib import suppress

LEAST_MEMORY = 1 << 30
"""Bytes of address space below which not even numpy and a compiler fit into a process."""

LEAST_FILES = 256
"""Files that a process may need to hold open at once: pipes of child processes, caches, libraries."""


def refusal() -> str:
    """Return why no command can work under the limits of this process; empty if they suffice.

    A soft limit on open files is raised as far as the hard one allows, as every process may do.
    """
    memory = resource.getrlimit(resource.RLIMIT_AS)[0]
    if memory != resource.RLIM_INFINITY and memory < LEAST_MEMORY:
        return (
            f"the address space is limited to {memory / 1e6:.0f} MB, too little for a compiler: raise the "
            "limit (ulimit -v unlimited)"
        )
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < LEAST_FILES:
        return f"only {most} files may be open at once: raise the limit (ulimit -n {LEAST_FILES})"
    if files != resource.RLIM_INFINITY and files < LEAST_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (LEAST_FILES, most))
    return ""


def leave_if_too_narrow() -> None:
    """End the process with one sentence and exit code 2 if the limits do not suffice."""
    reason = refusal()
    if reason:
        with suppress(OSError):  # nothing can be said where stderr is closed
            os.write(2, f"irgym: {reason}\n".encode())
        os._exit(2)
