// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/source/framework/trace_file.h"
#include "agent/source/framework/trace_file_reading.h"
#include "agent/source/framework/xspace_reader.h"

// The readings of an XSpace file. They have one file together because they share how they read it:
// planes at random places, then all bytes for the content mark.
namespace neurontrace {

// The first reading of an XSpace file: its facts, then all its bytes for the content mark. Planes
// are read at random places, for which gzip is not suited: a compressed XSpace is refused.
class XSpaceFileScan final : public FactsReader {
 public:
  explicit XSpaceFileScan(TraceFile file);
  absl::StatusOr<bool> Step(uint64_t bytes) override;
  const TraceFileFacts& facts() const override { return facts_; }

 private:
  std::unique_ptr<TraceFile> file_;
  std::optional<XSpaceScan> scan_;  // until it is done
  TraceFileFacts facts_;
};

// The second reading: its events, then all its bytes for the content mark. Created by
// TraceFileStream. See EventReader for what its functions return.
class XSpaceFileReader final : public EventReader {
 public:
  // `facts` are those of the first reading of the same content; `pid` is the process that wrote it,
  // if its folder names it, else 0.
  XSpaceFileReader(TraceFile file, const TraceFileFacts& facts, uint64_t first_element,
                   uint32_t pid);

  Kind Next() override;
  const FrameworkEvent& event() const override { return reader_.event(); }
  const Loss& loss() const override { return refused_ ? *refused_ : reader_.loss(); }
  // Always empty, as the next two: damage is a loss, and what is odd is an attribute.
  const std::string& damage() const override { return damage_; }
  const std::vector<Anomaly>& anomalies() const override { return anomalies_; }
  Remark open_spans() const override { return {}; }
  uint64_t position() const override { return reader_.position(); }
  uint64_t bytes_read() const override { return reader_.bytes_read(); }
  absl::StatusOr<bool> Drain() override;
  uint64_t content_mark() override { return file_->ContentMark(); }
  void AcceptState(const FileState& state) override { file_->AcceptState(state); }

 private:
  std::unique_ptr<TraceFile> file_;
  const std::string refusal_;
  // The only part of a file that is refused.
  std::optional<Loss> refused_;
  XSpaceReader reader_;
  const std::string damage_;
  const std::vector<Anomaly> anomalies_;
};

// Finds the time base of a JSON file that names none: the session's begin in the XSpace beside it,
// which JAX writes for the same session. Works in steps. On the agent's sequence.
class SessionBase {
 public:
  // Returns nullptr if no such file lies beside `path`. For `root` see TraceFile::Open.
  static std::unique_ptr<SessionBase> Find(const std::string& path, const std::string& root);

  // Does a bounded piece of work; returns true when it is done.
  bool Step() { return scan_.Step(); }
  // Sets the base in `facts` and a text about its origin, or the reason why there is none.
  void Apply(TraceFileFacts& facts) const;

 private:
  SessionBase(std::string name, TraceFile file);

  // Of the XSpace, without its folder, for messages.
  const std::string name_;
  std::unique_ptr<TraceFile> file_;
  XSpaceScan scan_;
};

}  // namespace neurontrace
