// Keeps XLA's passes from merging what is not the same.
//
// XLA holds two instructions equal without looking at all that their text shows: types of comparisons, frontend
// attributes, one sharding where the other has none, layouts, signs of zeros in constants. Two sorts whose
// comparators order NaN differently become one. Here two instructions are equal only if their texts are, names and
// metadata left out. While a pass runs, instructions whose texts differ carry different backend configurations, which
// XLA does compare.

#ifndef IRGYM_EQUALITY_H_
#define IRGYM_EQUALITY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "xla/comparison_util.h"
#include "xla/hlo/ir/hlo_casting_utils.h"
#include "xla/hlo/ir/hlo_instruction.h"
#include "xla/hlo/ir/hlo_instructions.h"
#include "xla/hlo/ir/hlo_module.h"
#include "xla/hlo/ir/hlo_opcode.h"
#include "xla/hlo/pass/hlo_pass_interface.h"
#include "xla/hlo/transforms/simplifiers/slice_sinker.h"
#include "xla/primitive_util.h"
#include "xla/service/hlo_cse.h"
#include "xla/shape_util.h"

namespace irgym {

using xla::HloComputation;
using xla::HloInstruction;
using xla::HloModule;
using xla::HloOpcode;
using xla::Shape;

// Whether sizes are fixed, and layouts those that XLA assigns by default.
inline bool IsPlain(const Shape& shape) {
  if (shape.IsTuple()) return absl::c_all_of(shape.tuple_shapes(), IsPlain);
  if (!shape.IsArray()) return true;
  if (absl::c_linear_search(shape.dynamic_dimensions(), true)) return false;
  if (!shape.has_layout()) return true;
  const xla::Layout& layout = shape.layout();
  return absl::c_is_sorted(layout.minor_to_major(), std::greater<>()) && layout.tiles().empty() &&
         layout.memory_space() == 0 && layout.element_size_in_bits() == 0 && layout.split_configs().empty() &&
         layout.tail_padding_alignment_in_elements() == 1 && !layout.has_physical_shape();
}

// A literal's bytes; none of a tuple's.
inline absl::string_view BytesOf(const HloInstruction* constant) {
  const xla::Literal& literal = constant->literal();
  if (!literal.shape().IsArray()) return {};
  return {static_cast<const char*>(literal.untyped_data()), static_cast<size_t>(literal.size_bytes())};
}

// XLA's equality of literals takes -0 for 0. Of a negative zero only the sign bit is set, in its last byte.
inline bool HoldsNegativeZero(const HloInstruction* constant) {
  if (!constant->shape().IsArray()) return false;
  const xla::PrimitiveType type = constant->shape().element_type();
  const bool complex = xla::primitive_util::IsComplexType(type);
  if (!complex && !xla::primitive_util::IsFloatingPointType(type)) return false;
  const int bits = xla::primitive_util::BitWidth(type) / (complex ? 2 : 1);
  const size_t rest = (bits - 1) / 8;  // the bytes before the last
  const char sign = static_cast<char>(1 << (bits - 1) % 8);
  const absl::string_view bytes = BytesOf(constant);
  for (size_t place = bytes.find(sign); place != absl::string_view::npos; place = bytes.find(sign, place + 1)) {
    if (place % (rest + 1) == rest && absl::c_all_of(bytes.substr(place - rest, rest), [](char b) { return b == 0; })) {
      return true;
    }
  }
  return false;
}

// XLA's equality ignores the type of a comparison. In a total order, -0 is less than 0, and NaNs are ordered.
inline bool HasUnusualType(const HloInstruction* i) {
  const auto* compare = xla::Cast<xla::HloCompareInstruction>(i);
  return compare->type() != xla::Comparison::DefaultComparisonType(i->operand(0)->shape().element_type());
}

inline bool HasSortedOrUniqueIndices(const HloInstruction* i) {
  if (const auto* gather = xla::DynCast<xla::HloGatherInstruction>(i)) return gather->indices_are_sorted();
  const auto* scatter = xla::Cast<xla::HloScatterInstruction>(i);
  return scatter->indices_are_sorted() || scatter->unique_indices();
}

// Whether an operation has no attributes but those that XLA's equality looks at.
inline bool IsCompared(const HloInstruction* i) {
  switch (i->opcode()) {
    case HloOpcode::kConstant:
      if (HoldsNegativeZero(i)) return false;
      break;
    case HloOpcode::kCompare:
      if (HasUnusualType(i)) return false;
      break;
    case HloOpcode::kGather:
    case HloOpcode::kScatter:
      if (HasSortedOrUniqueIndices(i)) return false;
      break;
    case HloOpcode::kAbs:
    case HloOpcode::kAdd:
    case HloOpcode::kAnd:
    case HloOpcode::kAtan2:
    case HloOpcode::kBitcastConvert:
    case HloOpcode::kBroadcast:
    case HloOpcode::kCall:
    case HloOpcode::kCbrt:
    case HloOpcode::kCeil:
    case HloOpcode::kClamp:
    case HloOpcode::kClz:
    case HloOpcode::kComplex:
    case HloOpcode::kConcatenate:
    case HloOpcode::kConditional:
    case HloOpcode::kConvert:
    case HloOpcode::kCos:
    case HloOpcode::kDivide:
    case HloOpcode::kDot:
    case HloOpcode::kDynamicSlice:
    case HloOpcode::kDynamicUpdateSlice:
    case HloOpcode::kErf:
    case HloOpcode::kExp:
    case HloOpcode::kExpm1:
    case HloOpcode::kFloor:
    case HloOpcode::kGetTupleElement:
    case HloOpcode::kImag:
    case HloOpcode::kIota:
    case HloOpcode::kIsFinite:
    case HloOpcode::kLog:
    case HloOpcode::kLog1p:
    case HloOpcode::kLogistic:
    case HloOpcode::kMaximum:
    case HloOpcode::kMinimum:
    case HloOpcode::kMultiply:
    case HloOpcode::kNegate:
    case HloOpcode::kNot:
    case HloOpcode::kOr:
    case HloOpcode::kPad:
    case HloOpcode::kParameter:
    case HloOpcode::kPopulationCount:
    case HloOpcode::kPower:
    case HloOpcode::kReal:
    case HloOpcode::kReduce:
    case HloOpcode::kRemainder:
    case HloOpcode::kReshape:
    case HloOpcode::kReverse:
    case HloOpcode::kRoundNearestAfz:
    case HloOpcode::kRoundNearestEven:
    case HloOpcode::kRsqrt:
    case HloOpcode::kSelect:
    case HloOpcode::kShiftLeft:
    case HloOpcode::kShiftRightArithmetic:
    case HloOpcode::kShiftRightLogical:
    case HloOpcode::kSign:
    case HloOpcode::kSin:
    case HloOpcode::kSlice:
    case HloOpcode::kSqrt:
    case HloOpcode::kSubtract:
    case HloOpcode::kTan:
    case HloOpcode::kTanh:
    case HloOpcode::kTranspose:
    case HloOpcode::kTuple:
    case HloOpcode::kWhile:
    case HloOpcode::kXor:
      break;
    default:
      return false;
  }
  return !i->has_sharding() && !i->has_frontend_attributes() && !i->has_result_accuracy() &&
         !i->HasControlDependencies() && IsPlain(i->shape());
}

// The text of an instruction without names, operands, metadata and what it calls, which XLA compares by itself.
inline std::string TextOf(const HloInstruction* i) {
  static const auto* const options =
      new xla::HloPrintOptions(xla::HloPrintOptions()
                                   .set_print_metadata(false)
                                   .set_print_original_value(false)
                                   .set_print_control_dependencies(false)
                                   .set_print_subcomputation_mode(
                                       xla::HloPrintOptions::PrintSubcomputationMode::kOff));
  std::string text = absl::StrCat(i->shape().ToString(/*print_layout=*/true), " ",
                                  absl::StrJoin(i->ExtraAttributesToString(*options), ", "));
  if (i->opcode() == HloOpcode::kConstant && HoldsNegativeZero(i)) absl::StrAppend(&text, " ", BytesOf(i));
  if (i->is_composite()) absl::StrAppend(&text, " composite");
  // Dependencies are between instructions, so no two are alike.
  if (i->HasControlDependencies()) absl::StrAppend(&text, " ordered ", i->name());
  return text;
}

constexpr absl::string_view kMark = "irgym: text ";
constexpr absl::string_view kBarrier = "irgym: barrier ";

// Marks instructions of a module by their texts as long as it lives.
class Marks {
 public:
  explicit Marks(HloModule* module) : module_(module), by_opcode_(xla::HloOpcodeCount()) {
    for (HloComputation* computation : module->computations()) {
      for (HloInstruction* instruction : computation->instructions()) {
        Texts& texts = by_opcode_[static_cast<int>(instruction->opcode())];
        if (IsCompared(instruction)) {
          texts.compared = true;
        } else {
          const auto [place, inserted] = texts.numbers.emplace(TextOf(instruction), texts.numbers.size());
          texts.found.emplace_back(instruction, place->second);
        }
      }
    }
    for (const Texts& texts : by_opcode_) {
      if (!texts.differ()) continue;
      any_ = true;
      for (auto [instruction, number] : texts.found) {
        instruction->set_raw_backend_config_string(
            absl::StrCat(kMark, number, ":", instruction->raw_backend_config_string()));
      }
    }
  }

