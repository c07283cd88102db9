// A C interface to XLA's HLO passes, as they are compiled into tensorflow-cpu's libraries: parse a module, run
// one pass on it, look at the result. irgym/envs/hlo/compiling/engine.py is its only caller.
//
// Functions that can fail return nullptr or -1; irgym_error() then says why, for the calling thread. A pass that
// returned an error may have left its module invalid: the caller must free it. A failed CHECK within XLA aborts
// the process.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "xla/hlo/ir/hlo_casting_utils.h"
#include "xla/hlo/ir/hlo_instructions.h"
#include "xla/hlo/ir/hlo_module.h"
#include "xla/hlo/ir/hlo_opcode.h"
#include "xla/hlo/parser/hlo_parser.h"
#include "xla/hlo/pass/hlo_pass_fix.h"
#include "xla/hlo/pass/hlo_pass_interface.h"
#include "xla/hlo/transforms/expanders/bitcast_dtypes_expander.h"
#include "xla/hlo/transforms/expanders/cholesky_expander.h"
#include "xla/hlo/transforms/expanders/comparison_expander.h"
#include "xla/hlo/transforms/expanders/dot_decomposer.h"
#include "xla/hlo/transforms/expanders/dynamic_index_splitter.h"
#include "xla/hlo/transforms/expanders/eigh_expander.h"
#include "xla/hlo/transforms/expanders/logistic_expander.h"
#include "xla/hlo/transforms/expanders/optimization_barrier_expander.h"
#include "xla/hlo/transforms/expanders/qr_expander.h"
#include "xla/hlo/transforms/expanders/rng_bit_generator_expander.h"
#include "xla/hlo/transforms/expanders/rng_expander.h"
#include "xla/hlo/transforms/expanders/stochastic_convert_decomposer.h"
#include "xla/hlo/transforms/operand_upcaster.h"
#include "xla/hlo/transforms/simplifiers/algebraic_simplifier.h"
#include "xla/hlo/transforms/simplifiers/batch_dot_simplification.h"
#include "xla/hlo/transforms/simplifiers/broadcast_canonicalizer.h"
#include "xla/hlo/transforms/simplifiers/conditional_canonicalizer.h"
#include "xla/hlo/transforms/simplifiers/convolution_group_converter.h"
#include "xla/hlo/transforms/simplifiers/dynamic_dimension_simplifier.h"
#include "xla/hlo/transforms/simplifiers/flatten_call_graph.h"
#include "xla/hlo/transforms/simplifiers/gather_simplifier.h"
#include "xla/hlo/transforms/simplifiers/hlo_constant_folding.h"
#include "xla/hlo/transforms/simplifiers/hlo_dce.h"
#include "xla/hlo/transforms/simplifiers/reduce_window_resizer.h"
#include "xla/hlo/transforms/simplifiers/reduce_window_rewriter.h"
#include "xla/hlo/transforms/simplifiers/reshape_mover.h"
#include "xla/hlo/transforms/simplifiers/result_caster.h"
#include "xla/hlo/transforms/simplifiers/simplify_fp_conversions.h"
#include "xla/hlo/transforms/simplifiers/sort_simplifier.h"
#include "xla/hlo/transforms/simplifiers/tree_reduction_rewriter.h"
#include "xla/hlo/transforms/simplifiers/tuple_simplifier.h"
#include "xla/hlo/transforms/simplifiers/zero_sized_hlo_elimination.h"
#include "xla/hlo/transforms/while_loop_trip_count_annotator.h"
#include "xla/primitive_util.h"
#include "xla/printer.h"
#include "xla/service/batched_gather_scatter_normalizer.h"
#include "xla/service/batchnorm_expander.h"
#include "xla/service/call_inliner.h"
#include "xla/service/conditional_simplifier.h"
#include "xla/service/conditional_to_select.h"
#include "xla/service/cpu/small_while_loop_hoisting_pass.h"
#include "xla/service/dynamic_padder.h"
#include "xla/service/gather_expander.h"
#include "xla/service/hlo_cost_analysis.h"
#include "xla/service/hlo_verifier.h"
#include "xla/service/map_inliner.h"
#include "xla/service/scatter_expander.h"
#include "xla/service/scatter_simplifier.h"
#include "xla/service/select_and_scatter_expander.h"
#include "xla/service/topk_rewriter.h"
#include "xla/service/transpose_folding.h"
#include "xla/service/triangular_solve_expander.h"
#include "xla/service/while_loop_constant_sinking.h"
#include "xla/service/while_loop_invariant_code_motion.h"
#include "xla/service/while_loop_simplifier.h"

#include "copying.h"
#include "equality.h"
#include "execution.h"

