// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "aggregator/export/exporter.h"
#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"

namespace neurontrace {

// A capture in memory, and a reading of a window of it by any collector. One thread.
class ViewFixture : public ::testing::Test {
 protected:
  static constexpr uint64_t kBase = 1'750'000'000'000'000'000u;

  uint32_t AddCore(uint32_t nc_idx, int64_t gid) {
    return source_.AddStream({.agent_id = "agent",
                              .worker = {"i-a", "boot", 4711, 1, ""},
                              .kind = StreamKind::kNeuronCore,
                              .nc_idx = nc_idx},
                             {{RankSource::kCommunicator, gid, 64, "test"}});
  }
  void Close(uint32_t stream) { source_.AddChunk(stream, builder_); }

  void Read(Exporter& exporter, uint64_t from_ns, uint64_t to_ns) {
    ExportRequest request;
    request.no_flows = true;
    request.filter.window_start_ns = from_ns;
    request.filter.window_end_ns = to_ns;
    const auto summary = RunExporter(source_, exporter, request, true, nullptr);
    ASSERT_TRUE(summary.ok()) << summary.status();
  }

  FakeChunkSource source_;
  EventChunkBuilder builder_;
  EventScript script_{builder_};
};

}  // namespace neurontrace
