/* The program graph of a module, after ProGraML: instructions, arguments, globals and constants as nodes; control,
   data and calls as edges. A value is one with the instruction that computes it, so variables are no nodes. */

#include "llvm.h"
#include "table.h"

enum { ROOT = 80, FUNCTION, GLOBAL, ARGUMENT, INTEGER, CONSTANT };
enum { CONTROL, DATA, CALLS };
enum { VALUES = -1, BODIES = -2 }; /* scopes of the table; constants have the number of their function */
enum { OPERANDS_SHOWN = 16 };

struct node {
  int kind, type, function, block, value;
};

struct edge {
  int from, to, flow, position;
};

struct body {
  int entry, first_return, end_return; /* its first instruction; its part of the returns */
};

struct graph {
  int nodes, edges;
  struct node *node;
  struct edge *edge;
};

struct making {
  struct graph *graph;
  struct table places;
  struct body *bodies;
  int *returns;
  int room_nodes, room_edges, count_bodies, room_bodies, count_returns, room_returns;
};

/* Void, i1, i8, i16, i32, i64, other integers, float, double, other floats, pointer, vector, aggregate, others. */
static int type_class(LLVMTypeRef type) {
  static const signed char of[] = {0, 9, 7, 8, 9, 9, 9, 13, 6, 13, 12, 12, 10, 11, 13, 13, 13, 11, 9};
  int kind = LLVMGetTypeKind(type);
  if (kind == INTEGER_TYPE) switch (LLVMGetIntTypeWidth(type)) {
    case 1: return 1;
    case 8: return 2;
    case 16: return 3;
    case 32: return 4;
    case 64: return 5;
  }
  return kind >= 0 && kind < (int)sizeof of ? of[kind] : 13;
}

static int add_node(struct making *making, int kind, int type, int function, int block) {
  struct graph *graph = making->graph;
  if (graph->nodes == making->room_nodes) {
    making->room_nodes = 2 * making->room_nodes + 256;
    graph->node = memory(graph->node, making->room_nodes * sizeof *graph->node);
  }
  graph->node[graph->nodes] = (struct node){kind, type, function, block, 0};
  return graph->nodes++;
}

static void add_edge(struct making *making, int from, int to, int flow, int position) {
  struct graph *graph = making->graph;
  if (graph->edges == making->room_edges) {
    making->room_edges = 2 * making->room_edges + 1024;
    graph->edge = memory(graph->edge, making->room_edges * sizeof *graph->edge);
  }
  graph->edge[graph->edges++] = (struct edge){from, to, flow, position};
}

/* Returns the node of a value or a block; -1 if it has none yet. */
static int known(struct making *making, const void *value) {
  struct entry *found = find(&making->places, value, VALUES);
  return found->key ? found->value : -1;
}

static void add_return(struct making *making, int node) {
  if (making->count_returns == making->room_returns) {
    making->room_returns = 2 * making->room_returns + 64;
    making->returns = memory(making->returns, making->room_returns * sizeof *making->returns);
  }
  making->returns[making->count_returns++] = node;
}

/* Returns the place of a comparison's predicate among IR2Vec's, and one more; 0 for other instructions. */
static int predicate(LLVMValueRef one, int opcode) {
  if (opcode == FCMP) return 1 + LLVMGetFCmpPredicate(one);
  return opcode == ICMP ? 1 + 16 + LLVMGetICmpPredicate(one) - 32 : 0;
}