#define IRGYM_API extern "C" __attribute__((visibility("default")))

namespace {

using namespace xla;  // NOLINT: every second word here is XLA's

thread_local std::string last_error;

using PassFactory = std::function<std::unique_ptr<HloPassInterface>()>;
using Predicate = bool (*)(const HloInstruction*);

// A pass, and what a module must hold for it to change anything: an instruction of one of the opcodes (any, if
// there are none) for which the predicate holds. Necessary, not sufficient.
struct NamedPass {
  std::string name;
  PassFactory make;
  std::vector<HloOpcode> opcodes = {};
  Predicate holds = nullptr;
};

bool HasZeroElements(const HloInstruction* i) {
  // Not ShapeUtil's function, since a call for each instruction takes a fifth of a summary.
  return i->shape().IsArray() && absl::c_linear_search(i->shape().dimensions(), 0);
}

// A dynamic dimension comes in by one of these; other instructions have one only where an operand has.
bool IntroducesDynamicShape(const HloInstruction* i) {
  return i->opcode() != HloOpcode::kParameter || i->shape().is_dynamic();
}

bool HasBatchingDimensions(const HloInstruction* i) {
  if (const auto* gather = DynCast<HloGatherInstruction>(i)) {
    return !gather->gather_dimension_numbers().operand_batching_dims().empty();
  }
  return !Cast<HloScatterInstruction>(i)->scatter_dimension_numbers().input_batching_dims().empty();
}

bool IsUnsimplifiedGather(const HloInstruction* i) {
  return !GatherSimplifier::IsSimplifiedGather(Cast<HloGatherInstruction>(i));
}

bool IsUnsimplifiedScatter(const HloInstruction* i) {
  return !ScatterSimplifier::IsSimplifiedScatter(Cast<HloScatterInstruction>(i));
}

bool MixesTypes(const HloInstruction* i) {
  for (const HloInstruction* operand : i->operands()) {
    if (operand->shape().element_type() != i->shape().element_type()) return true;
  }
  return !primitive_util::IsFloatingPointType(i->shape().element_type()) ||
         primitive_util::BitWidth(i->shape().element_type()) < 32;
}

bool HasUnsortedDimensions(const HloInstruction* i) { return !absl::c_is_sorted(i->dimensions()); }

bool HasBatchDimensions(const HloInstruction* i) {
  return i->dot_dimension_numbers().lhs_batch_dimensions_size() > 0;
}

bool HasVectorIndex(const HloInstruction* i) {
  const int64_t index = i->opcode() == HloOpcode::kDynamicSlice ? 1 : 2;
  return i->operand_count() > index && i->operand(index)->shape().dimensions().size() == 1;
}

bool ComparesTotally(const HloInstruction* i) {
  return i->comparison_order() == Comparison::Order::kTotal &&
         primitive_util::IsFloatingPointType(i->operand(0)->shape().element_type());
}

bool IsGrouped(const HloInstruction* i) { return i->feature_group_count() > 1 || i->batch_group_count() > 1; }

bool HasTransposedOperand(const HloInstruction* i) {
  return absl::c_any_of(i->operands(), [](const HloInstruction* o) { return o->opcode() == HloOpcode::kTranspose; });
}

// Nothing uses it, or nothing calls the computation that it is in.
bool IsRemovable(const HloInstruction* i) {
  const HloComputation* computation = i->parent();
  if (i == computation->root_instruction()) {
    return computation != i->GetModule()->entry_computation() && computation->caller_instructions().empty();
  }
  return i->user_count() == 0;
}

bool UndoesTuple(const HloInstruction* i) {
  if (i->operand_count() == 0) return false;
  return i->opcode() == HloOpcode::kTuple ? i->operand(0)->opcode() == HloOpcode::kGetTupleElement
                                          : i->operand(0)->opcode() == HloOpcode::kTuple;
}

// Passes on loops and conditionals change their computations in place: no other instruction may have these.
bool MayBeShared(const HloComputation* computation) {
  const auto callers = computation->caller_instructions();
  return !callers.empty() && !computation->HasSideEffect() &&
         absl::c_all_of(callers, [](const HloInstruction* caller) {
           switch (caller->opcode()) {
             case HloOpcode::kCall:
             case HloOpcode::kMap:
             case HloOpcode::kReduce:
             case HloOpcode::kReduceWindow:
             case HloOpcode::kScatter:
             case HloOpcode::kSelectAndScatter:
             case HloOpcode::kSort:
               return true;
             default:
               return false;
           }
         });
}

// Equality follows operands from the root, so that it says nothing of parameters that are not used.
bool AreEqual(const HloComputation& one, const HloComputation& other) {
  return one.num_parameters() == other.num_parameters() &&
         absl::c_equal(one.parameter_instructions(), other.parameter_instructions(),
                       [](const HloInstruction* ours, const HloInstruction* theirs) {
                         return ours->shape() == theirs->shape();
                       }) &&
         one == other;
}

// Keeps one of equal computations. XLA has a pass of this name; tensorflow-cpu's libraries do not.
class ComputationDeduplicator : public HloModulePass {
 public:
  absl::string_view name() const override { return "computation-deduplicator"; }

