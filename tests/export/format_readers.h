// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/export/exporter.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "aggregator/timeline/timeline_filter.h"
#include "tests/export/seen_capture.h"

namespace neurontrace {

SeenCapture ReadPerfetto(ChunkSource& source, const TimelineFilter& filter);
SeenCapture ReadPerfettoGzip(ChunkSource& source, const TimelineFilter& filter);
SeenCapture ReadPerfettoPackets(ChunkSource& source, const TimelineFilter& filter);
SeenCapture ReadPerfettoByTime(ChunkSource& source, const TimelineFilter& filter);
SeenCapture ReadPerfettoByWorker(ChunkSource& source, const TimelineFilter& filter);
SeenCapture ReadJson(ChunkSource& source, const TimelineFilter& filter);
SeenCapture ReadEvents(ChunkSource& source, const TimelineFilter& filter);
SeenCapture ReadChrome(ChunkSource& source, const TimelineFilter& filter);
SeenCapture ReadXSpaces(ChunkSource& source, const TimelineFilter& filter);
SeenCapture ReadParquet(ChunkSource& source, const TimelineFilter& filter);

// The files of an export, by name; `warnings`, unless null, receives the export's warnings.
std::map<std::string, std::string> ExportFiles(std::string_view format, ChunkSource& source,
                                               const ExportRequest& request,
                                               std::vector<std::string>* warnings = nullptr);

using Texts = std::map<std::string, std::string>;

// 0 where there is none.
uint64_t NumberIn(const Texts& values, const std::string& key);
// Empty where there is none.
std::string TextIn(const Texts& values, const std::string& key);
uint64_t NumberOf(std::string_view text);

// A value as text, whatever its type: numbers as fmt writes them.
std::string TextOf(simdjson::dom::element value);
// A test failure for a key that is there twice.
Texts ValuesOf(simdjson::dom::object object);
void ReadAttributes(const Texts& values, SeenEvent& seen);

// Of a process and a row as their names say them: docs/formats/pftrace.md, "The tree".
void ReadProcessName(std::string_view label, std::string_view instance_id, SeenEvent& seen);
void ReadRowName(std::string_view row, SeenEvent& seen);

// Of spans that are drawn on one line, begin and end: no two cross.
void ExpectNested(std::vector<std::pair<uint64_t, uint64_t>> spans, std::string_view line);

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
