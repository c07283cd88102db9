// Copies modules in the orders of the original.
//
// Passes depend on the orders in which a module keeps its computations, its instructions and their users. XLA copies a
// module from its root, finds everything by hashing, and then sorts the copy into most of these orders; that takes as
// long as several passes. Here a copy is built in order, and only the users that need it are sorted.

#ifndef IRGYM_COPYING_H_
#define IRGYM_COPYING_H_

#include <algorithm>
#include <cstdint>
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

// Whether `CopiedComputation` copies all of a computation.
inline bool CanCopy(const HloComputation* computation) {
  if (computation->IsFusionComputation() || computation->IsAsyncComputation()) return false;
  int64_t last = -1;
  for (const HloInstruction* instruction : computation->instructions()) {
    if (instruction->local_id() <= last || !instruction->control_predecessors().empty()) return false;
    last = instruction->local_id();
  }
  return true;
}

// Whether `Copy` copies all of a module. The copy numbers computations and instructions by their places. Some of XLA's
// orders follow the numbers, so those of the original must ascend.
inline bool CanCopy(const HloModule& module) {
  if (module.has_schedule() || !module.CrossProgramPrefetches().empty()) return false;
  int64_t last = -1;
  for (const HloComputation* computation : module.computations()) {
    if (computation->unique_id() <= last || computation->IsDeadComputation() || !CanCopy(computation)) return false;
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
  int64_t last = -1;
  for (const HloInstruction* stored : computation->instructions()) last = stored->local_id();
  Copies copies(last + 1);
  std::vector<const HloInstruction*> waiting;
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

// Copies a computation whose callees are copied and added to the module already.
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

// Moves the computations of a copy to the places of the originals, and numbers them by place.
inline void SortComputations(const HloModule& module, HloModule& copy, const HloCloneContext& context) {
  absl::flat_hash_map<const HloComputation*, int64_t> places;
  for (const HloComputation* computation : module.computations()) {
    places.emplace(context.GetComputation(computation), places.size());
  }
  const auto first = copy.computations().begin().underlying_iterator().underlying_iterator();
  std::sort(first, first + copy.computation_count(), [&](const auto& a, const auto& b) {
    return places.at(a.get()) < places.at(b.get());
  });
  for (HloComputation* computation : copy.computations()) computation->ClearUniqueIdInternal();
  for (HloComputation* computation : copy.computations()) computation->SetUniqueId(places.at(computation));
}

// Returns a copy of a module, to which passes do the same; computations that nothing calls are left out.
inline std::unique_ptr<HloModule> Copy(const HloModule& module) {
  if (!CanCopy(module)) return module.Clone(/*suffix=*/"");
  auto copy = std::make_unique<HloModule>(module.name(), module.shared_config(),
                                          std::make_unique<xla::CompilationEnvironments>(module.comp_envs()));
  HloCloneContext context(copy.get(), /*suffix=*/"");
  // Passes visit computations in a topological order, which XLA extends as they are added: here the original's.
  for (const HloComputation* computation : module.MakeComputationPostOrder()) {
    if (computation->IsEntryComputation()) {
      copy->AddEntryComputation(CopiedComputation(computation, context));
    } else {
      copy->AddEmbeddedComputation(CopiedComputation(computation, context));
    }
  }
  SortComputations(module, *copy, context);
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
