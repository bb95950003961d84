// SPDX-License-Identifier: Apache-2.0
// Goal: what the rule sees of a core does not depend on where its chunks begin and end, and a stop
// that may have been lost never looks like a span that is open still.
#include "aggregator/watch/core_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/time_units.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/event_chunk_test_support.h"
#include "lib/trace/fidelity.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kMs = kNsPerSecond / 1'000;
constexpr uint64_t kStart = 1'000 * kNsPerSecond;

class CoreFeedTest : public testing::Test, private InsightSink {
 protected:
  static OwnedEvent Event(const std::string& type, Phase phase, uint64_t at_ns, uint64_t tracking,
                          uint64_t exec_id = 0) {
    OwnedEvent event;
    event.event_type = type;
    event.phase = phase;
    event.present = FieldBit(Field::kTimestamp) | FieldBit(Field::kTrackingId);
    event.fields.timestamp_ns = at_ns;
    event.fields.tracking_id = tracking;
    if (exec_id != 0) {
      event.keys.push_back({"exec_id", ValueType::kUint});
      event.values.push_back({.bits = exec_id, .text = ""});
    }
    return event;
  }
  // Stores the next chunk.
  void Store(const std::vector<OwnedEvent>& events, ChunkHeader header = {}) {
    EventChunkBuilder builder;
    for (const OwnedEvent& event : events) ASSERT_TRUE(AppendTo(builder, event).ok());
    const EncodedColumns columns = builder.Finish();
    header.sequence += next_sequence_++;
    header.event_count = columns.event_count;
    header.first_timestamp_ns = columns.first_timestamp_ns;
    header.last_timestamp_ns = columns.last_timestamp_ns;
    feed_.TakeHeader(header, header.canary_realtime_ns + columns.last_timestamp_ns);
    DecodedChunk decoded;
    ASSERT_TRUE(decoded.Decode(columns.bytes).ok());
    feed_.Read(decoded, groups_, *this);
  }
  void ShowOpen(uint64_t alive_at_ns) { feed_.ShowOpen(alive_at_ns, *this); }
  CoreCondition Losses() const {
    CoreCondition condition;
    feed_.AddLosses(condition);
    return condition;
  }

  CoreFeed feed_{7, -1};
  GroupIds groups_;
  std::vector<InsightEvent> seen_;
  std::vector<std::string> models_;
  uint64_t next_sequence_ = 0;

 private:
  void OnEvent(const InsightEvent& event) override { seen_.push_back(event); }
  void OnModel(uint64_t, std::string_view name) override { models_.emplace_back(name); }
};

TEST_F(CoreFeedTest, JoinsSpansOverChunks) {
  Store({Event("nrt_execute", Phase::kStart, kStart, 1)});
  Store({Event("nrt_execute", Phase::kStop, kStart + 20 * kMs, 1)});
  ShowOpen(kStart + 2 * kNsPerSecond);
  ASSERT_THAT(seen_, SizeIs(1));
  EXPECT_EQ(seen_[0].core, 7u);
  EXPECT_EQ(seen_[0].kind, InsightClass::kExecute);
  EXPECT_EQ(seen_[0].start_ns, kStart);
  EXPECT_EQ(seen_[0].end_ns, kStart + 20 * kMs);
  EXPECT_FALSE(seen_[0].is_open);
}

// Device events come later than the host's, and may be in the next chunk.
TEST_F(CoreFeedTest, PassesOnInTheOrderOfEnds) {
  Store({Event("nrt_execute", Phase::kStart, kStart, 1),
         Event("nrt_execute", Phase::kStop, kStart + 30 * kMs, 1)});
  Store({Event("nc_exec_running", Phase::kStart, kStart + 5 * kMs, 2, 9),
         Event("nc_exec_running", Phase::kStop, kStart + 25 * kMs, 2)});
  EXPECT_THAT(seen_, IsEmpty());
  Store({Event("kbl_exec_pre", Phase::kStart, kStart + kNsPerSecond, 3, 10)});
  ASSERT_THAT(seen_, SizeIs(2));
  EXPECT_EQ(seen_[0].kind, InsightClass::kRun);
  EXPECT_EQ(seen_[0].exec_id, 9u);
  EXPECT_EQ(seen_[1].kind, InsightClass::kExecute);
  // What comes later than that cannot be put in order any more.
  Store({Event("kbl_exec_post", Phase::kStart, kStart, 4),
         Event("kbl_exec_post", Phase::kStop, kStart + 1 * kMs, 4)});
  EXPECT_EQ(feed_.counters().late, 1u);
}

