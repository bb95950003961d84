// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/framework/element_cutter.h"
#include "agent/source/framework/mapping_entry_parser.h"
#include "agent/source/framework/span_joiner.h"
#include "agent/source/framework/trace_event_parser.h"
#include "agent/source/framework/trace_file.h"
#include "agent/source/framework/trace_file_reading.h"
#include "lib/trace/loss.h"

namespace neurontrace {

// The second reading of a file in Chrome's JSON, or of a mapping file; TraceFileScan is the first.
// Created by TraceFileStream with the facts of the first reading, which decide how times are
// placed. Element numbers are those of ElementCutter's elements, damaged ones included. See
// EventReader for what its functions return. Used by one thread at a time.
class TraceFileReader final : public EventReader {
 public:
  // Elements before `first_element` give no events, as an earlier run of the agent has stored them,
  // but the same losses and damage as before.
  TraceFileReader(TraceFile file, const TraceFileFacts& facts, uint64_t first_element = 0);

  Kind Next() override;
  const FrameworkEvent& event() const override { return event_; }
  const Loss& loss() const override { return loss_; }
  const std::string& damage() const override { return damage_; }
  const std::vector<Anomaly>& anomalies() const override { return anomalies_; }
  Remark open_spans() const override;
  uint64_t position() const override { return position_; }
  uint64_t bytes_read() const override { return cutter_.position(); }
  absl::StatusOr<bool> Drain() override { return cutter_.Drain(); }
  uint64_t content_mark() override { return file_->ContentMark(); }
  void AcceptState(const FileState& state) override { file_->AcceptState(state); }
  size_t window_bytes_max() const { return cutter_.window_bytes_max(); }

 private:
  // Turns a piece of the file into a part of the reading.
  Kind HandlePiece(const ElementCutter::Piece& piece);
  Kind HandleElement(std::string_view text);
  // Parses an element with the parser for the kind of file.
  absl::Status Parse(std::string_view text);
  // Adds remarks about the element at hand to oddities_.
  void AddRemarks(const absl::Status& status, SpanJoiner::Outcome outcome);
  // Set what damage() or loss() returns, and return the kind. LoseRest ends the reading.
  Kind ReportDamage(std::string_view what);
  Kind LoseElement(LossReason reason, std::string_view why);
  Kind LoseRest(LossReason reason, std::string_view why);

  // On the heap, since the cutter's input refers to it.
  std::unique_ptr<TraceFile> file_;
  ElementCutter cutter_;
  TraceEventParser parser_;
  std::optional<MappingEntryParser> entries_;  // of a mapping file
  SpanJoiner spans_;
  const std::string refusal_;   // of a file that is not to be read
  const std::string shortage_;  // of a file that is not whole
  uint64_t first_element_;
  uint64_t position_ = 0;
  bool ended_ = false;
  std::vector<Anomaly> anomalies_;
  FrameworkEvent event_;
  std::string repaired_;  // the element at hand, where it had to be changed
  Loss loss_;
  std::string damage_;
};

}  // namespace neurontrace
