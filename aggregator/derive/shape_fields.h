// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// The event types that figures are derived from. Versions of the runtime use two names for some:
// device_exec is nc_exec_running, cc_exec is cc_running. An event of any other type contributes to
// no figure but durations.
enum class DerivedType : uint8_t {
  kOther,
  kRunning,         // nc_exec_running: the device runs an execution
  kExecute,         // nrt_execute: the host's call
  kPrepare,         // kbl_exec_pre
  kPost,            // kbl_exec_post
  kCollective,      // cc_running
  kHostBarrier,     // enc_barrier
  kDeviceBarrier,   // cc_exec_barrier
  kTensorTransfer,  // nrt_tensor_read, nrt_tensor_write, their batches, nrt_tensor_copy
  kTensorMemory,    // nrt_tensor_allocate, nrt_tensor_free
  kDeviceFault,     // numerical_err, an instant
  kAllocate,        // nrt_dma_mem_alloc
  kDeallocate,      // nrt_dma_mem_dealloc
  kCopyIn,          // dmem_buf_copyin, dmem_buf_batch_copyin
  kCopyOut,         // dmem_buf_copyout, dmem_buf_batch_copyout
  // An event of a framework's trace, which has a name of its own.
  kFramework,
};

// The attributes that figures are derived from. shape_fields.cc has their names. Used as an index
// into ShapeFields::key.
enum class DerivedField : uint8_t {
  // exec_id: the execution, unique on one core for a time.
  kExecId,
  // op_id: the operation within an execution.
  kOpId,
  // gid: a rank or the number of a group, see CommunicatorTable.
  kGid,
  // stream_id: the stream of collectives on a core.
  kCcStream,
  // peer_id: the other side of a barrier between two cores.
  kPeer,
  kAlgorithm,
  kModelId,
  kModelName,
  // size, total_size: bytes of a transfer.
  kSize,
  // usage_type: see HbmCategoryOf.
  kUsage,
  // mla_idx, and hbm_idx for kHbm.
  kDevice,
  kHbm,
  // total_bytes, usage_type_total_bytes: in use after the event, of all categories and of this one.
  kTotalBytes,
  kUsageTotalBytes,
  // allocated_bytes, freed_bytes.
  kChangedBytes,
  kReturnCode,
  // name, and pid for kProcess: of a framework's event.
  kName,
  kProcess,
  // step_num of JAX's StepTraceAnnotation.
  kStepNumber,
  // payload: the number that an annotation carries. The last one: kDerivedFields counts to it.
  kPayload,
};
inline constexpr size_t kDerivedFields = static_cast<size_t>(DerivedField::kPayload) + 1;

// For one shape, the index of the key of each field, or kNone. A plain value.
struct ShapeFields {
  static constexpr uint16_t kNone = 0xffff;

  DerivedType type = DerivedType::kOther;
  std::array<uint16_t, kDerivedFields> key = {};

  uint16_t of(DerivedField field) const { return key[static_cast<size_t>(field)]; }
};

// The fields of every shape of a reading, each found once, so that events need no comparison of
// names. Used by one thread at a time. Shared by all finders of one reading.
class ShapeFieldTable {
 public:
  // Shapes with a higher number are examined each time.
  static constexpr size_t kShapesMax = 16'384;

  // The result is valid until the next call.
  const ShapeFields& Of(const SharedShape& shape) {
    if (shape.number < by_number_.size() && by_number_[shape.number] != nullptr) [[likely]]
      return *by_number_[shape.number];
    return Make(shape);
  }

 private:
  // Examines the shape, and keeps the result if its number is below kShapesMax.
  const ShapeFields& Make(const SharedShape& shape);

  // Indexed by number; pointers, so that results stay where they are.
  std::vector<std::unique_ptr<const ShapeFields>> by_number_;
  ShapeFields other_;
};

// Returns the number if the whole text is one, or nullopt. Only decimal digits are accepted.
std::optional<uint64_t> NumberInText(std::string_view text);

// Returns an attribute of the record's start (or only) event, by the index of its key. Returns
// nullopt if there is none (ShapeFields::kNone) or if it is not a whole number of at least 0, which
// may be stored as text.
inline std::optional<uint64_t> NumberAt(const TimelineRecord& record, uint16_t key) {
  const auto& keys = record.start().keys;
  if (key >= keys.size()) return std::nullopt;
  if (keys[key].type == ValueType::kUint) return record.values[key];
  if (keys[key].type != ValueType::kString) return std::nullopt;
  return NumberInText(record.text(record.values[key]));
}
// The same by field. `fields` are those of the start's shape.
inline std::optional<uint64_t> StartNumber(const TimelineRecord& record, const ShapeFields& fields,
                                           DerivedField field) {
  return NumberAt(record, fields.of(field));
}
// Returns the text of the start's attribute, or an empty one. Points into the record's batch.
std::string_view StartText(const TimelineRecord& record, const ShapeFields& fields,
                           DerivedField field);
// Returns what StartNumber does, for the record's stop; nullopt if the record has no stop. `fields`
// are those of the stop's shape.
std::optional<uint64_t> StopNumber(const TimelineRecord& record, const ShapeFields& fields,
                                   DerivedField field);

}  // namespace neurontrace