 protected:
  absl::StatusOr<bool> RunImpl(HloModule* module,
                               const absl::flat_hash_set<absl::string_view>& execution_threads) override {
    absl::flat_hash_map<size_t, std::vector<HloComputation*>> kept;
    absl::flat_hash_map<HloComputation*, HloComputation*> replacements;
    for (HloComputation* computation : module->MakeComputationPostOrder(execution_threads)) {
      if (computation->IsEntryComputation() || !MayBeShared(computation)) continue;
      std::vector<HloComputation*>& alike = kept[absl::HashOf(*computation)];
      const auto equal = absl::c_find_if(
          alike, [&](const HloComputation* other) { return AreEqual(*computation, *other); });
      if (equal == alike.end()) {
        alike.push_back(computation);
      } else {
        replacements[computation] = *equal;
      }
    }
    if (replacements.empty()) return false;
    module->ReplaceComputations(replacements);
    if (absl::Status removed = module->RemoveUnusedComputations(); !removed.ok()) return removed;
    return true;
  }
};

// What CpuCompiler sets before layout assignment.
AlgebraicSimplifierOptions SimplifierOptions() {
  AlgebraicSimplifierOptions options;
  options.set_enable_dot_strength_reduction(false);
  options.set_minmax_propagate_nan(false);
  options.set_supports_non_canonical_dots(false);
  options.set_executing_on_cpu(true);
  return options;
}

template <typename Pass, typename... Arguments>
PassFactory Make(Arguments... arguments) {
  return [=] { return std::make_unique<Pass>(arguments...); };
}

PassFactory Simplifier(const std::function<void(AlgebraicSimplifierOptions&)>& change) {
  return [change] {
    AlgebraicSimplifierOptions options = SimplifierOptions();
    change(options);
    return std::make_unique<irgym::Comparing<AlgebraicSimplifier>>(options);
  };
}

std::vector<NamedPass> MakePasses() {
  return {
      {"algsimp", Simplifier([](AlgebraicSimplifierOptions&) {})},
      {"algsimp-fixpoint", Make<HloPassFix<irgym::Comparing<AlgebraicSimplifier>>>(SimplifierOptions())},
      {"algsimp-reassociate",
       Simplifier([](AlgebraicSimplifierOptions& o) { o.set_use_associative_reordering(true); })},
      {"batch-dot-simplification", Make<BatchDotSimplification>(), {HloOpcode::kDot}, HasBatchDimensions},
      {"batched-gather-scatter-normalizer", Make<BatchedGatherScatterNormalizer>(), {HloOpcode::kGather, HloOpcode::kScatter}, HasBatchingDimensions},
      {"batchnorm-expander", Make<BatchNormExpander>(true, true, true), {HloOpcode::kBatchNormTraining, HloOpcode::kBatchNormInference, HloOpcode::kBatchNormGrad}},
      {"bitcast-dtypes-expander", Make<BitcastDtypesExpander>(), {HloOpcode::kBitcastConvert}},
      {"broadcast-canonicalizer", Make<BroadcastCanonicalizer>(), {HloOpcode::kBroadcast}, HasUnsortedDimensions},
      {"call-inliner", Make<CallInliner>(), {HloOpcode::kCall}},
      {"cholesky-expander", Make<CholeskyExpander>(), {HloOpcode::kCholesky}},
      {"comparison-expander", Make<ComparisonExpander>(), {HloOpcode::kCompare}, ComparesTotally},
      {"computation-deduplicator", Make<irgym::Comparing<ComputationDeduplicator>>()},
      {"conditional-canonicalizer", Make<ConditionalCanonicalizer>(), {HloOpcode::kConditional}},
      {"conditional-to-select", Make<ConditionalToSelect>(), {HloOpcode::kConditional}},
      {"constant-folding", Make<HloConstantFolding>()},
      {"convolution-group-converter",
       [] {
         return std::make_unique<ConvolutionGroupConverter>([](HloInstruction*) { return true; },
                                                            [](HloInstruction*) { return false; },
                                                            /*convert_batch_groups_only=*/false);
       }, {HloOpcode::kConvolution}, IsGrouped},
      {"cse", Make<irgym::ExactCse>()},
      {"dce", Make<HloDCE>(), {}, IsRemovable},
      {"dot-decomposer", Make<DotDecomposer>(), {HloOpcode::kDot}},
      {"dynamic-dimension-simplifier", Make<DynamicDimensionSimplifier>()},
      {"dynamic-index-splitter", Make<DynamicIndexSplitter>(), {HloOpcode::kDynamicSlice, HloOpcode::kDynamicUpdateSlice}, HasVectorIndex},
      {"dynamic-padder", Make<DynamicPadder>(), {HloOpcode::kParameter, HloOpcode::kGetDimensionSize, HloOpcode::kSetDimensionSize, HloOpcode::kDynamicReshape, HloOpcode::kCustomCall, HloOpcode::kInfeed, HloOpcode::kRecv}, IntroducesDynamicShape},
      {"eigh-expander", Make<EighExpander>(), {HloOpcode::kCustomCall}},
      {"flatten-call-graph", Make<FlattenCallGraph>()},
      {"gather-expander", Make<GatherExpander>(GatherExpander::kEliminateAllGathers), {HloOpcode::kGather}},
      {"gather-expander-simple", Make<GatherExpander>(GatherExpander::kEliminateSimpleGathers), {HloOpcode::kGather}},
      {"gather-simplifier", Make<GatherSimplifier>(), {HloOpcode::kGather}, IsUnsimplifiedGather},
      {"logistic-expander", Make<LogisticExpander>(), {HloOpcode::kLogistic}},
      {"map-inline", Make<MapInliner>(), {HloOpcode::kMap}},
      {"operand-upcaster", Make<OperandUpcaster>(), {HloOpcode::kDot, HloOpcode::kConvolution}, MixesTypes},
      {"optimization-barrier-expander", Make<OptimizationBarrierExpander>(), {HloOpcode::kOptimizationBarrier}},
      {"qr-expander", Make<QrExpander>(), {HloOpcode::kCustomCall}},
      {"reduce-window-resizer", Make<ReduceWindowResizer>(), {HloOpcode::kReduceWindow}},
      {"reduce-window-rewriter", Make<ReduceWindowRewriter>(/*base_length=*/32), {HloOpcode::kReduceWindow}},
      {"reshape-mover", Make<ReshapeMover>(), {HloOpcode::kReshape, HloOpcode::kTranspose}},
      {"reshape-mover-broadcasts", Make<ReshapeMover>(ReshapeMoverOptions{true}), {HloOpcode::kReshape, HloOpcode::kTranspose, HloOpcode::kBroadcast}},
      {"result-caster", Make<ResultCaster>(), {HloOpcode::kDot, HloOpcode::kConvolution}, MixesTypes},
      {"rng-bit-generator-expander", Make<RngBitGeneratorExpander>(RandomAlgorithm::RNG_PHILOX), {HloOpcode::kRngBitGenerator}},
      {"rng-expander", Make<RngExpander>(), {HloOpcode::kRng}},
      {"scatter-expander", Make<ScatterExpander>(ScatterExpander::kEliminateAllScatters), {HloOpcode::kScatter}},
      {"scatter-expander-simple", Make<ScatterExpander>(ScatterExpander::kEliminateSimpleScatters), {HloOpcode::kScatter}},
      {"scatter-simplifier", Make<ScatterSimplifier>(), {HloOpcode::kScatter}, IsUnsimplifiedScatter},
      {"select-and-scatter-expander", Make<SelectAndScatterExpander>(), {HloOpcode::kSelectAndScatter}},
      {"simplify-conditional", Make<irgym::Comparing<ConditionalSimplifier>>(), {HloOpcode::kConditional}},
      {"simplify-fp-conversions", Make<SimplifyFPConversions>(), {HloOpcode::kConvert}},
      {"simplify-sorts", Make<SortSimplifier>(), {HloOpcode::kSort}},
      {"simplify-while-loops", Make<irgym::Comparing<WhileLoopSimplifier>>(), {HloOpcode::kWhile}},
      {"slice-sinker", Make<irgym::ExactSliceSinker>(), {HloOpcode::kSlice}},
      {"small-while-loop-hoisting", Make<cpu::SmallWhileLoopHoistingPass>(/*small_buffer_access_size=*/1024), {HloOpcode::kWhile}},
      {"stochastic-convert-decomposer", Make<StochasticConvertDecomposer>(), {HloOpcode::kStochasticConvert}},
      {"topk-decomposer", Make<TopkDecomposer>(), {HloOpcode::kTopK, HloOpcode::kCustomCall}},
      {"topk-rewriter",
       [] { return std::make_unique<TopkRewriter>([](const HloSortInstruction*, int64_t) { return true; }); }, {HloOpcode::kSort}},
      {"transpose-folding", Make<TransposeFolding>(), {HloOpcode::kDot, HloOpcode::kConvolution}, HasTransposedOperand},
      {"tree-reduction-rewriter", Make<TreeReductionRewriter>(), {HloOpcode::kReduce}},
      {"triangular-solve-expander", Make<TriangularSolveExpander>(), {HloOpcode::kTriangularSolve}},
      {"tuple-simplifier", Make<TupleSimplifier>(), {HloOpcode::kTuple, HloOpcode::kGetTupleElement}, UndoesTuple},
      {"while-loop-constant-sinking", Make<WhileLoopConstantSinking>(), {HloOpcode::kWhile}},
      {"while-loop-invariant-code-motion", Make<WhileLoopInvariantCodeMotion>(), {HloOpcode::kWhile}},
      {"while-loop-trip-count-annotator", Make<WhileLoopTripCountAnnotator>(), {HloOpcode::kWhile}},
      {"zero-sized-hlo-elimination", Make<ZeroSizedHloElimination>(), {}, HasZeroElements},
  };
}

const std::vector<NamedPass>& Passes() {
  static const auto* const passes = new std::vector<NamedPass>(MakePasses());
  return *passes;
}

// The passes that may change an instruction of an opcode: a bit for each that always may, and those for which a
// predicate decides.
struct PassesOfOpcode {
  uint64_t always = 0;
  std::vector<std::pair<uint64_t, Predicate>> perhaps;
};

std::vector<PassesOfOpcode> PassesByOpcode() {
  std::vector<PassesOfOpcode> table(HloOpcodeCount());
  const auto add = [](PassesOfOpcode& row, uint64_t bit, Predicate holds) {
    if (holds == nullptr) {
      row.always |= bit;
    } else {
      row.perhaps.emplace_back(bit, holds);
    }
  };
  for (int pass = 0; pass < Passes().size(); ++pass) {
    const NamedPass& named = Passes()[pass];
    const uint64_t bit = uint64_t{1} << pass;
    for (HloOpcode opcode : named.opcodes) add(table[static_cast<int>(opcode)], bit, named.holds);
    if (named.opcodes.empty()) {
      for (PassesOfOpcode& row : table) add(row, bit, named.holds);
    }
  }
  return table;
}

// Counts the instructions of each opcode, and returns a bit for each pass that may change the module. One walk: on a
// large module it is memory that takes the time.
uint64_t Summarise(const HloModule* module, int32_t* counts) {
  static const auto& table = *new std::vector<PassesOfOpcode>(PassesByOpcode());
  uint64_t possible = 0;
  for (const HloComputation* computation : module->computations()) {
    for (const HloInstruction* instruction : computation->instructions()) {
      const int opcode = static_cast<int>(instruction->opcode());
      ++counts[opcode];
      for (const auto& [bit, holds] : table[opcode].perhaps) {
        if ((possible & bit) == 0 && holds(instruction)) possible |= bit;
      }
    }
  }
  for (int opcode = 0; opcode < HloOpcodeCount(); ++opcode) {
    if (counts[opcode] > 0) possible |= table[opcode].always;
  }
  return possible;
}

// Where an instruction came from in the source: nothing that passes look at, but a third of the memory.
void DropOrigins(HloModuleProto& proto) {
  proto.clear_stack_frame_index();
  for (HloComputationProto& computation : *proto.mutable_computations()) {
    for (HloInstructionProto& instruction : *computation.mutable_instructions()) {
      instruction.clear_metadata();
      instruction.clear_original_value();
    }
  }
}

HloModule* AsModule(void* module) { return static_cast<HloModule*>(module); }

template <typename Value>
bool Failed(const Value& value) {
  if (value.ok()) return false;
  if constexpr (std::is_same_v<Value, absl::Status>) {
    last_error = value.ToString();
  } else {
    last_error = value.status().ToString();
  }
  return true;
}

char* Copied(const std::string& text, size_t* size) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  *size = text.size();
  return copy;
}