/* Adds the arguments and instructions of a function as nodes. */
static void add_body(struct making *making, LLVMValueRef function) {
  if (making->count_bodies == making->room_bodies) {
    making->room_bodies = 2 * making->room_bodies + 64;
    making->bodies = memory(making->bodies, making->room_bodies * sizeof *making->bodies);
  }
  int number = making->count_bodies++, place = 0;
  *number_of(&making->places, function, BODIES) = number;
  for (LLVMValueRef one = LLVMGetFirstParam(function); one; one = LLVMGetNextParam(one))
    *number_of(&making->places, one, VALUES) = add_node(making, ARGUMENT, type_class(LLVMTypeOf(one)), number, -1);
  struct body body = {making->graph->nodes, making->count_returns};
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
    *number_of(&making->places, block, VALUES) = making->graph->nodes;
    for (LLVMValueRef one = LLVMGetFirstInstruction(block); one; one = LLVMGetNextInstruction(one)) {
      int opcode = LLVMGetInstructionOpcode(one);
      int node = add_node(making, opcode, type_class(LLVMTypeOf(one)), number, place);
      *number_of(&making->places, one, VALUES) = node;
      making->graph->node[node].value = predicate(one, opcode);
      if (opcode == RET) add_return(making, node);
    }
    place++;
  }
  body.end_return = making->count_returns;
  making->bodies[number] = body;
}

/* Returns the length in bits of an integer, negative if the integer is; 65 if its type is longer than 64 bits. */
static int bits(LLVMValueRef constant) {
  if (LLVMIsNull(constant)) return 0;
  if (LLVMGetIntTypeWidth(LLVMTypeOf(constant)) > 64) return 65;
  if (LLVMGetIntTypeWidth(LLVMTypeOf(constant)) == 1) return 1;
  long long value = LLVMConstIntGetSExtValue(constant);
  int length = 64 - __builtin_clzll(value < 0 ? -(unsigned long long)value : (unsigned long long)value);
  return value < 0 ? -length : length;
}

static int global_node(struct making *making, LLVMValueRef value) {
  int *place = number_of(&making->places, value, VALUES);
  if (*place >= 0) return *place;
  int kind = LLVMIsAFunction(value) ? FUNCTION : GLOBAL;
  int node = *place = add_node(making, kind, type_class(LLVMGlobalGetValueType(value)), -1, -1);
  struct entry *body = find(&making->places, value, BODIES);
  if (body->key) add_edge(making, node, making->bodies[body->value].entry, CALLS, 0);
  return node;
}

/* Returns the node of a constant in a function, which the globals in it lead to. */
static int constant_node(struct making *making, LLVMValueRef value, int function) {
  LLVMTypeRef type = LLVMTypeOf(value);
  int *place = number_of(&making->places, value, function);
  if (*place >= 0) return *place;
  int integer = LLVMGetTypeKind(type) == INTEGER_TYPE && LLVMIsAConstantInt(value);
  int node = *place = add_node(making, integer ? INTEGER : CONSTANT, type_class(type), function, -1);
  if (integer) {
    making->graph->node[node].value = bits(value);
    return node;
  }
  int operands = LLVMGetNumOperands(value);
  for (int position = 0; position < operands && position < OPERANDS_SHOWN; position++) {
    LLVMValueRef operand = LLVMGetOperand(value, position);
    if (operand && LLVMIsAGlobalValue(operand)) add_edge(making, global_node(making, operand), node, DATA, position);
  }
  return node;
}

static void add_operand(struct making *making, LLVMValueRef value, int user, int position, int function) {
  int from = known(making, value);
  if (from >= 0) {
    if (LLVMGetTypeKind(LLVMTypeOf(value)) != LABEL_TYPE) add_edge(making, from, user, DATA, position);
    return;
  }
  if (!LLVMIsConstant(value)) return; /* metadata and inline assembly */
  from = LLVMIsAGlobalValue(value) ? global_node(making, value) : constant_node(making, value, function);
  add_edge(making, from, user, DATA, position);
}

/* Adds the edges between a call and the function, to its entry and from its returns; or to its declaration. */
static void add_call(struct making *making, LLVMValueRef callee, int node) {
  struct entry *found = find(&making->places, callee, BODIES);
  if (!found->key) {
    int declared = global_node(making, callee);
    add_edge(making, node, declared, CALLS, 0);
    add_edge(making, declared, node, CALLS, 0);
    return;
  }
  struct body body = making->bodies[found->value];
  add_edge(making, node, body.entry, CALLS, 0);
  for (int place = body.first_return; place < body.end_return; place++)
    add_edge(making, making->returns[place], node, CALLS, 0);
}

