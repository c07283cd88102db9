/* Counts what InstCount, Autophase and IR2Vec are made of, in one walk through a module. */

#include "llvm.h"
#include "table.h"

#include <string.h>

enum { OPCODES = 80, TYPES = 12, OPERANDS = 4, PREDICATES = 26 };

/* What Autophase counts beside opcodes, in the order of `SHAPE` in observing/counts.py. */
enum shape {
  PHI_ARGS_MANY, PHI_ARGS_FEW, ONE_PRED, ONE_PRED_ONE_SUC, ONE_PRED_TWO_SUC, ONE_SUC, TWO_PRED, TWO_PRED_ONE_SUC,
  TWO_EACH, TWO_SUC, MORE_PRED, FEW_PHI, MANY_PHI, NO_PHI, BEGIN_PHI, RETURN_INT, CRITICAL, EDGES, CONST_32,
  CONST_64, ZEROES, ONES, UNCONDITIONAL, BINARY_CONST, BLOCK_MID, BLOCK_LOW, PHI_ARGS, SHAPES
};

/* Names and lengths as in `LAYOUT` of observing/counts.py. */
struct counts {
  int totals[3]; /* instructions, blocks, functions */
  int opcodes[OPCODES];
  int shape[SHAPES];
  int reachable[OPCODES]; /* what follows is IR2Vec's: of blocks that the entry leads to */
  int types[TYPES];
  int operands[OPERANDS];
  int predicates[PREDICATES];
};

/* The blocks of a function by their place, and the edges that leave block i: first[i] to first[i + 1]. */
struct flow {
  struct table places;
  int *first, *leads, *entering, *stack;
  char *reached;
  int blocks, edges, room_blocks, room_edges;
};

/* IR2Vec's order: float, void, label, metadata, vector, token, integer, function, pointer, struct, array, unknown. */
static int canonical(int kind) {
  static const signed char of[] = {1, 0, 0, 0, 0, 0, 0, 2, 6, 7, 9, 10, 8, 4, 3, 11, 5, 4, 0, 4};
  return kind >= 0 && kind < (int)sizeof of ? of[kind] : 11;
}

static int is_one(LLVMValueRef constant, LLVMTypeRef type, unsigned width) {
  return width <= 64 ? LLVMConstIntGetZExtValue(constant) == 1 : constant == LLVMConstInt(type, 1, 0);
}

static void count_integer(struct counts *counts, LLVMValueRef constant, LLVMTypeRef type) {
  unsigned width = LLVMGetIntTypeWidth(type);
  counts->shape[CONST_32] += width == 32;
  counts->shape[CONST_64] += width == 64;
  if (LLVMIsNull(constant)) counts->shape[ZEROES]++;
  else counts->shape[ONES] += is_one(constant, type, width);
}

/* Returns IR2Vec's kind of an operand: function, pointer, constant, variable. */
static int count_operand(struct counts *counts, LLVMValueRef value) {
  LLVMTypeRef type = LLVMTypeOf(value);
  int kind = LLVMGetTypeKind(type);
  if (kind == POINTER_TYPE) return LLVMIsAFunction(value) ? 0 : 1;
  if (kind == LABEL_TYPE || !LLVMIsConstant(value)) return 3;
  if (kind == INTEGER_TYPE && LLVMIsAConstantInt(value)) count_integer(counts, value, type);
  return 2;
}

static void count_cases(struct counts *counts, LLVMValueRef instruction) {
  unsigned successors = LLVMGetNumSuccessors(instruction);
  for (unsigned place = 1; place < successors; place++) {
    LLVMValueRef value = LLVMGetSwitchCaseValue(instruction, place);
    count_integer(counts, value, LLVMTypeOf(value));
  }
}

static void count_call(struct counts *counts, LLVMValueRef call, int type) {
  LLVMValueRef callee = LLVMGetCalledValue(call);
  counts->shape[RETURN_INT] += type == INTEGER_TYPE && LLVMIsAFunction(callee) &&
                               LLVMGlobalGetValueType(callee) == LLVMGetCalledFunctionType(call);
}

static void count_instruction(struct counts *counts, LLVMValueRef one, int opcode, int reached) {
  int kinds[OPERANDS] = {0}, operands = LLVMGetNumOperands(one), type = LLVMGetTypeKind(LLVMTypeOf(one));
  counts->totals[0]++;
  if (opcode >= 0 && opcode < OPCODES) counts->opcodes[opcode]++;
  for (int place = 0; place < operands; place++) kinds[count_operand(counts, LLVMGetOperand(one, place))]++;
  if (opcode >= ADD && opcode <= XOR) counts->shape[BINARY_CONST] += kinds[2] > 0;
  if (opcode == CALL) count_call(counts, one, type);
  if (opcode == SWITCH && LLVMGetSwitchCaseValue) count_cases(counts, one);
  if (!reached) return;
  if (opcode >= 0 && opcode < OPCODES) counts->reachable[opcode]++;
  counts->types[canonical(type)]++;
  for (int kind = 0; kind < OPERANDS; kind++) counts->operands[kind] += kinds[kind];
  if (opcode == ICMP) counts->predicates[16 + LLVMGetICmpPredicate(one) - 32]++;
  if (opcode == FCMP) counts->predicates[LLVMGetFCmpPredicate(one)]++;
}

