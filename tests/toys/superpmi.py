"""A stand-in for SuperPMI: it speaks its protocol, and misbehaves where it is told to.

Method N has N % 7 candidates. Its score is 100 + N, less for each candidate that is shared by its number + 1,
and 3 more if all are. What is shared by itself is counted from `--from` on. Faults are injected at random, as
`--faults SHARE --seed N` say. Without `-streaming` all methods are told once.
"""

import argparse
import os
import random
import sys
import time

FEATURES = 22
NAMES = (
    "type,viable,live_across_call,const,shared_const,make_cse,has_call,containable,cost_ex,cost_sz,use_count,"
    "def_count,use_wt_cnt_x100,def_wt_cnt_x100,distinct_locals,local_occurrences,bb_count,block_spread,"
    "enreg_count_int,enreg_count_float,enreg_count_simd,enreg_count_msk"
)


def metrics(index: int, chosen: list[int] | None, first: int = 0) -> str:
    count = index % 7
    shared = [place for place in (chosen if chosen is not None else range(count)) if place < count]
    score = 100.0 + index - sum(place + 1 for place in shared) + (3 if shared and len(shared) == count else 0)
    told = f", num cse {len(shared)} num cand {count}"
    if chosen is not None:
        rows = " ".join(
            f"features #{place}," + ",".join(str(place + n) for n in range(FEATURES))
            for place in range(count)
        )
        told += f" featureNames {NAMES} {rows}" if count else ""
    if shared:
        told += f" seq {','.join(str(place + (first if chosen is None else 0)) for place in shared)}"
    return (
        f"; Total bytes of code {40 + index}, prolog size 4, PerfScore {score:.2f}, instruction count 8, "
        f"allocated bytes for code {40 + index}{told} spmi index {index} (MethodHash={index:08x}) "
        f"for method Type:Method{index}(int):int (Tier1)"
    )


FAULTS = ("die", "abort", "garbage", "half", "noise", "silence")


def misbehave(rng: random.Random, only: str | None) -> bool:
    """Do something wrong; true if the request is answered all the same."""
    fault = only or rng.choice(FAULTS)
    if fault == "die":
        os._exit(3)
    elif fault == "abort":
        os.abort()
    elif fault == "garbage":
        sys.stdout.buffer.write(b"\xff\xfe\x00 not text\n")
    elif fault == "half":
        sys.stdout.write("; Total bytes of co")
        sys.stdout.flush()
        os._exit(0)
    elif fault == "silence":
        time.sleep(60)
    else:
        print("# a remark", flush=True)
        print("some words of the JIT's own", flush=True)
        return True
    sys.stdout.flush()
    return False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", type=float, default=0.0)
    parser.add_argument("--only", choices=FAULTS, help="the only fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", type=int, default=1000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    own, others = parser.parse_known_args()
    rng = random.Random(f"{own.seed} {os.getpid()}")
    if "-streaming" not in others:
        lines = (metrics(method, None) for method in range(1, own.methods + 1))
        print("\n".join(["some words first", *lines]))
        return
    for line in sys.stdin:
        line = line.strip()
        if line in ("quit", "0"):
            return
        if line.startswith("#") or not line:
            continue
        first, *options = line.split("!")
        index = int(first)
        if not 0 < index <= own.methods:
            print(f"ERROR: Method {index} not found", file=sys.stderr)
            sys.exit(2)
        if rng.random() < own.faults and not misbehave(rng, own.only):
            continue
        known = dict(option.split("=", 1) for option in options)
        chosen = None
        if known.get("JitRLHook") == "1":
            text = known.get("JitRLHookCSEDecisions", "")
            chosen = [int(word) for word in text.split(",")] if text else []
        print(metrics(index, chosen, own.first))
        print("[streaming] Done. Status=0", flush=True)


if __name__ == "__main__":
    main()
