// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/export/export_fixture.h"

namespace neurontrace {

// A job of eight ranks on two instances that meet in a collective of each of forty executions. One
// rank's device can need longer; all others then wait for it.
class StragglerFixture : public ExportFixture {
 protected:
  static constexpr uint32_t kRanks = 8;
  static constexpr uint64_t kExecutions = 40;
  static constexpr uint64_t kMs = 1'000'000;
  static constexpr uint64_t kStepNs = 10 * kMs;
  static constexpr uint64_t kExcessNs = 3 * kMs;
  static constexpr uint32_t kSlow = 5;

  static std::string InstanceOf(uint32_t rank) { return rank < kRanks / 2 ? "i-a" : "i-b"; }

  // nullopt: no rank is slow.
  void AddJob(std::optional<uint32_t> slow) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      const uint32_t stream =
          source_.AddStream(Core(InstanceOf(rank), 100 + rank, 0),
                            {RankEvidence{RankSource::kCommunicator, rank, kRanks, "test"}});
      for (uint64_t i = 0; i < kExecutions; ++i) AddExecution(rank, i, slow);
      Close(stream);
    }
  }

 private:
  void AddExecution(uint32_t rank, uint64_t number, std::optional<uint32_t> slow) {
    const uint64_t begin = kBase + number * kStepNs;
    const uint64_t exec_id = number + 1;
    const uint64_t tracking = exec_id * 10;
    // Ranks differ a little, as real ones do, and differently in each execution.
    const uint64_t noise_ns = (rank * 7 + number * 13) % 11 * 1'000;
    const uint64_t work_ns = 4 * kMs + noise_ns + (slow == rank ? kExcessNs : 0);
    script_.Span("nrt_execute", begin, begin + kMs / 10, tracking, 7,
                 {{"model_name", std::string("llama")}});
    script_.Span("kbl_exec_pre", begin + kMs / 50, begin + kMs / 20, tracking + 1, 7,
                 {{"exec_id", exec_id}, {"model_name", std::string("llama")}});
    script_.Start("nc_exec_running", begin + kMs / 5, tracking + 2, 7,
                  {{"exec_id", exec_id}, {"device_core_idx", uint64_t{0}}});
    script_.Span("cc_running", begin + kMs / 5 + work_ns, begin + 8 * kMs, tracking + 3, 7,
                 {{"exec_id", exec_id}, {"op_id", uint64_t{17}}});
    script_.Stop("nc_exec_running", begin + 8 * kMs + kMs / 2, tracking + 2, 7);
  }
};

}  // namespace neurontrace
