// SPDX-License-Identifier: Apache-2.0
// What the times of a file count from, and the files of one session of JAX's profiler: an XSpace,
// and JSON with the same events that does not say when it was.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/source/framework/framework_source_fixture.h"
#include "agent/source/framework/xspace_test_support.h"
#include "lib/trace/decoded_chunk.h"
#include "lib/trace/event_chunk.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kSessionNs = 1'790'000'000'000'000'000;

// Three steps from 1 ms after the session's begin on, as JAX writes them.
std::string JaxJson() {
  std::string text = R"({"displayTimeUnit":"ns","traceEvents":[)";
  for (int step = 0; step < 3; ++step) {
    text += fmt::format(R"({{"ph":"X","pid":701,"tid":1,"ts":{},"dur":400.0005,"name":"train",)"
                        R"("args":{{"step_num":"{}"}}}},)",
                        1'000 + 500 * step, step);
  }
  return text + "{}]}";
}

std::string JaxXSpace(bool with_begin = true) {
  std::string events;
  for (int64_t step = 0; step < 3; ++step) {
    events += xspace_test::Event(1, step * 500'000'000, 400'000'500,
                                 xspace_test::Bytes(4, xspace_test::UintStat(7, step)));
  }
  return xspace_test::Plane("/host:CPU", xspace_test::Line(1, "python", 1'000'000, events) +
                                             xspace_test::EventName(1, "train") +
                                             xspace_test::StatName(7, "step_num") +
                                             xspace_test::ProcessId(42)) +
         (with_begin ? xspace_test::Environment(kSessionNs) : "");
}

class FrameworkSessionTest : public FrameworkSourceTest {
 protected:
  void Record(std::vector<std::string> files, bool watch = false) {
    MakeSource(std::move(files), watch);
    Start();
    Pass(100);
  }
  void EndRecording() {
    source_->Stop(capture_, Source::kStopNow);
    Pass(12'000);
    sink_.StoreAll();
    Pass(1'000);
  }
  // "stream time" of each span, and "own" behind those of chunks with a time of their own.
  std::vector<std::string> Spans() const {
    std::vector<std::string> lines;
    for (const auto& entry : sink_.entries) {
      const ChunkHeader& header = entry.chunk.header;
      if (header.event_count == 0) continue;
      std::string columns;
      EXPECT_TRUE(UncompressColumns(entry.chunk.columns, header.columns_bytes, columns).ok());
      DecodedChunk chunk;
      EXPECT_TRUE(chunk.Decode(columns).ok());
      for (size_t i = 0; i < chunk.size(); ++i) {
        if (chunk.shapes()[chunk.shape_of()[i]].phase != Phase::kComplete) continue;
        lines.push_back(fmt::format("{} {}{}", header.stream.name, chunk.timestamp_ns()[i],
                                    header.clock_domain == ClockDomain::kOwn ? " own" : ""));
      }
    }
    return lines;
  }
  // Of all chunks, by kind.
  uint64_t RemarksOfStreams(RemarkKind kind) const {
    uint64_t count = 0;
    for (const auto& entry : sink_.entries) {
      for (const Remark& remark : entry.chunk.header.remarks) {
        if (remark.kind == kind) count = std::max(count, remark.count);
      }
    }
    return count;
  }
  std::string At(std::string_view stream, uint64_t ns, std::string_view more = "") const {
    return fmt::format("{} {}{}", stream, ns, more);
  }
};

TEST_F(FrameworkSessionTest, JsonTakesItsBaseFromTheXSpaceBesideIt) {
  Write(folder_ + "/vm.xplane.pb", JaxXSpace());
  Record({Write(folder_ + "/vm.trace.json", JaxJson())});
  EndRecording();
  EXPECT_THAT(Spans(), ElementsAre(At("vm.trace.json", kSessionNs + 1'000'000),
                                   At("vm.trace.json", kSessionNs + 1'500'000),
                                   At("vm.trace.json", kSessionNs + 2'000'000)));
  EXPECT_EQ(RemarksOfStreams(RemarkKind::kUnknownOrigin), 0u);
}

TEST_F(FrameworkSessionTest, WithoutBaseKeepsFileTimesAndReportsIt) {
  Record({Write(folder_ + "/vm.trace.json", JaxJson())});
  EndRecording();
  EXPECT_THAT(Spans(), ElementsAre(At("vm.trace.json", 1'000'000, " own"),
                                   At("vm.trace.json", 1'500'000, " own"),
                                   At("vm.trace.json", 2'000'000, " own")));
  EXPECT_EQ(RemarksOfStreams(RemarkKind::kUnknownOrigin), 1u);
}

TEST_F(FrameworkSessionTest, AnXSpaceIsRead) {
  Record({Write(folder_ + "/vm.xplane.pb", JaxXSpace())});
  EndRecording();
  EXPECT_THAT(Spans(), ElementsAre(At("vm.xplane.pb", kSessionNs + 1'000'000),
                                   At("vm.xplane.pb", kSessionNs + 1'500'000),
                                   At("vm.xplane.pb", kSessionNs + 2'000'000)));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_EQ(status().events_lost, 0u);
}

TEST_F(FrameworkSessionTest, AnXSpaceWithoutABeginKeepsItsOwnTime) {
  Record({Write(folder_ + "/vm.xplane.pb", JaxXSpace(false))});
  EndRecording();
  EXPECT_THAT(Spans(), ElementsAre(At("vm.xplane.pb", 1'000'000, " own"),
                                   At("vm.xplane.pb", 1'500'000, " own"),
                                   At("vm.xplane.pb", 2'000'000, " own")));
  EXPECT_EQ(RemarksOfStreams(RemarkKind::kUnknownOrigin), 1u);
}

TEST_F(FrameworkSessionTest, PrefersXSpaceOverJsonOfSameSession) {
  Record({}, true);
  const std::string session = watched_ + "/plugins/profile/one/";
  Write(session + "vm.trace.json", JaxJson());
  Write(session + "perfetto_trace.json", JaxJson());
  Write(session + "vm.xplane.pb", JaxXSpace());
  Pass(3'000);
  EndRecording();
  const std::string name = "plugins/profile/one/vm.xplane.pb";
  EXPECT_THAT(Spans(),
              ElementsAre(At(name, kSessionNs + 1'000'000), At(name, kSessionNs + 1'500'000),
                          At(name, kSessionNs + 2'000'000)));
  EXPECT_EQ(Remarked(RemarkKind::kSameContent), 2u);
  EXPECT_THAT(DetailsOf(RemarkKind::kSameContent),
              HasSubstr(name + " has the events of the same session"));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
}

TEST_F(FrameworkSessionTest, AnXSpaceThatComesAfterItsJsonIsNotStoredOnceMore) {
  Record({}, true);
  Write(watched_ + "/vm.trace.json", JaxJson());
  Pass(3'000);
  Write(watched_ + "/vm.xplane.pb", JaxXSpace());
  Pass(3'000);
  EndRecording();
  EXPECT_EQ(Spans().size(), 3u);
  EXPECT_EQ(Remarked(RemarkKind::kSameContent), 1u);
}

TEST_F(FrameworkSessionTest, BesideADamagedXSpaceTheJsonIsRead) {
  Record({}, true);
  const std::string space = JaxXSpace();
  Write(watched_ + "/vm.xplane.pb", space.substr(0, space.size() - 3));
  Write(watched_ + "/vm.trace.json", JaxJson());
  Pass(15'000);
  EndRecording();
  // The plane that is whole, and the JSON.
  EXPECT_EQ(Spans().size(), 6u);
  EXPECT_EQ(Remarked(RemarkKind::kSameContent), 0u);
  EXPECT_TRUE(status().events_lost > 0 || RemarksOfStreams(RemarkKind::kDamagedElement) > 0);
}

}  // namespace
}  // namespace neurontrace