TEST_F(CoreFeedTest, PassesAnEnclosedEventOnBeforeTheOneThatEndsWithIt) {
  Store({Event("nc_exec_running", Phase::kStart, kStart, 1, 9),
         Event("cc_running", Phase::kStart, kStart + 5 * kMs, 2, 9),
         Event("nc_exec_running", Phase::kStop, kStart + 20 * kMs, 1),
         Event("cc_running", Phase::kStop, kStart + 20 * kMs, 2)});
  ShowOpen(kStart + 2 * kNsPerSecond);
  ASSERT_THAT(seen_, SizeIs(2));
  EXPECT_EQ(seen_[0].kind, InsightClass::kCollective);
  EXPECT_EQ(seen_[1].kind, InsightClass::kRun);
}

TEST_F(CoreFeedTest, JoinsPhysicalCores) {
  Store({Event("nc_exec_running", Phase::kStart, kStart, 1, 9),
         Event("nc_exec_running", Phase::kStart, kStart + 1 * kMs, 2, 9),
         Event("nc_exec_running", Phase::kStop, kStart + 20 * kMs, 1),
         Event("nc_exec_running", Phase::kStop, kStart + 22 * kMs, 2)});
  ShowOpen(kStart + 2 * kNsPerSecond);
  ASSERT_THAT(seen_, SizeIs(1));
  EXPECT_EQ(seen_[0].start_ns, kStart);
  EXPECT_EQ(seen_[0].end_ns, kStart + 22 * kMs);
}

TEST_F(CoreFeedTest, ShowsWhatIsOpenForLong) {
  Store({Event("enc_barrier", Phase::kStart, kStart, 1, 9)});
  ShowOpen(kStart + 100 * kMs);
  EXPECT_THAT(seen_, IsEmpty());
  ShowOpen(kStart + 3 * kNsPerSecond);
  ASSERT_THAT(seen_, SizeIs(1));
  EXPECT_TRUE(seen_[0].is_open);
  EXPECT_EQ(seen_[0].exec_id, 9u);
  EXPECT_EQ(seen_[0].end_ns, kStart + 3 * kNsPerSecond);
  // It ends after all.
  Store({Event("enc_barrier", Phase::kStop, kStart + 4 * kNsPerSecond, 1)});
  ShowOpen(kStart + 6 * kNsPerSecond);
  ASSERT_THAT(seen_, SizeIs(2));
  EXPECT_FALSE(seen_[1].is_open);
}

TEST_F(CoreFeedTest, ForgetsOpenSpansWhoseStopMayBeLost) {
  Store({Event("enc_barrier", Phase::kStart, kStart, 1)});
  ChunkHeader header;
  header.losses.push_back({.place = LossPlace::kRuntimeRing,
                           .reason = LossReason::kOverwritten,
                           .events = 5,
                           .first_timestamp_ns = kStart + 1,
                           .last_timestamp_ns = kStart + 9});
  Store({Event("kbl_exec_pre", Phase::kStart, kStart + 2 * kMs, 2)}, header);
  ShowOpen(kStart + 5 * kNsPerSecond);
  ASSERT_THAT(seen_, SizeIs(1));
  EXPECT_EQ(seen_[0].kind, InsightClass::kPrepare);
  EXPECT_EQ(Losses().lost_events, 5u);
  EXPECT_FALSE(Losses().lost_unknown);
  EXPECT_EQ(Losses().loss_begin_ns, kStart + 1);
  feed_.StartWindow();
  EXPECT_EQ(Losses().lost_events, 0u);
}

TEST_F(CoreFeedTest, TakesAMissingChunkForALoss) {
  Store({Event("enc_barrier", Phase::kStart, kStart, 1)});
  ++next_sequence_;
  Store({Event("kbl_exec_pre", Phase::kStart, kStart + kNsPerSecond, 2)});
  EXPECT_TRUE(Losses().lost_unknown);
  EXPECT_EQ(Losses().loss_begin_ns, kStart);
  EXPECT_EQ(Losses().loss_end_ns, kStart + kNsPerSecond);
}

// After a restart the first chunk is any of its stream, and reports losses of before.
TEST_F(CoreFeedTest, BeginsWithAnyChunk) {
  next_sequence_ = 812;
  ChunkHeader header;
  header.losses.push_back({.place = LossPlace::kRuntimeRing, .events = 5});
  Store({Event("nrt_execute", Phase::kStop, kStart, 1)}, header);
  EXPECT_EQ(Losses().lost_events, 0u);
  EXPECT_FALSE(Losses().lost_unknown);
  EXPECT_EQ(feed_.counters().unmatched, 1u);
}