// --- A digest of a module's graph, whatever the order and the names of its instructions ---------------------

uint64_t Mix(uint64_t seed, uint64_t value) {  // splitmix64's finaliser
  uint64_t z = seed + 0x9e3779b97f4a7c15ULL + value * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

uint64_t MixAll(uint64_t seed, absl::Span<const int64_t> values) {
  for (int64_t value : values) seed = Mix(seed, static_cast<uint64_t>(value));
  return Mix(seed, values.size());
}

uint64_t MixShape(uint64_t seed, const Shape& shape) {
  seed = Mix(seed, shape.element_type());
  if (shape.IsTuple()) {
    for (const Shape& part : shape.tuple_shapes()) seed = MixShape(seed, part);
  } else if (shape.IsArray()) {
    seed = MixAll(seed, shape.dimensions());
  }
  return seed;
}

// Only constants that passes look into are told apart by value; of a large one the first bytes do.
uint64_t MixLiteral(uint64_t seed, const Literal& literal) {
  if (!literal.shape().IsArray()) return seed;
  const auto* bytes = static_cast<const unsigned char*>(literal.untyped_data());
  const int64_t size = std::min<int64_t>(literal.size_bytes(), 256);
  for (int64_t place = 0; place < size; ++place) seed = Mix(seed, bytes[place]);
  return seed;
}

uint64_t MixAttributes(uint64_t seed, const HloInstruction* instruction) {
  switch (instruction->opcode()) {
    case HloOpcode::kConstant:
      return MixLiteral(seed, instruction->literal());
    case HloOpcode::kParameter:
      return Mix(seed, instruction->parameter_number());
    case HloOpcode::kGetTupleElement:
      return Mix(seed, instruction->tuple_index());
    case HloOpcode::kCompare:
      seed = Mix(seed, static_cast<uint64_t>(instruction->comparison_order()));
      return Mix(seed, static_cast<uint64_t>(instruction->comparison_direction()));
    case HloOpcode::kSlice:
      seed = MixAll(seed, instruction->slice_starts());
      return MixAll(seed, instruction->slice_strides());
    case HloOpcode::kBroadcast:
    case HloOpcode::kConcatenate:
    case HloOpcode::kReduce:
    case HloOpcode::kReverse:
    case HloOpcode::kTranspose:
      return MixAll(seed, instruction->dimensions());
    default:
      return seed;
  }
}

uint64_t InstructionDigest(const HloInstruction* instruction) {
  uint64_t digest = MixShape(static_cast<uint64_t>(instruction->opcode()), instruction->shape());
  digest = Mix(MixAttributes(digest, instruction), instruction->user_count());
  for (const HloInstruction* operand : instruction->operands()) {
    digest = Mix(digest, static_cast<uint64_t>(operand->opcode()));
  }
  return digest;
}

// The multiset of all instructions, each with its operands: one round of Weisfeiler and Lehman's refinement.
uint64_t ModuleDigest(const HloModule* module) {
  uint64_t sum = module->computation_count();
  for (const HloComputation* computation : module->computations()) {
    const uint64_t entry = computation == module->entry_computation();
    for (const HloInstruction* instruction : computation->instructions()) {
      sum += Mix(entry, InstructionDigest(instruction));
    }
  }
  return sum;
}

constexpr char kReplicas[] = "irgym.replicas";
constexpr char kPartitions[] = "irgym.partitions";

// An HloModuleProto does not tell for how many devices a module is made: attributes of ours do, from the reading of a
// file to every later reading of the proto.
void TakeDevices(HloModule* module) {
  FrontendAttributes attributes = module->frontend_attributes();
  for (const char* key : {kReplicas, kPartitions}) {
    const auto found = attributes.map().find(key);
    if (found == attributes.map().end()) continue;
    const int64_t count = std::atoll(found->second.c_str());
    if (key == kReplicas) {
      module->mutable_config().set_replica_count(count);
    } else {
      module->mutable_config().set_num_partitions(count);
    }
    attributes.mutable_map()->erase(key);
  }
  module->set_frontend_attributes(attributes);
}

int64_t ShapeSize(const Shape& shape) {
  return shape.IsOpaque() ? sizeof(void*) : ShapeUtil::ByteSizeOf(shape, sizeof(void*));
}

}  // namespace

