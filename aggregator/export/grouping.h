// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// What a process row and the thread rows in it stand for: the vendor's grouping options.
class Grouping {
 public:
  enum class Part : uint8_t { kInstanceId, kProcessId, kWorkerGid, kLncIdx, kThreadId };

  // Names as the vendor writes them; empty: instance_id,process_id and
  // worker_gid,lnc_idx,thread_id. INVALID_ARGUMENT names the one that is not allowed there and
  // those that are.
  static absl::StatusOr<Grouping> Parse(const std::vector<std::string>& primary,
                                        const std::vector<std::string>& secondary);

  // "i-0f207fb2a99bd2d08-pid1113579"
  std::string ProcessLabel(const TimelineStream& stream, uint64_t thread_id) const {
    return Label(primary_, stream, thread_id);
  }
  // "gid35-nc3-tid7"; the source is appended by the caller. Parts that are not known are left out.
  std::string RowLabel(const TimelineStream& stream, uint64_t thread_id) const {
    return Label(secondary_, stream, thread_id);
  }
  bool primary_has(Part part) const { return Has(primary_, part); }
  const std::vector<Part>& secondary() const { return secondary_; }
  // "gid35", "nc3", "tid7"; empty: not known.
  static std::string Text(Part part, const TimelineStream& stream, uint64_t thread_id);

 private:
  static bool Has(const std::vector<Part>& parts, Part part);
  static std::string Label(const std::vector<Part>& parts, const TimelineStream& stream,
                           uint64_t thread_id);

  std::vector<Part> primary_;
  std::vector<Part> secondary_;
};

}  // namespace neurontrace
