// Copies modules in the order in which they are stored.
//
// XLA copies a module from its roots, finds everything by hashing, and then sorts computations, instructions and users
// into the order of the original. That takes as long as several passes. Passes depend on these orders, so a copy must
// keep them; here it is built in them, and only users are sorted, where they need it.

#ifndef IRGYM_COPYING_H_
#define IRGYM_COPYING_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "xla/hlo/ir/hlo_clone_context.h"
#include "xla/hlo/ir/hlo_computation.h"
#include "xla/hlo/ir/hlo_instruction.h"
#include "xla/hlo/ir/hlo_module.h"
#include "xla/hlo/ir/hlo_opcode.h"
#include "xla/service/compilation_environments.h"

namespace irgym {

using xla::HloCloneContext;
using xla::HloComputation;
using xla::HloInstruction;
using xla::HloModule;
using xla::HloOpcode;

// Copies of the instructions of one computation, by the local ids of the originals; null where there is none.
using Copies = std::vector<std::unique_ptr<HloInstruction>>;

inline HloInstruction* CopyOf(const HloInstruction* instruction, const Copies& copies) {
  return copies[instruction->local_id()].get();
}

// Greatest ids, compared with the number of instructions: those in a file may be too large for a vector.
constexpr int64_t kIdsPerInstruction = 16;

// Whether a computation has nothing that `CopiedComputation` leaves out.
inline bool IsPlainlyStored(const HloComputation* computation) {
  if (computation->IsFusionComputation() || computation->IsAsyncComputation()) return false;
  int64_t last = -1;
  for (const HloInstruction* instruction : computation->instructions()) {
    if (instruction->local_id() <= last || !instruction->control_predecessors().empty()) return false;
    last = instruction->local_id();
  }
  return last < kIdsPerInstruction * computation->instruction_count();
}

// Whether the module has nothing that `Copy` leaves out. Passes visit computations and instructions by id, so the
// copy, which gets new ids in the order of storage, needs ids that ascend.
inline bool IsPlainlyStored(const HloModule& module) {
  if (module.has_schedule() || !module.CrossProgramPrefetches().empty()) return false;
  int64_t last = -1;
  for (const HloComputation* computation : module.computations()) {
    const bool called = computation->IsEntryComputation() || !computation->IsDeadComputation();
    if (computation->unique_id() <= last || !called || !IsPlainlyStored(computation)) return false;
    last = computation->unique_id();
  }
  return true;
}

// Copies an instruction whose operands are copied already.
inline std::unique_ptr<HloInstruction> CopiedInstruction(const HloInstruction* instruction, const Copies& copies,
                                                         HloCloneContext& context) {
  std::vector<HloInstruction*> operands;
  operands.reserve(instruction->operand_count());
  for (const HloInstruction* operand : instruction->operands()) operands.push_back(CopyOf(operand, copies));
  // The context replaces called computations by their copies; it also hashes every instruction that it sees.
  HloCloneContext* callees = instruction->has_called_computations() ? &context : nullptr;
  auto copy = instruction->CloneWithNewOperands(instruction->shape(), operands, callees);
  if (instruction->opcode() == HloOpcode::kParameter && instruction->parameter_replicated_at_leaf_buffers()) {
    copy->set_parameter_replicated_at_leaf_buffers(*instruction->parameter_replicated_at_leaf_buffers());
  }
  return copy;
}

// Copies all instructions of a computation, operands first.
inline Copies CopiedInstructions(const HloComputation* computation, HloCloneContext& context) {
  Copies copies;
  std::vector<const HloInstruction*> waiting;
  for (const HloInstruction* stored : computation->instructions()) copies.resize(stored->local_id() + 1);
  for (const HloInstruction* stored : computation->instructions()) {
    waiting.push_back(stored);
    while (!waiting.empty()) {
      const HloInstruction* instruction = waiting.back();
      const size_t before = waiting.size();
      if (CopyOf(instruction, copies) == nullptr) {
        for (const HloInstruction* operand : instruction->operands()) {
          if (CopyOf(operand, copies) == nullptr) waiting.push_back(operand);
        }
        if (waiting.size() > before) continue;
        copies[instruction->local_id()] = CopiedInstruction(instruction, copies, context);
      }
      waiting.pop_back();
    }
  }
  return copies;
}

// Puts the users of copies in the order of those of the originals. They are in the order in which they were copied.
inline void SortUsers(const HloComputation* computation, const Copies& copies) {
  const auto copy_of = [&copies](const HloInstruction* instruction) { return CopyOf(instruction, copies); };
  const auto is_copy = [&](const HloInstruction* user, const HloInstruction* copy) { return copy_of(user) == copy; };
  for (const HloInstruction* instruction : computation->instructions()) {
    HloInstruction* copy = copy_of(instruction);
    if (absl::c_equal(instruction->users(), copy->users(), is_copy)) continue;
    copy->SortInstructionUsersAndControlLists(copy_of, *instruction);
  }
}

// Copies a computation whose callees are copied already. The copy belongs to no module yet.
inline std::unique_ptr<HloComputation> CopiedComputation(const HloComputation* computation, HloCloneContext& context) {
  Copies copies = CopiedInstructions(computation, context);
  SortUsers(computation, copies);
  HloInstruction* root = CopyOf(computation->root_instruction(), copies);
  HloComputation::Builder builder{std::string(computation->name())};
  for (auto& copy : copies) {
    if (copy != nullptr) builder.AddInstruction(std::move(copy));
  }
  std::unique_ptr<HloComputation> result = builder.Build(root);
  result->SetExecutionThread(computation->execution_thread());
  context.MapComputation(computation, result.get());
  return result;
}

// Returns a copy of a module, to which passes do the same; computations that nothing calls are left out.
inline std::unique_ptr<HloModule> Copy(const HloModule& module) {
  if (!IsPlainlyStored(module)) return module.Clone(/*suffix=*/"");
  auto copy = std::make_unique<HloModule>(module.name(), module.shared_config(),
                                          std::make_unique<xla::CompilationEnvironments>(module.comp_envs()));
  HloCloneContext context(copy.get(), /*suffix=*/"");
  absl::flat_hash_map<const HloComputation*, std::unique_ptr<HloComputation>> copies;
  for (const HloComputation* computation : module.MakeComputationPostOrder()) {
    copies[computation] = CopiedComputation(computation, context);
  }
  for (const HloComputation* computation : module.computations()) {
    if (computation->IsEntryComputation()) {
      copy->AddEntryComputation(std::move(copies[computation]));
    } else {
      copy->AddEmbeddedComputation(std::move(copies[computation]));
    }
  }
  copy->input_output_alias_config() = module.input_output_alias_config();
  copy->buffer_donor_config() = module.buffer_donor_config();
  copy->set_is_dynamic(module.is_dynamic());
  copy->set_frontend_attributes(module.frontend_attributes());
  *copy->metadata() = module.metadata();
  copy->metadata()->set_canonical_module_id(copy->unique_id());
  if (module.stack_frame_index().has_value()) copy->set_stack_frame_index(*module.stack_frame_index());
  return copy;
}

}  // namespace irgym

#endif  // IRGYM_COPYING_H_
