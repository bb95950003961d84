// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fake_nrt/execution_planner.h"
#include "tests/fake_nrt/fake_nrt.h"

namespace neurontrace {

// The file of everything that entered a ring: tab-separated lines under a header line with the
// names of the columns. Written in whole lines, so that a killed process leaves at most one torn
// line at the end. Each thread writes through a TruthWriter of its own.
class GroundTruth {
 public:
  // An empty path: nothing is written. Check ok() before use.
  explicit GroundTruth(const std::string& path);
  ~GroundTruth();
  GroundTruth(const GroundTruth&) = delete;
  GroundTruth& operator=(const GroundTruth&) = delete;

  bool ok() const { return ok_.load(); }
  bool wanted() const { return fd_ >= 0; }
  // Appends whole lines. A write that fails turns ok() false for good.
  void Append(std::string_view lines);

 private:
  int fd_ = -1;
  std::atomic<bool> ok_{true};
};

// The lines of one core, buffered up to 64 KiB or the end of an execution.
class TruthWriter {
 public:
  TruthWriter(GroundTruth& truth, uint32_t rank, uint32_t nc_idx)
      : truth_(truth), rank_(rank), nc_idx_(nc_idx) {}
  ~TruthWriter() { Flush(); }

  void Accepted(const PlannedEvent& event, const fake_nrt_receipt& receipt, uint64_t exec_id);
  void Flush();

 private:
  GroundTruth& truth_;
  const uint32_t rank_;
  const uint32_t nc_idx_;
  std::string lines_;
};

}  // namespace neurontrace
