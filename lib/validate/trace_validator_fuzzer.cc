// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace file: read to the end without a crash, and to the same report however the
// bytes arrive.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "lib/validate/trace_report.h"
#include "lib/validate/trace_validator.h"

namespace neurontrace {
namespace {

std::string Run(std::string_view file, size_t step) {
  const auto report =
      ValidateTrace([&file, step](char* out, size_t size) -> absl::StatusOr<size_t> {
        const size_t count = std::min({step, size, file.size()});
        std::memcpy(out, file.data(), count);
        file.remove_prefix(count);
        return count;
      });
  if (!report.ok()) std::abort();
  std::string text = TrackTree(*report);
  uint64_t counted = 0;
  for (const TraceFinding& finding : report->findings.findings()) {
    text += finding.words;
    text += '\n';
    if (finding.at.packet > report->summary.packets + 1) std::abort();
    ++counted;
  }
  if (counted > report->findings.errors() + report->findings.warnings()) std::abort();
  uint64_t slices = 0;
  for (const TraceTrack& track : report->tracks) slices += track.slices;
  if (slices != report->summary.slices) std::abort();
  return text;
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  if (neurontrace::Run(file, size + 1) != neurontrace::Run(file, 7)) std::abort();
  return 0;
}