TEST_F(CoreFeedTest, TakesASuspensionForALoss) {
  Store({Event("enc_barrier", Phase::kStart, kStart, 1)});
  ChunkHeader header;
  header.canary_realtime_ns = kStart + 3 * kNsPerSecond;
  header.suspensions.push_back({.begin_ns = kStart + 1, .end_ns = kStart + kNsPerSecond});
  Store({}, header);
  EXPECT_TRUE(Losses().lost_unknown);
  EXPECT_EQ(feed_.reached_ns(), kStart + 3 * kNsPerSecond);
  ShowOpen(kStart + 5 * kNsPerSecond);
  EXPECT_THAT(seen_, IsEmpty());
}

// The rings of a process that died are lost after everything that is judged.
TEST_F(CoreFeedTest, DoesNotTakeADeathForALoss) {
  Store({Event("enc_barrier", Phase::kStart, kStart, 1)});
  ChunkHeader header;
  header.end_of_stream = true;
  header.losses.push_back({.place = LossPlace::kRuntimeRing, .events_unknown = true});
  Store({}, header);
  EXPECT_TRUE(feed_.has_ended());
  EXPECT_FALSE(Losses().lost_unknown);
}

TEST_F(CoreFeedTest, ForgetsTheOldestOpenSpansBeyondTheLimit) {
  std::vector<OwnedEvent> events;
  for (uint64_t i = 0; i < limits::kWatchOpenSpansMax + 3; ++i) {
    events.push_back(Event("kbl_exec_pre", Phase::kStart, kStart + i, i));
  }
  Store(events);
  EXPECT_EQ(feed_.counters().forgotten, 3u);
  ShowOpen(kStart + 5 * kNsPerSecond);
  EXPECT_THAT(seen_, SizeIs(limits::kWatchOpenSpansMax));
}

// Two hundred calls between two runs are one event that has their length.
TEST_F(CoreFeedTest, JoinsCallsThatFillAGap) {
  std::vector<OwnedEvent> events;
  const auto span = [&events](const std::string& type, uint64_t from_ns, uint64_t to_ns,
                              uint64_t tracking, uint64_t exec_id = 0) {
    events.push_back(Event(type, Phase::kStart, from_ns, tracking, exec_id));
    events.push_back(Event(type, Phase::kStop, to_ns, tracking));
  };
  constexpr uint64_t kUs = kMs / 1'000;
  span("nc_exec_running", kStart, kStart + 1 * kMs, 1, 9);
  for (uint64_t i = 0; i < 100; ++i) {
    const uint64_t from_ns = kStart + 2 * kMs + i * 100 * kUs;
    span("nrt_tensor_write", from_ns, from_ns + 20 * kUs, 100 + i);
    // The runtime allocates within the call that asks for it.
    const uint64_t outer = 300 + 2 * i;
    events.push_back(Event("nrt_tensor_allocate", Phase::kStart, from_ns + 30 * kUs, outer));
    span("nrt_dma_mem_alloc", from_ns + 32 * kUs, from_ns + 38 * kUs, outer + 1);
    events.push_back(Event("nrt_tensor_allocate", Phase::kStop, from_ns + 40 * kUs, outer));
  }
  span("nc_exec_running", kStart + 20 * kMs, kStart + 21 * kMs, 2, 10);
  Store(events);
  ShowOpen(kStart + 2 * kNsPerSecond);
  ASSERT_THAT(seen_, SizeIs(4));
  EXPECT_EQ(seen_[0].exec_id, 9u);
  EXPECT_EQ(seen_[1].kind, InsightClass::kTransferIo);
  EXPECT_EQ(seen_[1].end_ns - seen_[1].start_ns, 100 * 20 * kUs);
  EXPECT_EQ(seen_[2].kind, InsightClass::kMemory);
  EXPECT_EQ(seen_[2].end_ns - seen_[2].start_ns, 100 * 10 * kUs);
  EXPECT_EQ(seen_[3].exec_id, 10u);
  EXPECT_EQ(feed_.counters().late, 0u);
}

