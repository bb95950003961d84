// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "agent/source/framework/element_cutter.h"
#include "agent/source/framework/time_census.h"
#include "agent/source/framework/trace_event_parser.h"
#include "agent/source/framework/trace_file.h"
#include "agent/source/framework/trace_file_reading.h"

namespace neurontrace {

// The first reading of a file in Chrome's JSON, or of a mapping file: collects the facts, and the
// times that decide which are plausible. Every piece of the file is cut, but only as many elements
// are parsed as the times need. Damage is counted here and described by the second reading. See
// FactsReader. Used by one thread at a time.
class TraceFileScan final : public FactsReader {
 public:
  // Returns the options of a cutter for such a file; the second reading uses them too.
  static ElementCutter::Options CutterOptions(ContentKind kind);

  // `kind` is kTraceEventJson or kMapping.
  TraceFileScan(TraceFile file, ContentKind kind);
  TraceFileScan(const TraceFileScan&) = delete;
  TraceFileScan& operator=(const TraceFileScan&) = delete;

  absl::StatusOr<bool> Step(uint64_t bytes) override;
  const TraceFileFacts& facts() const override { return facts_; }

 private:
  bool is_mapping() const { return facts_.kind == ContentKind::kMapping; }
  // Each takes one part of the file and updates the facts.
  void HandlePiece(const ElementCutter::Piece& piece);
  void HandleMember(const ElementCutter::Piece& piece);
  void ParseBase(std::string_view token);
  void ParseDistributedInfo(std::string_view text);
  void HandleMappingMember(const ElementCutter::Piece& piece);
  void HandleElement(std::string_view element);
  // Refuses the file, so that nothing of it is read. The first reason counts.
  void Refuse(std::string_view why);
  // Completes the facts; an empty `problem` means that the file ended as it should.
  void End(std::string problem);
  void EndMapping();
  void EndTrace();

  std::unique_ptr<TraceFile> file_;
  ElementCutter cutter_;
  TraceEventParser parser_;  // without a base: only for the times
  TimeCensus times_;
  bool has_version_ = false;  // of a mapping file
  bool has_event_ = false;    // an element that looks like one
  bool is_malformed_ = false;
  bool ended_ = false;  // all but the bytes behind the trace are read
  std::string refusal_;
  std::string first_bytes_;
  TraceFileFacts facts_;
};

}  // namespace neurontrace
