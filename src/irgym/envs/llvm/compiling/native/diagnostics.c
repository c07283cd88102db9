/* Keeps what LLVM complains about; its own handler prints it, and ends the process at an error. */

#include "llvm.h"

#include <string.h>

static char complaint[400];

static void handle(LLVMDiagnosticInfoRef diagnostic, void *data) {
  if (LLVMGetDiagInfoSeverity(diagnostic) != 0) return;
  char *text = LLVMGetDiagInfoDescription(diagnostic);
  strncpy(complaint, text, sizeof complaint - 1);
  LLVMDisposeMessage(text);
}

void irgym_handle(LLVMContextRef context) { LLVMContextSetDiagnosticHandler(context, handle, 0); }

/* Returns the last error since the last call; empty if there was none. */
const char *irgym_complaint(void) {
  static char last[sizeof complaint];
  memcpy(last, complaint, sizeof complaint);
  complaint[0] = 0;
  return last;
}