IRGYM_API const char* irgym_error() { return last_error.c_str(); }

IRGYM_API int irgym_pass_count() { return Passes().size(); }

IRGYM_API const char* irgym_pass_name(int pass) { return Passes()[pass].name.c_str(); }

IRGYM_API int irgym_opcode_count() { return HloOpcodeCount(); }

IRGYM_API char* irgym_opcode_name(int opcode, size_t* size) {
  return Copied(std::string(HloOpcodeString(static_cast<HloOpcode>(opcode))), size);
}

IRGYM_API void irgym_free(void* buffer) { std::free(buffer); }

IRGYM_API void* irgym_from_text(const char* text, size_t size) {
  auto module = ParseAndReturnUnverifiedModule(absl::string_view(text, size));
  return Failed(module) ? nullptr : module->release();
}

// Origins are the instructions' metadata: names and lines of the source.
IRGYM_API void* irgym_from_proto(const char* bytes, size_t size, int origins) {
  HloModuleProto proto;
  if (!proto.ParseFromArray(bytes, size)) {
    last_error = "it is no HloModuleProto";
    return nullptr;
  }
  if (!origins) DropOrigins(proto);
  auto config = HloModule::CreateModuleConfigFromProto(proto, DebugOptions());
  if (Failed(config)) return nullptr;
  auto module = HloModule::CreateFromProto(proto, *config);
  if (Failed(module)) return nullptr;
  TakeDevices(module->get());
  return module->release();
}