  ~Marks() {
    if (!any_) return;
    for (HloComputation* computation : module_->computations()) {
      for (HloInstruction* instruction : computation->instructions()) {
        const absl::string_view config = instruction->raw_backend_config_string();
        if (absl::StartsWith(config, kMark)) {
          instruction->set_raw_backend_config_string(std::string(config.substr(config.find(':', kMark.size()) + 1)));
        }
      }
    }
  }

  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  // The marked instructions but for those of the first text of each operation and shape, before the pass runs.
  std::vector<HloInstruction*> others() const {
    std::vector<HloInstruction*> others;
    for (const Texts& texts : by_opcode_) {
      if (!texts.differ()) continue;
      std::map<std::string, int> first;
      for (auto [instruction, number] : texts.found) {
        const auto place = first.emplace(xla::ShapeUtil::HumanString(instruction->shape()), number).first;
        if (texts.compared || place->second != number) others.push_back(instruction);
      }
    }
    return others;
  }

 private:
  // The texts of the instructions of an opcode, by number, and whether there are some that XLA compares fully.
  struct Texts {
    std::map<std::string, int> numbers;
    std::vector<std::pair<HloInstruction*, int>> found;
    bool compared = false;

    bool differ() const { return numbers.size() + compared >= 2; }
  };

  HloModule* const module_;
  std::vector<Texts> by_opcode_;
  bool any_ = false;
};

// A pass that compares instructions or computations, which see the differences that it would not.
template <typename Pass>
class Comparing : public Pass {
 public:
  using Pass::Pass;

