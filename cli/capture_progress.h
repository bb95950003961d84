// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cli/terminal_region.h"
#include "cli/worker_ranks.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// When all began, or will, on the aggregator's clock: the planned moment where it is one, else when
// the capture was asked for.
uint64_t BeginOf(const v1::Capture& capture);

// Whether it records, and all of it does: those that begin at a planned moment say so before it.
bool IsPastBegin(const v1::Capture& capture);

// "arming", "begins in 80 ms", "recording", "waiting for execution 4711", "storing the rest" …
std::string PhaseOf(const v1::Capture& capture);

// A capture that continues, as lines for a terminal: its phase, sums, and as many workers as there
// is room for: in the order of jobs and ranks if all fit, else the worst first. Rates are of about
// the last second. One thread.
class CaptureProgress {
 public:
  // Takes in how the capture is now.
  void Update(const v1::Capture& capture);

  // `hint` is the last line, where it is not empty. No line is longer than the window is wide.
  std::vector<std::string> Lines(const WorkerRanks& ranks, const WindowSize& window,
                                 const std::string& hint) const;

 private:
  // Something that grows.
  struct Meter {
    uint64_t at_ns = 0;
    uint64_t count = 0;
    double per_second = -1;  // below 0: not known yet
    void Take(uint64_t now_ns, uint64_t now);
  };
  // Instance, pid, start time, framework.
  using Key = std::tuple<std::string, uint32_t, uint64_t, bool>;
  static Key KeyOf(const v1::CaptureWorkerStatus& worker);

  std::string FirstLine() const;
  std::string SecondLine() const;
  double RateOf(const v1::CaptureWorkerStatus& worker) const;
  // 0: left out, 1: it lost something, 2: it is waited for, 3: nothing is to be said of it.
  int GradeOf(const v1::CaptureWorkerStatus& worker) const;
  // The rows of a table with room for so many.
  std::vector<const v1::CaptureWorkerStatus*> InOrder(const WorkerRanks& ranks, size_t room) const;
  std::vector<std::string> Row(const v1::CaptureWorkerStatus& worker,
                               const WorkerRanks& ranks) const;

  v1::Capture capture_;
  std::map<Key, Meter> events_of_;
  Meter events_;
  Meter bytes_;
};

}  // namespace neurontrace::cli