// For how many devices the module is made: replicas times partitions.
IRGYM_API int64_t irgym_devices(void* module) {
  return AsModule(module)->config().replica_count() * AsModule(module)->config().num_partitions();
}

// Writes down in the module what its proto would not tell.
IRGYM_API void irgym_note_devices(void* module, int64_t replicas, int64_t partitions) {
  const HloModuleConfig& config = AsModule(module)->config();
  AsModule(module)->add_frontend_attribute(kReplicas, absl::StrCat(std::max(replicas, config.replica_count())));
  AsModule(module)->add_frontend_attribute(kPartitions, absl::StrCat(std::max(partitions, config.num_partitions())));
}

// The first instruction whose size is known at run time only; empty where there is none.
IRGYM_API char* irgym_dynamic(void* module, size_t* size) {
  for (const HloComputation* computation : AsModule(module)->computations()) {
    for (const HloInstruction* instruction : computation->instructions()) {
      if (!instruction->shape().is_dynamic()) continue;
      return Copied(absl::StrCat(instruction->name(), " of shape ", instruction->shape().ToString()), size);
    }
  }
  return Copied("", size);
}

// Runs the module on the bytes of its arguments and returns those of its results; null where it does not run.
IRGYM_API char* irgym_execute(void* module, const char* arguments, size_t length, size_t* size) {
  auto results = irgym::Execute(*AsModule(module), absl::string_view(arguments, length));
  *size = 0;
  return Failed(results) ? nullptr : Copied(*results, size);
}