 protected:
  absl::StatusOr<bool> RunImpl(
      HloModule* module, const absl::flat_hash_set<absl::string_view>& execution_threads) override {
    const Marks marks(module);
    return Pass::RunImpl(module, execution_threads);
  }
};

// Keeps one of constants of one text: shape, layout, attributes and every bit.
inline absl::StatusOr<bool> CombineConstants(HloComputation* computation) {
  absl::flat_hash_map<size_t, std::vector<HloInstruction*>> kept;
  bool changed = false;
  for (HloInstruction* constant : computation->MakeInstructionPostOrder()) {
    if (constant->opcode() != HloOpcode::kConstant || constant->HasControlDependencies() ||
        !constant->shape().IsArray()) {
      continue;
    }
    const absl::string_view bytes = BytesOf(constant);
    std::vector<HloInstruction*>& alike = kept[absl::HashOf(constant->shape(), bytes.substr(0, 64))];
    const auto equal = absl::c_find_if(alike, [&](const HloInstruction* other) {
      return BytesOf(other) == bytes && TextOf(other) == TextOf(constant) &&
             other->raw_backend_config_string() == constant->raw_backend_config_string();
    });
    if (equal == alike.end()) {
      alike.push_back(constant);
      continue;
    }
    if (absl::Status done = constant->ReplaceAllUsesWith(*equal); !done.ok()) return done;
    if (absl::Status done = computation->RemoveInstruction(constant); !done.ok()) return done;
    changed = true;
  }
  return changed;
}

// Puts an instruction behind a barrier that has its mark: for some of its users, or as the root too.
inline absl::Status PutBehindBarrier(HloInstruction* instruction, const std::vector<HloInstruction*>& users,
                                     bool as_root) {
  HloComputation* computation = instruction->parent();
  HloInstruction* barrier = computation->AddInstruction(
      HloInstruction::CreateUnary(instruction->shape(), HloOpcode::kOptimizationBarrier, instruction));
  barrier->set_raw_backend_config_string(absl::StrCat(kBarrier, instruction->raw_backend_config_string()));
  if (as_root) computation->set_root_instruction(barrier);
  return instruction->ReplaceUsesWith(users, barrier);
}

inline absl::Status RemoveBarriers(HloModule* module) {
  for (HloComputation* computation : module->computations()) {
    for (HloInstruction* instruction : computation->MakeInstructionPostOrder()) {
      if (!absl::StartsWith(instruction->raw_backend_config_string(), kBarrier)) continue;
      absl::Status done = instruction->ReplaceAllUsesWith(instruction->mutable_operand(0));
      if (done.ok()) done = computation->RemoveInstruction(instruction);
      if (!done.ok()) return done;
    }
  }
  return absl::OkStatus();
}

// XLA's pass, which merges constants and iotas by rules of its own. Constants are merged here, and iotas that differ
// stand behind barriers, which it compares as any other operation.
class ExactCse : public xla::HloModulePass {
 public:
  absl::string_view name() const override { return "cse"; }

