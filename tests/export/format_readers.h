// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/timeline/fake_chunk_source.h"
#include "aggregator/timeline/timeline_filter.h"
#include "tests/export/hostile_capture.h"

namespace neurontrace {

// A format, and what a program that knows it and not us finds in an export: a new format adds one
// row to FormatReaders().
struct FormatReader {
  std::string_view name;
  // A filter with a time window shows whole spans that overlap it.
  bool has_spans;
  // Exports the part of a capture and reads it back. What has no id of a recorded event (what is
  // derived, or said besides) is passed over. A test failure for an export that is not sound.
  std::vector<SeenEvent> (*read)(ChunkSource& source, const TimelineFilter& filter);
};
std::span<const FormatReader> FormatReaders();

}  // namespace neurontrace
