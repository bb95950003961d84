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

// Returns when all workers began, or will begin, in ns of the aggregator's clock: the planned
// moment if there is one, else when the capture was asked for.
uint64_t BeginOf(const v1::Capture& capture);

// Returns whether the capture records in all workers: those that begin at a planned moment report
// so before it.
bool IsPastBegin(const v1::Capture& capture);

// Returns the phase for people: "arming", "begins in 80 ms", "recording", "waiting for execution
// 4711", "storing the rest" …
std::string PhaseOf(const v1::Capture& capture);

// Returns how many events workers have read that are not stored yet.
uint64_t EventsWaiting(const v1::Capture& capture);

// A running capture as lines for a terminal: its phase, sums, and as many workers as there is room
// for. They are in the order of jobs and ranks if all fit, otherwise the worst come first. Rates
// are averages over about the last second. Used by CaptureWatch on one thread.
class CaptureProgress {
 public:
  // Records the current state of the capture. Called at every message of the aggregator; its clock
  // measures the rates, so that a delay of the network does not distort them.
  void Update(const v1::Capture& capture);

  // Returns the lines; `hint` is the last one if it is not empty. No line is wider than the window.
  std::vector<std::string> Lines(const WorkerRanks& ranks, const WindowSize& window,
                                 const std::string& hint) const;

 private:
  // Estimates the rate of a growing count from two readings about a second apart. Times are ns of
  // the aggregator's clock; 0: no reading yet.
  struct Meter {
    uint64_t at_ns = 0;
    uint64_t count = 0;
    double per_second = -1;  // negative: unknown
    // Takes a reading. Those that follow too soon are ignored.
    void Take(uint64_t now_ns, uint64_t now);
  };
  // Instance, pid, start time, framework. A pid alone may be used again.
  using Key = std::tuple<std::string, uint32_t, uint64_t, bool>;
  static Key KeyOf(const v1::CaptureWorkerStatus& worker);

  // Return the lines above the table; see the examples in the .cc file.
  std::string FirstLine() const;
  std::string SecondLine() const;
  std::string StoreLine() const;
  // Returns events per second, or a negative number if it is unknown.
  double RateOf(const v1::CaptureWorkerStatus& worker) const;
  // Returns how bad a worker's state is. 0: left out, 1: it lost events, 2: it is awaited, 3:
  // nothing to report.
  int GradeOf(const v1::CaptureWorkerStatus& worker) const;
  // Returns pointers into `capture_`, best placed first, for a table with room for `room` rows.
  std::vector<const v1::CaptureWorkerStatus*> InOrder(const WorkerRanks& ranks, size_t room) const;
  // Returns the cells of a worker in the order of the table's header.
  std::vector<std::string> Row(const v1::CaptureWorkerStatus& worker,
                               const WorkerRanks& ranks) const;

  v1::Capture capture_;
  std::map<Key, Meter> events_of_;
  Meter events_;
  Meter bytes_;
};

}  // namespace neurontrace::cli
