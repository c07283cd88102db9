// Runs a module on XLA:CPU as it is, on its way through no other form: TensorFlow's XLA takes HLO itself.

#ifndef IRGYM_EXECUTION_H_
#define IRGYM_EXECUTION_H_

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla/client/client_library.h"
#include "xla/client/local_client.h"
#include "xla/executable_run_options.h"
#include "xla/hlo/builder/xla_computation.h"
#include "xla/hlo/ir/hlo_module.h"
#include "xla/literal.h"
#include "xla/service/shaped_buffer.h"
#include "xla/shape_util.h"

namespace irgym {

// Calls a function for each array of a literal, in order, with its bytes in row-major order.
template <typename Function>
void ForEachArray(xla::Literal& literal, Function function) {
  xla::ShapeUtil::ForEachLeafShape(literal.shape(), [&](const xla::Shape& shape, const xla::ShapeIndex& index) {
    if (shape.IsArray()) function(static_cast<char*>(literal.untyped_data(index)), literal.size_bytes(index));
  });
}

inline xla::Shape RowMajor(const xla::Shape& shape) {
  xla::Shape plain = shape;
  xla::LayoutUtil::SetToDefaultLayout(&plain);
  return plain;
}

// Takes and returns the bytes of all arrays, one after the other.
inline absl::StatusOr<std::string> Execute(const xla::HloModule& module, absl::string_view arguments) {
  absl::StatusOr<xla::LocalClient*> client = xla::ClientLibrary::GetOrCreateLocalClient();
  if (!client.ok()) return client.status();
  std::vector<xla::Shape> shapes;
  std::vector<const xla::Shape*> layouts;
  for (const xla::HloInstruction* parameter : module.entry_computation()->parameter_instructions()) {
    shapes.push_back(RowMajor(parameter->shape()));
  }
  for (const xla::Shape& shape : shapes) layouts.push_back(&shape);
  const xla::Shape result_shape = RowMajor(module.entry_computation()->root_instruction()->shape());
  xla::ExecutableBuildOptions options;
  options.set_device_ordinal(0);
  options.set_result_layout(result_shape);
  options.mutable_debug_options()->set_xla_backend_optimization_level(0);
  xla::HloModuleProto proto;
  module.ToProto(&proto);
  auto executables = (*client)->Compile(xla::XlaComputation(std::move(proto)), layouts, options);
  if (!executables.ok()) return executables.status();
  std::vector<xla::ScopedShapedBuffer> buffers;
  for (const xla::Shape& shape : shapes) {
    xla::Literal literal(shape);
    bool enough = true;
    ForEachArray(literal, [&](char* bytes, int64_t size) {
      enough = enough && size <= static_cast<int64_t>(arguments.size());
      if (!enough) return;
      std::memcpy(bytes, arguments.data(), size);
      arguments.remove_prefix(size);
    });
    if (!enough) return absl::InvalidArgumentError("too few arguments");
    auto buffer = (*client)->LiteralToShapedBuffer(literal, 0, (*client)->backend().memory_allocator());
    if (!buffer.ok()) return buffer.status();
    buffers.push_back(std::move(*buffer));
  }
  std::vector<const xla::ShapedBuffer*> pointers;
  for (const xla::ScopedShapedBuffer& buffer : buffers) pointers.push_back(&buffer);
  xla::ExecutableRunOptions run;
  run.set_allocator((*client)->backend().memory_allocator());
  run.set_intra_op_thread_pool((*client)->backend().eigen_intra_op_thread_pool_device());
  auto found = (*executables)[0]->Run(pointers, run);
  if (!found.ok()) return found.status();
  auto literal = (*client)->ShapedBufferToLiteral(*found);
  if (!literal.ok()) return literal.status();
  xla::Literal plain = literal->Relayout(result_shape);
  std::string results;
  ForEachArray(plain, [&](const char* bytes, int64_t size) { results.append(bytes, size); });
  return results;
}

}  // namespace irgym

#endif  // IRGYM_EXECUTION_H_
