"""Small HLO modules as text."""

ADD_ZERO = """
HloModule add_zero

ENTRY main {
  x = f32[4]{0} parameter(0)
  zero = f32[] constant(0)
  zeros = f32[4]{0} broadcast(zero), dimensions={}
  unused = f32[4]{0} multiply(x, x)
  sum = f32[4]{0} add(x, zeros)
  ROOT twice = f32[4]{0} add(sum, sum)
}
"""

CALLS = """
HloModule calls

square {
  a = f32[8]{0} parameter(0)
  ROOT b = f32[8]{0} multiply(a, a)
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  y = f32[8]{0} call(x), to_apply=square
  z = f32[8]{0} call(y), to_apply=square
  t = (f32[8]{0}, f32[8]{0}) tuple(y, z)
  u = f32[8]{0} get-tuple-element(t), index=0
  v = f32[8]{0} get-tuple-element(t), index=1
  r = f32[2,4]{1,0} reshape(u)
  s = f32[2,4]{1,0} reshape(v)
  p = f32[2,4]{1,0} add(r, s)
  q = f32[2,4]{1,0} exponential(p)
  ROOT w = f32[8]{0} reshape(q)
}
"""

LOOP = """
HloModule loop

body {
  carried = (s32[], f32[3]{0}, f32[3]{0}) parameter(0)
  i = s32[] get-tuple-element(carried), index=0
  x = f32[3]{0} get-tuple-element(carried), index=1
  c = f32[3]{0} get-tuple-element(carried), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  squared = f32[3]{0} multiply(c, c)
  y = f32[3]{0} add(x, squared)
  ROOT out = (s32[], f32[3]{0}, f32[3]{0}) tuple(next, y, c)
}

condition {
  carried = (s32[], f32[3]{0}, f32[3]{0}) parameter(0)
  i = s32[] get-tuple-element(carried), index=0
  n = s32[] constant(5)
  ROOT go = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[3]{0} parameter(0)
  c = f32[3]{0} parameter(1)
  zero = s32[] constant(0)
  start = (s32[], f32[3]{0}, f32[3]{0}) tuple(zero, x, c)
  loop = (s32[], f32[3]{0}, f32[3]{0}) while(start), condition=condition, body=body
  ROOT y = f32[3]{0} get-tuple-element(loop), index=1
}
"""

BATCHED_GATHER = """
HloModule batched_gather

ENTRY main {
  table = f32[3,5,7]{2,1,0} parameter(0)
  rows = s32[3,2,1]{2,1,0} parameter(1)
  ROOT taken = f32[3,2,7]{2,1,0} gather(table, rows), offset_dims={2}, collapsed_slice_dims={1},
    start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2,
    slice_sizes={1,1,7}
}
"""

ALL = {"add_zero": ADD_ZERO, "calls": CALLS, "loop": LOOP, "batched_gather": BATCHED_GATHER}
