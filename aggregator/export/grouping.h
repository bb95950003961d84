// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// What the process rows of a file and the thread rows in them represent: the vendor's grouping
// options. Constant after Parse, so that any thread may use it.
class Grouping {
 public:
  // The parts that a label can have, in the vendor's terms.
  enum class Part : uint8_t { kInstanceId, kProcessId, kWorkerGid, kLncIdx, kThreadId };

  // Takes names as the vendor writes them. Empty lists mean instance_id,process_id and
  // worker_gid,lnc_idx,thread_id. Fails with INVALID_ARGUMENT that names the unacceptable part and
  // lists the allowed ones.
  static absl::StatusOr<Grouping> Parse(const std::vector<std::string>& primary,
                                        const std::vector<std::string>& secondary);

  // Returns a label such as "i-0f207fb2a99bd2d08-pid1113579".
  std::string ProcessLabel(const TimelineStream& stream, uint64_t thread_id) const {
    return Label(primary_, stream, thread_id);
  }
  // Returns a label such as "gid35-nc3-tid7", to which the caller appends the source. Unknown parts
  // are omitted.
  std::string RowLabel(const TimelineStream& stream, uint64_t thread_id) const {
    return Label(secondary_, stream, thread_id);
  }
  bool primary_has(Part part) const { return Has(primary_, part); }
  const std::vector<Part>& secondary() const { return secondary_; }
  // Returns "gid35", "nc3" or "tid7", or an empty text if that is not known.
  static std::string Text(Part part, const TimelineStream& stream, uint64_t thread_id);

 private:
  // Returns whether the list contains the part.
  static bool Has(const std::vector<Part>& parts, Part part);
  // Joins the texts of the parts with '-', without those that are not known for the stream.
  static std::string Label(const std::vector<Part>& parts, const TimelineStream& stream,
                           uint64_t thread_id);

  // In the order of the labels; never empty after Parse, and without repetitions.
  std::vector<Part> primary_;
  std::vector<Part> secondary_;
};

}  // namespace neurontrace