static void count_degrees(int *shape, int entering, int leaving) {
  shape[ONE_PRED] += entering == 1;
  shape[TWO_PRED] += entering == 2;
  shape[MORE_PRED] += entering > 2;
  shape[ONE_SUC] += leaving == 1;
  shape[TWO_SUC] += leaving == 2;
  shape[ONE_PRED_ONE_SUC] += entering == 1 && leaving == 1;
  shape[TWO_PRED_ONE_SUC] += entering == 2 && leaving == 1;
  shape[ONE_PRED_TWO_SUC] += entering == 1 && leaving == 2;
  shape[TWO_EACH] += entering == 2 && leaving == 2;
}

static void count_block(struct counts *counts, LLVMBasicBlockRef block, int leaving, int reached) {
  int *shape = counts->shape, size = 0, phis = 0, arguments = 0;
  for (LLVMValueRef one = LLVMGetFirstInstruction(block); one; one = LLVMGetNextInstruction(one)) {
    int opcode = LLVMGetInstructionOpcode(one);
    count_instruction(counts, one, opcode, reached);
    if (opcode == PHI) {
      shape[BEGIN_PHI] += size == 0;
      phis++;
      arguments += LLVMCountIncoming(one);
    }
    shape[UNCONDITIONAL] += opcode == UNCOND_BR || (opcode == BR && leaving == 1);
    size++;
  }
  counts->totals[1]++;
  shape[PHI_ARGS] += arguments;
  shape[PHI_ARGS_MANY] += arguments > 5;
  shape[PHI_ARGS_FEW] += arguments >= 1 && arguments <= 5;
  shape[NO_PHI] += phis == 0;
  shape[FEW_PHI] += phis >= 1 && phis <= 3;
  shape[MANY_PHI] += phis > 3;
  shape[BLOCK_LOW] += size < 15;
  shape[BLOCK_MID] += size >= 15 && size <= 500;
}

static void index_blocks(struct flow *flow, LLVMValueRef function) {
  flow->blocks = 0;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
    *number_of(&flow->places, block, 0) = flow->blocks++;
  if (flow->blocks + 1 > flow->room_blocks) {
    flow->room_blocks = 2 * flow->blocks + 1;
    flow->first = memory(flow->first, flow->room_blocks * sizeof *flow->first);
    flow->entering = memory(flow->entering, flow->room_blocks * sizeof *flow->entering);
    flow->stack = memory(flow->stack, flow->room_blocks * sizeof *flow->stack);
    flow->reached = memory(flow->reached, flow->room_blocks);
  }
  memset(flow->entering, 0, flow->blocks * sizeof *flow->entering);
  memset(flow->reached, 0, flow->blocks);
}

static void index_edges(struct flow *flow, LLVMValueRef function) {
  int place = flow->edges = 0;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    int leaving = end ? LLVMGetNumSuccessors(end) : 0;
    if (flow->edges + leaving > flow->room_edges) {
      flow->room_edges = 2 * (flow->edges + leaving);
      flow->leads = memory(flow->leads, flow->room_edges * sizeof *flow->leads);
    }
    flow->first[place++] = flow->edges;
    for (int successor = 0; successor < leaving; successor++) {
      int to = *number_of(&flow->places, LLVMGetSuccessor(end, successor), 0);
      flow->leads[flow->edges++] = to;
      flow->entering[to]++;
    }
  }
  flow->first[place] = flow->edges;
}

static void reach(struct flow *flow) {
  int height = 1;
  flow->stack[0] = 0;
  flow->reached[0] = 1;
  while (height) {
    int from = flow->stack[--height];
    for (int edge = flow->first[from]; edge < flow->first[from + 1]; edge++) {
      int to = flow->leads[edge];
      if (flow->reached[to]) continue;
      flow->reached[to] = 1;
      flow->stack[height++] = to;
    }
  }
}

static void count_function(struct counts *counts, struct flow *flow, LLVMValueRef function) {
  index_blocks(flow, function);
  index_edges(flow, function);
  reach(flow);
  counts->shape[EDGES] += flow->edges;
  int place = 0;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
    int leaving = flow->first[place + 1] - flow->first[place];
    if (leaving > 1)
      for (int edge = flow->first[place]; edge < flow->first[place + 1]; edge++)
        counts->shape[CRITICAL] += flow->entering[flow->leads[edge]] > 1;
    count_degrees(counts->shape, flow->entering[place], leaving);
    count_block(counts, block, leaving, flow->reached[place]);
    place++;
  }
}

/* Fills the counts of a module; returns their number, and fills nothing if there is no room for so many. */
int irgym_counts(LLVMModuleRef module, int *into, int room) {
  if (room * sizeof(int) < sizeof(struct counts)) return sizeof(struct counts) / sizeof(int);
  struct counts *counts = (struct counts *)into;
  struct flow flow = {0};
  memset(counts, 0, sizeof *counts);
  for (LLVMValueRef function = LLVMGetFirstFunction(module); function; function = LLVMGetNextFunction(function)) {
    counts->totals[2]++;
    if (LLVMGetFirstBasicBlock(function)) count_function(counts, &flow, function);
  }
  free(flow.places.entries);
  free(flow.first);
  free(flow.leads);
  free(flow.entering);
  free(flow.stack);
  free(flow.reached);
  return sizeof(struct counts) / sizeof(int);
}
