"""Functions for workers of a pool: each worker remembers the keys that it has loaded."""

import os
import time

LOADED: list[str] = []


def step(requests: list[tuple[str, str]]) -> list[tuple[int, bool, int]]:
    """Answer requests (key, behaviour): process, whether the key was loaded, size of the batch."""
    answers: list[tuple[int, bool, int]] = []
    for key, behaviour in requests:
        if behaviour == "abort":
            os.abort()
        elif behaviour == "hang":
            time.sleep(60)
        elif behaviour == "raise":
            raise ValueError("planted")
        elif behaviour == "greedy":
            bytearray(1 << 40)
        elif behaviour == "nap":
            time.sleep(0.3)
        answers.append((os.getpid(), key in LOADED, len(requests)))
        if key not in LOADED:
            LOADED.append(key)
    return answers


def order(requests: list[tuple[str, str]]) -> list[list[str]]:
    """Answer every request with the keys of its batch."""
    return [[key for key, _ in requests]] * len(requests)


def loaded() -> tuple[int, list[str]]:
    return os.getpid(), LOADED


def loaded_none(requests: list[tuple[str, str]]) -> list[str]:
    return []
