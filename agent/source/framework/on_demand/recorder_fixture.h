// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "agent/source/framework/on_demand/framework_recorder.h"
#include "agent/source/neuron/tap/fake_proc.h"
#include "agent/source/source_metrics.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"

namespace neurontrace {

// For tests of FrameworkRecorders: a clock, a proc file system and one capture, whose workers begin
// at ten times their pid.
class RecorderFixture : public ::testing::Test {
 protected:
  static constexpr uint64_t kSecondNs = 1'000'000'000;

  virtual FrameworkRecorder& recorder() = 0;

  static WorkerIdentity Worker(uint32_t pid) {
    return {.instance_id = "i-1", .boot_id = "boot", .pid = pid, .start_time_ticks = pid * 10};
  }
  FrameworkOrder Order(std::vector<WorkerIdentity> workers, uint64_t ahead_ns = 7 * kSecondNs) {
    return {.capture_id = capture_,
            .workers = std::move(workers),
            .begin_realtime_ns = clock_.RealtimeNs() + ahead_ns,
            .duration_ns = 20 * kSecondNs};
  }
  void Pass(uint64_t ns) {
    clock_.AdvanceNs(ns);
    recorder().Poll();
  }
  FrameworkTrace TraceOf(uint32_t pid) {
    for (const FrameworkTrace& trace : recorder().Traces(capture_)) {
      if (trace.worker.pid == pid) return trace;
    }
    return {};
  }
  FrameworkTraceState StateOf(uint32_t pid) { return TraceOf(pid).state; }

  FakeClock clock_;
  SeededRandom random_{3};
  FakeProc proc_;
  AgentSourceMetrics metrics_;
  CaptureId capture_ = CaptureId::Make(clock_, random_);
};

}  // namespace neurontrace
