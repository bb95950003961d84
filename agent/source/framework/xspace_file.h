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

namespace neurontrace {

// The first reading of an XSpace file: its facts, then all its bytes for their mark.
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

// The second one: its events, then all its bytes for their mark.
class XSpaceFileReader final : public EventReader {
 public:
  XSpaceFileReader(TraceFile file, const TraceFileFacts& facts, uint64_t first_element);

  Kind Next() override;
  const FrameworkEvent& event() const override { return reader_.event(); }
  const Loss& loss() const override { return refused_ ? *refused_ : reader_.loss(); }
  // Has none of these three: all that is damaged or odd is a loss or an attribute.
  const std::string& damage() const override { return damage_; }
  const std::vector<Oddity>& oddities() const override { return oddities_; }
  Remark open_spans() const override { return {}; }
  uint64_t position() const override { return reader_.position(); }
  uint64_t bytes_read() const override { return reader_.bytes_read(); }
  absl::StatusOr<bool> Drain() override;
  uint64_t content_mark() override { return file_->ContentMark(); }
  void AcceptState(const FileState& state) override { file_->AcceptState(state); }

 private:
  std::unique_ptr<TraceFile> file_;
  const std::string refusal_;
  std::optional<Loss> refused_;
  XSpaceReader reader_;
  const std::string damage_;
  const std::vector<Oddity> oddities_;
};

// The base of a JSON file that names none, from the XSpace of its session beside it. In steps.
class SessionBase {
 public:
  // nullptr where no such file lies beside `path`. `root`: see TraceFile::Open.
  static std::unique_ptr<SessionBase> Find(const std::string& path, const std::string& root);

  // True when it is done.
  bool Step() { return scan_.Step(); }
  // Fills in the base, if there is one, and where it is from; else why not.
  void Apply(TraceFileFacts& facts) const;

 private:
  SessionBase(std::string name, TraceFile file);

  const std::string name_;
  std::unique_ptr<TraceFile> file_;
  XSpaceScan scan_;
};

}  // namespace neurontrace
