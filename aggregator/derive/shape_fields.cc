// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/shape_fields.h"

#include <charconv>
#include <span>
#include <utility>

namespace neurontrace {
namespace {

// Event types of the Neuron runtime's system profile; docs/formats/derived.md lists what each
// figure uses.
constexpr std::pair<std::string_view, DerivedType> kDerivedTypes[] = {
    {"nc_exec_running", DerivedType::kRunning},
    {"device_exec", DerivedType::kRunning},
    {"nrt_execute", DerivedType::kExecute},
    {"kbl_exec_pre", DerivedType::kPrepare},
    {"kbl_exec_post", DerivedType::kPost},
    {"cc_running", DerivedType::kCollective},
    {"cc_exec", DerivedType::kCollective},
    {"enc_barrier", DerivedType::kHostBarrier},
    {"cc_exec_barrier", DerivedType::kDeviceBarrier},
    {"nrt_tensor_read", DerivedType::kTensorTransfer},
    {"nrt_tensor_read_batch", DerivedType::kTensorTransfer},
    {"nrt_tensor_write", DerivedType::kTensorTransfer},
    {"nrt_tensor_write_batch", DerivedType::kTensorTransfer},
    {"nrt_tensor_copy", DerivedType::kTensorTransfer},
    {"nrt_tensor_allocate", DerivedType::kTensorMemory},
    {"nrt_tensor_free", DerivedType::kTensorMemory},
    {"nrt_dma_mem_alloc", DerivedType::kAllocate},
    {"nrt_dma_mem_dealloc", DerivedType::kDeallocate},
    {"dmem_buf_copyin", DerivedType::kCopyIn},
    {"dmem_buf_batch_copyin", DerivedType::kCopyIn},
    {"dmem_buf_copyout", DerivedType::kCopyOut},
    {"dmem_buf_batch_copyout", DerivedType::kCopyOut},
};

// A key by name and scope, with the field that it is.
struct FieldName {
  std::string_view name;
  KeyScope scope;
  DerivedField field;
};
// Two names can lead to one field, because event types name the same thing differently.
constexpr FieldName kFieldNames[] = {
    {"exec_id", KeyScope::kData, DerivedField::kExecId},
    {"op_id", KeyScope::kData, DerivedField::kOpId},
    {"gid", KeyScope::kData, DerivedField::kGid},
    {"stream_id", KeyScope::kData, DerivedField::kCcStream},
    {"peer_id", KeyScope::kData, DerivedField::kPeer},
    {"algorithm", KeyScope::kData, DerivedField::kAlgorithm},
    {"model_id", KeyScope::kData, DerivedField::kModelId},
    {"model_name", KeyScope::kData, DerivedField::kModelName},
    {"size", KeyScope::kData, DerivedField::kSize},
    {"total_size", KeyScope::kData, DerivedField::kSize},
    {"usage_type", KeyScope::kData, DerivedField::kUsage},
    {"mla_idx", KeyScope::kData, DerivedField::kDevice},
    {"hbm_idx", KeyScope::kData, DerivedField::kHbm},
    {"total_bytes", KeyScope::kData, DerivedField::kTotalBytes},
    {"usage_type_total_bytes", KeyScope::kData, DerivedField::kUsageTotalBytes},
    {"allocated_bytes", KeyScope::kData, DerivedField::kChangedBytes},
    {"freed_bytes", KeyScope::kData, DerivedField::kChangedBytes},
    {"return_code", KeyScope::kData, DerivedField::kReturnCode},
    {"name", KeyScope::kTop, DerivedField::kName},
    {"pid", KeyScope::kTop, DerivedField::kProcess},
    {"step_num", KeyScope::kData, DerivedField::kStepNumber},
    {"payload", KeyScope::kData, DerivedField::kPayload},
};

// Returns the type by phase and name; kOther for events that no figure uses.
DerivedType DerivedTypeOf(const Shape& shape) {
  // Only framework files have these phases; the runtime's spans have starts and stops.
  if (shape.phase == Phase::kComplete || shape.phase == Phase::kBegin) {
    return DerivedType::kFramework;
  }
  // Also the only instant: hw_notify, which names no fault, comes in every execution.
  if (shape.phase == Phase::kInstant && shape.event_type == "numerical_err") {
    return DerivedType::kDeviceFault;
  }
  if (shape.phase != Phase::kStart && shape.phase != Phase::kStop) return DerivedType::kOther;
  for (const auto& [name, type] : kDerivedTypes) {
    if (shape.event_type == name) return type;
  }
  return DerivedType::kOther;
}

// Compares every key with every name once; the result serves all events of the shape.
ShapeFields FieldsOf(const Shape& shape) {
  ShapeFields fields;
  fields.type = DerivedTypeOf(shape);
  fields.key.fill(ShapeFields::kNone);
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    for (const FieldName& known : kFieldNames) {
      if (shape.keys[i].name != known.name || shape.keys[i].scope != known.scope) continue;
      uint16_t& key = fields.key[static_cast<size_t>(known.field)];
      // The first wins: two names of one field in one shape are not expected.
      if (key == ShapeFields::kNone) key = static_cast<uint16_t>(i);
    }
  }
  return fields;
}

}  // namespace

const ShapeFields& ShapeFieldTable::Make(const SharedShape& shape) {
  if (shape.number >= kShapesMax) return other_ = FieldsOf(shape.shape);
  if (shape.number >= by_number_.size()) by_number_.resize(shape.number + 1);
  auto& known = by_number_[shape.number];
  known = std::make_unique<const ShapeFields>(FieldsOf(shape.shape));
  return *known;
}

std::optional<uint64_t> NumberInText(std::string_view text) {
  uint64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// Only texts count: other types have no text.
std::string_view StartText(const TimelineRecord& record, const ShapeFields& fields,
                           DerivedField field) {
  const uint16_t key = fields.of(field);
  // Also true for kNone, which is larger than any index.
  if (key >= record.start_values().size()) return {};
  if (record.start().keys[key].type != ValueType::kString) return {};
  return record.text(record.start_values()[key]);
}

// The stop has a shape and values of its own.
std::optional<uint64_t> StopNumber(const TimelineRecord& record, const ShapeFields& fields,
                                   DerivedField field) {
  if (!record.has_stop()) return std::nullopt;
  const uint16_t key = fields.of(field);
  const auto values = record.stop_values();
  if (key >= values.size()) return std::nullopt;
  const ValueType type = record.stop().keys[key].type;
  if (type == ValueType::kUint) return values[key];
  if (type != ValueType::kString) return std::nullopt;
  return NumberInText(record.text(values[key]));
}

}  // namespace neurontrace