static void add_switch(struct making *making, LLVMValueRef one, int node, int function) {
  add_operand(making, LLVMGetOperand(one, 0), node, 0, function);
  unsigned successors = LLVMGetNumSuccessors(one);
  for (unsigned place = 1; place < successors; place++) {
    /* Until LLVM 21 the operands are condition, default, value, block, value, block, and so on. */
    LLVMValueRef value = LLVMGetSwitchCaseValue ? LLVMGetSwitchCaseValue(one, place) : LLVMGetOperand(one, 2 * place);
    add_operand(making, value, node, place, function);
  }
}

static void add_data(struct making *making, LLVMValueRef one, int opcode, int node, int function) {
  if (opcode == SWITCH) {
    add_switch(making, one, node, function);
    return;
  }
  int operands = LLVMGetNumOperands(one);
  if (opcode == CALL || opcode == INVOKE || opcode == CALLBR) {
    LLVMValueRef callee = LLVMGetCalledValue(one);
    if (LLVMIsAFunction(callee)) {
      add_call(making, callee, node);
      operands--; /* it is the last one */
    }
  }
  for (int place = 0; place < operands; place++) add_operand(making, LLVMGetOperand(one, place), node, place, function);
}

static void add_successors(struct making *making, LLVMValueRef terminator, int node) {
  int successors = LLVMGetNumSuccessors(terminator);
  for (int place = 0; place < successors; place++)
    add_edge(making, node, known(making, LLVMGetSuccessor(terminator, place)), CONTROL, place);
}

static void add_edges(struct making *making, LLVMValueRef function, int number) {
  int node = making->bodies[number].entry;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
    LLVMValueRef next, end = LLVMGetBasicBlockTerminator(block);
    for (LLVMValueRef one = LLVMGetFirstInstruction(block); one; one = next) {
      next = LLVMGetNextInstruction(one);
      if (next) add_edge(making, node, node + 1, CONTROL, 0);
      else if (end) add_successors(making, end, node);
      add_data(making, one, LLVMGetInstructionOpcode(one), node, number);
      node++;
    }
  }
}

/* Adds the edges between what is outside the module and the functions that it can call. */
static void add_outside(struct making *making, LLVMValueRef function, int number) {
  int linkage = LLVMGetLinkage(function);
  if (linkage == INTERNAL_LINKAGE || linkage == PRIVATE_LINKAGE) return;
  struct body body = making->bodies[number];
  add_edge(making, 0, body.entry, CALLS, 0);
  for (int place = body.first_return; place < body.end_return; place++)
    add_edge(making, making->returns[place], 0, CALLS, 0);
}

/* Makes the graph of a module; `irgym_drop_graph` frees its parts. */
void irgym_graph(LLVMModuleRef module, struct graph *graph) {
  struct making making = {graph};
  *graph = (struct graph){0};
  grow(&making.places);
  add_node(&making, ROOT, 13, -1, -1);
  for (LLVMValueRef function = LLVMGetFirstFunction(module); function; function = LLVMGetNextFunction(function))
    if (LLVMGetFirstBasicBlock(function)) add_body(&making, function);
  int number = 0;
  for (LLVMValueRef function = LLVMGetFirstFunction(module); function; function = LLVMGetNextFunction(function)) {
    if (!LLVMGetFirstBasicBlock(function)) continue;
    add_outside(&making, function, number);
    add_edges(&making, function, number++);
  }
  free(making.places.entries);
  free(making.bodies);
  free(making.returns);
}

void irgym_drop_graph(struct graph *graph) {
  free(graph->node);
  free(graph->edge);
}