// How many loops run until something that is computed ends them, and not a number of times that XLA can tell.
IRGYM_API int64_t irgym_open_loops(void* module) {
  const std::unique_ptr<HloModule> copy = irgym::Copy(*AsModule(module));
  if (Failed(WhileLoopTripCountAnnotator().Run(copy.get()))) return -1;
  int64_t open = 0;
  for (const HloComputation* computation : copy->computations()) {
    for (const HloInstruction* instruction : computation->instructions()) {
      open += instruction->opcode() == HloOpcode::kWhile &&
              !absl::StrContains(instruction->raw_backend_config_string(), "known_trip_count");
    }
  }
  return open;
}

IRGYM_API void irgym_delete(void* module) { delete AsModule(module); }

IRGYM_API void* irgym_clone(void* module) { return irgym::Copy(*AsModule(module)).release(); }

// The orders of computations, instructions and users, on which passes depend; the text does not show all of them.
IRGYM_API char* irgym_orders(void* module, size_t* size) {
  std::map<int64_t, std::string> by_id;
  std::string text;
  for (const HloComputation* computation : AsModule(module)->computations()) {
    absl::StrAppend(&text, computation->name(), ":\n");
    by_id[computation->unique_id()] = computation->name();
    std::map<int64_t, std::string> instructions;
    for (const HloInstruction* instruction : computation->instructions()) {
      instructions[instruction->local_id()] = instruction->name();
      absl::StrAppend(&text, " ", instruction->name(), ":");
      for (const HloInstruction* user : instruction->users()) absl::StrAppend(&text, " ", user->name());
      absl::StrAppend(&text, "\n");
    }
    for (const auto& [id, name] : instructions) absl::StrAppend(&text, " ", name);
    absl::StrAppend(&text, "\n");
  }
  for (const auto& [id, name] : by_id) absl::StrAppend(&text, name, " ");
  absl::StrAppend(&text, "\n");
  for (const HloComputation* computation : AsModule(module)->MakeComputationPostOrder()) {
    absl::StrAppend(&text, computation->name(), " ");
  }
  return Copied(text, size);
}

IRGYM_API char* irgym_text(void* module, size_t* size) {
  return Copied(AsModule(module)->ToString(HloPrintOptions::ShortParsable().set_print_control_dependencies(true)), size);
}

IRGYM_API char* irgym_proto(void* module, size_t* size) {
  HloModuleProto proto;
  AsModule(module)->ToProto(&proto);
  return Copied(proto.SerializeAsString(), size);
}

