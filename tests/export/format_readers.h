// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "aggregator/timeline/fake_chunk_source.h"
#include "aggregator/timeline/timeline_filter.h"
#include "tests/export/seen_capture.h"

namespace neurontrace {

// A format, and what a program that knows it and not us finds in an export: a new format adds one
// row to FormatReaders().
struct FormatReader {
  std::string_view name;
  // Exports the part of a capture and reads it back. What has no id of a recorded event (what is
  // derived, or said besides) is passed over. A test failure for an export that is not sound.
  SeenCapture (*read)(ChunkSource& source, const TimelineFilter& filter);
  // Takes out of an event what the format does not hold, by its definition in docs/formats.
  void (*reduce)(SeenEvent& event) = [](SeenEvent&) {};
  // A filter with a time window shows whole spans that overlap it.
  bool has_spans = true;
  bool has_arrows = true;
  bool has_samples = true;
};
std::span<const FormatReader> FormatReaders();

}  // namespace neurontrace
