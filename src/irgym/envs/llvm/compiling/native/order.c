/* Puts the uses of values into an order that follows from the text of the module alone.

   Passes walk through the uses of a value in the order in which they were made, and so do different things to
   equal modules. A use that is set again moves to the front of its value's list. */

#include "llvm.h"

/* Returns the number of instructions. */
int irgym_order(LLVMModuleRef module) {
  int count = 0;
  for (LLVMValueRef function = LLVMGetFirstFunction(module); function; function = LLVMGetNextFunction(function))
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
      for (LLVMValueRef one = LLVMGetFirstInstruction(block); one; one = LLVMGetNextInstruction(one)) {
        int operands = LLVMGetNumOperands(one);
        for (int place = 0; place < operands; place++) LLVMSetOperand(one, place, LLVMGetOperand(one, place));
        count++;
      }
  return count;
}
