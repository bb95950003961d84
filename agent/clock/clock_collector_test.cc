// SPDX-License-Identifier: Apache-2.0
// All of it together on clocks that the test moves, and on this machine's own for a moment.
#include "agent/clock/clock_collector.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/fake_file_system.h"
#include "lib/base/fake_task_runner.h"
#include "lib/clock/fake_host_clocks.h"

namespace neurontrace {
namespace {

constexpr char kClockSource[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

ClockPaths Paths() {
  ClockPaths paths;
  paths.utc.chrony = {.directory = "/nowhere", .port = 0};
  return paths;
}

// Keeps the batches and counts the breaks.
class FakeClockListener final : public ClockCollector::Listener {
 public:
  void OnBatch(ClockEvidence batch) override { batches.push_back(std::move(batch)); }
  void OnBreak() override { ++breaks; }

  std::vector<ClockEvidence> batches;
  int breaks = 0;
};

class ClockCollectorTest : public testing::Test {
 protected:
  void SetVmClock(uint64_t marker) {
    std::string page(104, '\0');
    memcpy(page.data(), "VCLK\0\x10\0\0\x01\0\x01\0", 12);
    memcpy(page.data() + 16, &marker, sizeof(marker));
    files_.SetContents(VmClock::kPath, page);
  }
  void OnTick(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      host_.AdvanceNs(HostClockWatch::kTickNs);
      collector_.OnTick();
    }
  }
  std::vector<ClockEvent> Events() const {
    std::vector<ClockEvent> events;
    for (const ClockEvidence& batch : listener_.batches) {
      events.insert(events.end(), batch.events.begin(), batch.events.end());
    }
    return events;
  }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  FakeHostClocks host_;
  FakeFileSystem files_;
  SeededRandom random_{1};
  FakeClockListener listener_;
  ClockCollector collector_{{runner_, host_, files_, random_}, Paths(), listener_};
};

TEST_F(ClockCollectorTest, EmitsBatchesOfCollectedEvidence) {
  OnTick(200);  // 10 s
  EXPECT_GE(listener_.batches.size(), 1u);
  EXPECT_LE(listener_.batches.size(), 9u);
  ASSERT_FALSE(listener_.batches.empty());
  EXPECT_GE(listener_.batches[0].snapshots.size(), 3u);
  EXPECT_LE(listener_.batches[0].snapshots.size(), 6u);
  EXPECT_TRUE(Events().empty());
  EXPECT_EQ(listener_.breaks, 0);
}

TEST_F(ClockCollectorTest, PutsExchangesInOrder) {
  collector_.Add({.send_raw_ns = 20});
  collector_.Add({.send_raw_ns = 10});
  collector_.Flush();
  ASSERT_EQ(listener_.batches.size(), 1u);
  ASSERT_EQ(listener_.batches[0].exchanges.size(), 2u);
  EXPECT_EQ(listener_.batches[0].exchanges[0].send_raw_ns, 10u);
  collector_.Flush();
  EXPECT_EQ(listener_.batches.size(), 1u);
}

TEST_F(ClockCollectorTest, EmitsBatchEarlyWhenFull) {
  for (size_t i = 0; i < ClockCollector::kBatchEntriesMax; ++i) collector_.Add({});
  OnTick(1);
  EXPECT_EQ(listener_.batches.size(), 1u);
}

TEST_F(ClockCollectorTest, ReportsMigration) {
  SetVmClock(1);
  ASSERT_TRUE(collector_.Start().ok());
  OnTick(55);
  EXPECT_EQ(listener_.breaks, 0);
  const uint64_t before = host_.RawNs();
  ASSERT_TRUE(files_.FlipBit(VmClock::kPath, 16 * 8 + 1));  // the marker
  OnTick(20);
  collector_.Flush();
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Events()[0].kind, ClockEventKind::kMigration);
  EXPECT_LE(Events()[0].raw_begin_ns, before);
  EXPECT_GE(Events()[0].raw_end_ns, before);
  EXPECT_EQ(listener_.breaks, 1);
  EXPECT_EQ(collector_.counters().migrations, 1u);
}

TEST_F(ClockCollectorTest, ReportsClockSourceChange) {
  files_.SetContents(kClockSource, "tsc\n");
  OnTick(1'100);
  files_.SetContents(kClockSource, "hpet\n");
  OnTick(1'100);
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Events()[0].kind, ClockEventKind::kClockSource);
  EXPECT_EQ(listener_.breaks, 1);
}

TEST_F(ClockCollectorTest, ReportsPausesAndSuspends) {
  OnTick(50);
  host_.AdvanceNs(5'000'000'000);
  OnTick(50);
  host_.SuspendNs(60'000'000'000);
  OnTick(250);
  ASSERT_EQ(Events().size(), 2u);
  EXPECT_EQ(Events()[0].kind, ClockEventKind::kPause);
  EXPECT_EQ(Events()[1].kind, ClockEventKind::kSuspend);
  EXPECT_EQ(collector_.counters().pauses, 1u);
  EXPECT_EQ(collector_.counters().suspends, 1u);
  EXPECT_EQ(listener_.breaks, 2);
}

TEST_F(ClockCollectorTest, CountsSuspendDetectedByFlush) {
  OnTick(50);
  host_.SuspendNs(60'000'000'000);
  collector_.FlushNow();
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Events()[0].kind, ClockEventKind::kSuspend);
  EXPECT_EQ(collector_.counters().suspends, 1u);
  EXPECT_EQ(listener_.breaks, 1);
  OnTick(50);
  EXPECT_EQ(collector_.counters().suspends, 1u);
  EXPECT_EQ(listener_.breaks, 1);
}

// Ends the loop after the sixth beat.
class SixTicks final : public ClockCollector::Listener {
 public:
  explicit SixTicks(EventLoop& loop) : loop_(loop) {}
  void OnBatch(ClockEvidence batch) override { batches.push_back(std::move(batch)); }
  void OnTick() override {
    if (++ticks_ < 6) return;
    collector->Flush();
    loop_.Quit();
  }

  std::unique_ptr<ClockCollector> collector;
  std::vector<ClockEvidence> batches;

 private:
  EventLoop& loop_;
  int ticks_ = 0;
};

TEST(ClockCollector, WorksOnThisMachine) {
  EventLoop loop;
  const SystemHostClocks host;
  SystemFileSystem files;
  SystemRandom random;
  SixTicks listener(loop);
  listener.collector = std::make_unique<ClockCollector>(
      ClockCollector::Deps{loop, host, files, random}, ClockPaths{}, listener);
  loop.PostTask([&] { ASSERT_TRUE(listener.collector->Start().ok()); });
  loop.Run();
  ASSERT_FALSE(listener.batches.empty());
  EXPECT_FALSE(listener.batches[0].snapshots.empty());
}

}  // namespace
}  // namespace neurontrace