// Returns 1 if the pass changed the module, 0 if not, -1 on an error.
//
// The answer and the result are the same for a module and for a copy of it. A copy has no computations that nothing
// calls: those that a pass leaves behind are removed. A pass that says that it changed nothing may yet have added
// instructions that nothing uses (AlgebraicSimplifier with associative reordering does): the count tells.
IRGYM_API int irgym_run(void* module, int pass) {
  const int64_t count = AsModule(module)->instruction_count();
  auto changed = Passes()[pass].make()->Run(AsModule(module));
  if (Failed(changed)) return -1;
  if (!*changed && AsModule(module)->instruction_count() == count) return 0;
  const bool uncalled = absl::c_any_of(AsModule(module)->computations(), [](const HloComputation* computation) {
    return computation->IsDeadComputation();
  });
  if (uncalled) return Failed(AsModule(module)->RemoveUnusedComputations()) ? -1 : 1;
  AsModule(module)->CleanupComputations();
  return 1;
}

IRGYM_API int irgym_verify(void* module) {
  HloVerifier verifier(/*layout_sensitive=*/false, /*allow_mixed_precision=*/true);
  return Failed(verifier.Run(AsModule(module))) ? -1 : 0;
}

// Fills counts[opcode] over all computations, and rest: the instructions of all computations, those of the entry
// computation, and a bit for each pass, 0 where the module has nothing that the pass could change.
IRGYM_API void irgym_content(void* module, int32_t* counts, uint64_t* rest) {
  std::memset(counts, 0, sizeof(int32_t) * HloOpcodeCount());
  rest[2] = Summarise(AsModule(module), counts);
  rest[0] = AsModule(module)->instruction_count();
  rest[1] = AsModule(module)->entry_computation()->instruction_count();
}

// Equal graphs have equal digests, whatever the order of their instructions. Different graphs rarely share one:
// those that differ in the attributes of rarer instructions, or only far from any instruction.
IRGYM_API uint64_t irgym_digest(void* module) { return ModuleDigest(AsModule(module)); }

// A fingerprint of the whole module, names left out; the same in every process.
IRGYM_API uint64_t irgym_fingerprint(void* module) {
  HighwayHashPrinter printer;
  AsModule(module)->Print(&printer, HloPrintOptions::Fingerprint());
  return printer.ToFingerprint();
}

// Fills in FLOPs, transcendental operations and bytes accessed, as XLA's cost analysis counts them.
IRGYM_API int irgym_analysis(void* module, double* result) {
  HloCostAnalysis analysis(ShapeSize);
  if (Failed(AsModule(module)->entry_computation()->Accept(&analysis))) return -1;
  result[0] = analysis.flop_count();
  result[1] = analysis.transcendental_count();
  result[2] = analysis.bytes_accessed();
  return 0;
}

IRGYM_API int64_t irgym_size(void* module) { return AsModule(module)->instruction_count(); }

// The module as a graph: for each instruction its opcode, computation and number of elements; then for each operand
// an edge from the operand to its user, and for each call an edge from the root of the computation called.
// Returns the number of edges; fills in the arrays unless `nodes` is null. `nodes` has 3 columns, `edges` 3: from,
// to, and 1 for a call.
IRGYM_API int64_t irgym_graph(void* module, int64_t* nodes, int64_t* edges) {
  absl::flat_hash_map<const HloInstruction*, int64_t> places;
  int64_t place = 0;
  int64_t number = 0;
  for (const HloComputation* computation : AsModule(module)->MakeComputationPostOrder()) {
    for (const HloInstruction* instruction : computation->MakeInstructionPostOrder()) {
      places[instruction] = place;
      if (nodes != nullptr) {
        const Shape& shape = instruction->shape();
        nodes[3 * place] = static_cast<int64_t>(instruction->opcode());
        nodes[3 * place + 1] = number;
        nodes[3 * place + 2] = shape.IsArray() ? ShapeUtil::ElementsIn(shape) : 0;
      }
      ++place;
    }
    ++number;
  }
  int64_t edge = 0;
  auto add = [&](const HloInstruction* from, const HloInstruction* to, int64_t call) {
    if (nodes != nullptr) {
      edges[3 * edge] = places.at(from);
      edges[3 * edge + 1] = places.at(to);
      edges[3 * edge + 2] = call;
    }
    ++edge;
  };
  for (const HloComputation* computation : AsModule(module)->MakeComputationPostOrder()) {
    for (const HloInstruction* instruction : computation->MakeInstructionPostOrder()) {
      for (const HloInstruction* operand : instruction->operands()) add(operand, instruction, 0);
      for (const HloComputation* called : instruction->called_computations()) {
        add(called->root_instruction(), instruction, 1);
      }
    }
  }
  return edge;
}