 protected:
  absl::StatusOr<bool> RunImpl(
      HloModule* module, const absl::flat_hash_set<absl::string_view>& execution_threads) override {
    bool changed = false;
    for (HloComputation* computation : module->computations(execution_threads)) {
      absl::StatusOr<bool> combined = CombineConstants(computation);
      if (!combined.ok()) return combined;
      changed |= *combined;
    }
    const Marks marks(module);
    bool barriers = false;
    for (HloInstruction* iota : marks.others()) {
      if (iota->opcode() != HloOpcode::kIota) continue;
      const std::vector<HloInstruction*> users(iota->users().begin(), iota->users().end());
      absl::Status done = PutBehindBarrier(iota, users, iota == iota->parent()->root_instruction());
      if (!done.ok()) return done;
      barriers = true;
    }
    for (HloComputation* computation : module->computations(execution_threads)) {
      absl::StatusOr<bool> merged = Merged(computation);
      if (!merged.ok()) return merged;
      changed |= *merged;
    }
    if (absl::Status done = barriers ? RemoveBarriers(module) : absl::OkStatus(); !done.ok()) return done;
    return changed;
  }

 private:
  // XLA's object moves the last function out of itself as it runs on the first computation.
  static absl::StatusOr<bool> Merged(HloComputation* computation) {
    xla::HloCSE cse(/*is_layout_sensitive=*/false, /*ignore_control_dependencies=*/false,
                    /*should_eliminate_computation=*/nullptr, /*should_eliminate_instruction=*/nullptr,
                    /*should_combine_constant=*/[](const HloInstruction*) { return false; });
    return cse.RunOnComputation(computation);
  }
};

// XLA's pass, which takes operations of one opcode for the same without looking at their configurations. Slices of
// those that differ from the first stand behind barriers, so that these operations stay where they are.
class ExactSliceSinker : public xla::SliceSinker {
 protected:
  absl::StatusOr<bool> RunImpl(
      HloModule* module, const absl::flat_hash_set<absl::string_view>& execution_threads) override {
    const Marks marks(module);
    bool barriers = false;
    for (HloInstruction* user : marks.others()) {
      if (user->operand_count() == 0 || user->operand(0)->opcode() != HloOpcode::kSlice) continue;
      absl::Status done = PutBehindBarrier(user->mutable_operand(0), {user}, /*as_root=*/false);
      if (!done.ok()) return done;
      barriers = true;
    }
    absl::StatusOr<bool> changed = SliceSinker::RunImpl(module, execution_threads);
    if (!changed.ok()) return changed;
    if (absl::Status done = barriers ? RemoveBarriers(module) : absl::OkStatus(); !done.ok()) return done;
    return changed;
  }
};

}  // namespace irgym

#endif  // IRGYM_EQUALITY_H_
