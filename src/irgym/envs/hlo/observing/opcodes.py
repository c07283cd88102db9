"""XLA's opcodes, in the order in which the engine counts them."""

import numpy as np

_NAMES = (
    "abs acos acosh add add-dependency after-all all-gather all-gather-done all-gather-start all-reduce "
    "all-reduce-done all-reduce-start all-to-all and asin asinh async-done async-start async-update atan2 "
    "atanh batch-norm-grad batch-norm-inference batch-norm-training bitcast bitcast-convert broadcast "
    "call cbrt ceil cholesky clamp count-leading-zeros collective-broadcast collective-permute "
    "collective-permute-done collective-permute-start compare complex concatenate conditional constant "
    "convert convolution copy copy-done copy-start cosine cosh custom-call divide domain dot "
    "dynamic-reshape dynamic-slice dynamic-update-slice erf exponential exponential-minus-one fft floor "
    "fusion gather get-dimension-size get-tuple-element imag infeed iota is-finite log log-plus-one "
    "logistic map maximum minimum multiply negate not opt-barrier or outfeed pad parameter partition-id "
    "popcnt power ragged-all-to-all ragged-dot real recv recv-done reduce reduce-precision reduce-scatter "
    "reduce-window remainder replica-id reshape reverse rng rng-bit-generator rng-get-and-update-state "
    "round-nearest-afz round-nearest-even rsqrt scaled-dot scan scatter select select-and-scatter send "
    "send-done set-dimension-size shift-left shift-right-arithmetic shift-right-logical sign sine sinh "
    "slice sort sqrt stochastic-convert subtract tan tanh topk transpose triangular-solve tuple while xor"
)

OPCODES = tuple(_NAMES.split())
"""All opcodes of XLA as of TensorFlow 2.21. Loading the engine checks them."""

SINGLE_DEVICE = tuple(
    opcode
    for opcode in OPCODES
    if not opcode.startswith(("all-", "async-", "collective-", "ragged-all-", "recv", "send"))
    and not opcode.endswith(("-start", "-done"))
    and opcode
    not in {
        "add-dependency",
        "after-all",
        "domain",
        "infeed",
        "outfeed",
        "partition-id",
        "replica-id",
        "reduce-scatter",
    }
)
"""Opcodes of single-device modules; features count only these."""

COUNTED = np.array([OPCODES.index(opcode) for opcode in SINGLE_DEVICE], dtype=np.intp)
"""Indices of `SINGLE_DEVICE` in `OPCODES`."""
