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

// What figures are derived from. Other names that versions of the runtime use for the same thing
// are known: device_exec is nc_exec_running, cc_exec is cc_running.
enum class DerivedType : uint8_t {
  kOther,
  kRunning,      // nc_exec_running: the device runs an execution
  kExecute,      // nrt_execute: the host's call
  kPrepare,      // kbl_exec_pre
  kCollective,   // cc_running
  kHostBarrier,  // enc_barrier
  kAllocate,     // nrt_dma_mem_alloc
  kDeallocate,   // nrt_dma_mem_dealloc
  kCopyIn,       // dmem_buf_copyin, dmem_buf_batch_copyin
  kCopyOut,      // dmem_buf_copyout, dmem_buf_batch_copyout
  kFramework,    // an event of a framework's trace: it has a name of its own
};

// Attributes that figures are derived from.
enum class DerivedField : uint8_t {
  kExecId,
  kOpId,
  kGid,
  kCcStream,
  kPeer,
  kAlgorithm,
  kModelId,
  kModelName,
  kSize,
  kUsage,
  kDevice,
  kHbm,
  kTotalBytes,
  kUsageTotalBytes,
  kChangedBytes,
  kReturnCode,
  kName,
  kProcess,
  kStepNumber,
};
inline constexpr size_t kDerivedFields = 19;

// What one shape holds of it: for each field the place of its key, by KeyScope. A plain value.
struct ShapeFields {
  static constexpr uint16_t kNone = 0xffff;

  DerivedType type = DerivedType::kOther;
  std::array<uint16_t, kDerivedFields> key = {};

  uint16_t of(DerivedField field) const { return key[static_cast<size_t>(field)]; }
};

// The fields of every shape of a reading, each worked out once. One thread at a time.
class ShapeFieldTable {
 public:
  // Shapes of a higher number are looked at again each time.
  static constexpr size_t kShapesMax = 16'384;

  // Valid until the next call.
  const ShapeFields& Of(const SharedShape& shape) {
    if (shape.number < by_number_.size() && by_number_[shape.number] != nullptr) [[likely]]
      return *by_number_[shape.number];
    return Make(shape);
  }

 private:
  const ShapeFields& Make(const SharedShape& shape);

  std::vector<std::unique_ptr<const ShapeFields>> by_number_;
  ShapeFields other_;
};

// The number in a text value; nullopt: it is none.
std::optional<uint64_t> NumberInText(std::string_view text);

// An attribute of the record's start (or only) event, by the place of its key; nullopt where it has
// none (ShapeFields::kNone), or one that is not a whole number of at least 0, which may have come
// as text.
inline std::optional<uint64_t> NumberAt(const TimelineRecord& record, uint16_t key) {
  const auto& keys = record.start().keys;
  if (key >= keys.size()) return std::nullopt;
  if (keys[key].type == ValueType::kUint) return record.values[key];
  if (keys[key].type != ValueType::kString) return std::nullopt;
  return NumberInText(record.text(record.values[key]));
}
inline std::optional<uint64_t> StartNumber(const TimelineRecord& record, const ShapeFields& fields,
                                           DerivedField field) {
  return NumberAt(record, fields.of(field));
}
// Its text; empty where it has none.
std::string_view StartText(const TimelineRecord& record, const ShapeFields& fields,
                           DerivedField field);
// The same of its stop. `fields` are those of the stop's shape.
std::optional<uint64_t> StopNumber(const TimelineRecord& record, const ShapeFields& fields,
                                   DerivedField field);

}  // namespace neurontrace