TEST_F(CoreFeedTest, ARowOfCallsEndsWithAnExecutionAndAfterATime) {
  std::vector<OwnedEvent> events;
  uint64_t tracking = 0;
  const auto span = [&](const std::string& type, uint64_t from_ns) {
    events.push_back(Event(type, Phase::kStart, from_ns, ++tracking));
    events.push_back(Event(type, Phase::kStop, from_ns + kMs, tracking));
  };
  span("nrt_tensor_read", kStart);
  span("nrt_execute", kStart + 5 * kMs);
  span("nrt_tensor_read", kStart + 10 * kMs);
  span("nrt_tensor_read", kStart + 30 * kMs);
  span("nrt_tensor_read", kStart + 80 * kMs);
  Store(events);
  ShowOpen(kStart + 2 * kNsPerSecond);
  ASSERT_THAT(seen_, SizeIs(4));
  EXPECT_EQ(seen_[2].end_ns - seen_[2].start_ns, 2 * kMs);
  EXPECT_EQ(seen_[3].start_ns, kStart + 80 * kMs);
}

// Without allocations a core is judged, and the answer says so; without an execution's steps it is
// not, until they are recorded again.
TEST_F(CoreFeedTest, KnowsWhatABudgetLeavesOut) {
  const auto at_level = [](uint64_t level, uint64_t at_ns) {
    OwnedEvent event;
    event.event_type = kFidelityEventType;
    event.phase = Phase::kInstant;
    event.present = FieldBit(Field::kTimestamp);
    event.fields.timestamp_ns = at_ns;
    event.keys = {{std::string(kFidelityLevelKey), ValueType::kUint}};
    event.values = {{.bits = level, .text = ""}};
    return event;
  };
  Store({Event("enc_barrier", Phase::kStart, kStart, 1), at_level(1, kStart + kMs)});
  EXPECT_TRUE(Losses().lost_unknown) << "the trace was restarted";
  EXPECT_TRUE(feed_.LacksCalls(InsightClass::kMemory));
  EXPECT_FALSE(feed_.LacksCalls(InsightClass::kTransferIo));
  feed_.StartWindow();
  EXPECT_FALSE(Losses().lost_unknown);
  EXPECT_TRUE(feed_.LacksCalls(InsightClass::kMemory));
  Store({at_level(3, kStart + 2 * kMs)});
  feed_.StartWindow();
  EXPECT_TRUE(Losses().lost_unknown) << "as long as it lasts";
  Store({at_level(0, kStart + 3 * kMs)});
  feed_.StartWindow();
  EXPECT_FALSE(Losses().lost_unknown);
  EXPECT_FALSE(feed_.LacksCalls(InsightClass::kMemory));
}

// After a restart of the aggregator the streams' accounts tell it.
TEST_F(CoreFeedTest, LearnsWhatIsLeftOutFromAccounts) {
  const auto left_out = [](std::string_view what) {
    ChunkHeader header;
    header.losses.push_back(
        LeftOutFromTo(kStart, kStart + kMs,
                      std::string(kOmittedBegin).append(what).append(kOmittedReason) + "2 %"));
    return header;
  };
  next_sequence_ = 812;
  Store({Event("kbl_exec_pre", Phase::kStart, kStart, 1)}, left_out(kTensorCallsOmitted));
  EXPECT_TRUE(feed_.LacksCalls(InsightClass::kTransferIo));
  EXPECT_FALSE(Losses().lost_unknown);
  Store({Event("kbl_exec_pre", Phase::kStop, kStart, 1)}, left_out("host events but nrt_execute"));
  EXPECT_TRUE(Losses().lost_unknown);
}

TEST_F(CoreFeedTest, KnowsAModelByItsNumberToo) {
  OwnedEvent named = Event("kbl_exec_pre", Phase::kStart, kStart, 1, 9);
  named.keys.push_back({"model_id", ValueType::kUint});
  named.keys.push_back({"model_name", ValueType::kString});
  named.values.push_back({.bits = 55, .text = ""});
  named.values.push_back({.bits = 0, .text = "llama"});
  OwnedEvent numbered = Event("kbl_exec_post", Phase::kStart, kStart + 2, 2, 9);
  numbered.keys.push_back({"model_id", ValueType::kUint});
  numbered.values.push_back({.bits = 55, .text = ""});
  Store({named, Event("kbl_exec_pre", Phase::kStop, kStart + 1, 1), numbered,
         Event("kbl_exec_post", Phase::kStop, kStart + 3, 2)});
  ShowOpen(kStart + 5 * kNsPerSecond);
  ASSERT_THAT(seen_, SizeIs(2));
  EXPECT_NE(seen_[0].model, 0u);
  EXPECT_EQ(seen_[0].model, seen_[1].model);
  EXPECT_THAT(models_, ElementsAre("llama"));
}

}  // namespace
}  // namespace neurontrace
