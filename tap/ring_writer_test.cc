// SPDX-License-Identifier: Apache-2.0
// Goal: what the writer publishes is exactly what a careful reader gets back, also over the end of
// the ring, when the ring is full, and when the consumer lies about its position. Method: a ring in
// memory and a reader of the test's own that checks every length and checksum.
#include "tap/ring_writer.h"

#include <string.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/crc32c.h"
#include "tap/ring_test_support.h"

namespace neurontrace::tap {
namespace {

constexpr uint64_t kTime = 1'700'000'000'000'000'000;

class RingWriterTest : public ::testing::Test {
 protected:
  RingWriterTest() { writer_.Attach(ring_.header(), ring_.ring(), ring_.bytes()); }

  bool Append(const std::string& json, uint32_t core = 3) {
    if (writer_.AppendDocument(core, 0, kTime, json.data(), json.size())) return true;
    writer_.CountRefused(core, kTime, {json.size(), 7, ids_end_ += 100});
    return false;
  }
  TapBufferCounters& counters() { return ring_.header()->counters; }

  TapRingFixture ring_{kTapRingBytesMin};
  RingWriter writer_;
  uint64_t ids_end_ = 0;
};

TEST_F(RingWriterTest, RoundTripsRecords) {
  const uint8_t id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  writer_.SetCapture(id);
  ASSERT_TRUE(Append("{\"events\":[]}"));
  const std::vector<TapTestRecord> records = ring_.ReadAll();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].payload, "{\"events\":[]}");
  EXPECT_EQ(records[0].header.nc_idx, 3u);
  EXPECT_EQ(records[0].header.host_realtime_ns, kTime);
  EXPECT_EQ(records[0].header.type, static_cast<uint16_t>(TapRecordType::kFetchDocument));
  EXPECT_EQ(memcmp(records[0].header.capture_id, id, sizeof id), 0);
  EXPECT_EQ(counters().documents.load(), 1u);
  EXPECT_EQ(counters().document_bytes.load(), 13u);
}

TEST_F(RingWriterTest, RecordsOfEveryLengthSurviveTheEndOfTheRing) {
  // Lengths that step through every alignment, until the ring has been gone round three times.
  uint64_t written = 0;
  for (uint64_t i = 0; ring_.write_pos() < 3 * kTapRingBytesMin; ++i) {
    const std::string json(40'000 + i % 17, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(Append(json)) << "document " << i;
    const std::vector<TapTestRecord> records = ring_.ReadAll();
    ASSERT_EQ(records.size(), 1u);
    ASSERT_EQ(records[0].payload, json);
    ++written;
  }
  EXPECT_EQ(counters().documents.load(), written);
}

TEST_F(RingWriterTest, KeepsTheOldestAndRefusesTheNewestWhenFull) {
  const std::string json(100'000, 'x');
  int kept = 0;
  while (Append(json)) ++kept;
  EXPECT_EQ(kept, 10);
  EXPECT_FALSE(Append(json));
  EXPECT_EQ(counters().refused_documents.load(), 2u);
  EXPECT_EQ(counters().refused_bytes.load(), 2 * json.size());
  EXPECT_EQ(counters().refused_events.load(), 14u);
  EXPECT_EQ(ring_.ReadAll().size(), 10u);
}

TapLoss LossIn(const TapTestRecord& record) {
  EXPECT_EQ(record.header.type, static_cast<uint16_t>(TapRecordType::kLoss));
  TapLoss loss = {};
  EXPECT_EQ(record.payload.size(), sizeof loss);
  memcpy(&loss, record.payload.data(), std::min(sizeof loss, record.payload.size()));
  return loss;
}

TEST_F(RingWriterTest, ReportsLossOnceSpaceIsFree) {
  const std::string json(100'000, 'x');
  while (Append(json)) {
  }
  writer_.CountDeferred(3, kTime + 5);
  ring_.ReadAll();
  writer_.FlushLosses(kTime + 9);
  writer_.FlushLosses(kTime + 10);
  const std::vector<TapTestRecord> records = ring_.ReadAll();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].header.nc_idx, 3u);
  const TapLoss loss = LossIn(records[0]);
  EXPECT_EQ(loss.refused_documents, 1u);
  EXPECT_EQ(loss.refused_bytes, json.size());
  EXPECT_EQ(loss.refused_events, 7u);
  EXPECT_EQ(loss.deferred_fetches, 1u);
  EXPECT_EQ(loss.failed_fetches, 0u);
  EXPECT_EQ(loss.first_realtime_ns, kTime);
  EXPECT_EQ(loss.last_realtime_ns, kTime + 5);
}

TEST_F(RingWriterTest, LossesOfEachCoreStandBeforeTheNextDocument) {
  const std::string json(100'000, 'x');
  while (Append(json, 1)) {
  }
  EXPECT_FALSE(Append(json, 1));
  EXPECT_FALSE(Append(json, 2));
  writer_.CountFailed(kTapNoCore, kTime);
  ring_.ReadAll();
  ASSERT_TRUE(Append(json, 2));
  ASSERT_TRUE(Append(json, 1));
  const std::vector<TapTestRecord> records = ring_.ReadAll();
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0].header.nc_idx, 1u);
  EXPECT_EQ(LossIn(records[0]).refused_events, 14u);
  EXPECT_EQ(LossIn(records[0]).refused_ids_end, 200u) << "the highest";
  EXPECT_EQ(records[1].header.nc_idx, 2u);
  EXPECT_EQ(LossIn(records[1]).refused_events, 7u);
  EXPECT_EQ(records[2].header.nc_idx, kTapNoCore);
  EXPECT_EQ(LossIn(records[2]).failed_fetches, 1u);
  EXPECT_EQ(records[3].payload, json);
  EXPECT_EQ(counters().refused_events.load(), 21u);
  EXPECT_EQ(counters().fetch_errors.load(), 1u);
}

TEST_F(RingWriterTest, TheReserveHoldsTheLossesOfEveryCoreAndTheStop) {
  const std::string json(1000, 'x');
  while (Append(json)) {
  }
  for (uint32_t core = 0; core < kTapMaxCores; ++core) writer_.CountRefused(core, kTime, {1, 1, 1});
  writer_.CountRefused(kTapNoCore, kTime, {1, 1, 1});
  writer_.FlushLosses(kTime);
  const TapTraceStopped stopped = {};
  EXPECT_TRUE(
      writer_.AppendControl(TapRecordType::kTraceStopped, 0, kTime, &stopped, sizeof stopped));
  EXPECT_EQ(counters().refused_control_records.load(), 0u);
  uint64_t told = 0;
  for (const TapTestRecord& record : ring_.ReadAll()) {
    if (record.header.type == static_cast<uint16_t>(TapRecordType::kLoss)) {
      told += LossIn(record).refused_documents;
    }
  }
  EXPECT_EQ(told, counters().refused_documents.load());
}

TEST_F(RingWriterTest, ControlRecordsFitWhereDocumentsNoLongerDo) {
  const std::string json(1000, 'x');
  while (Append(json)) {
  }
  EXPECT_LT(writer_.RoomForDocument(), json.size());
  const TapLifecycle close = {static_cast<uint32_t>(TapLifecycleEvent::kClose), 0};
  EXPECT_TRUE(
      writer_.AppendControl(TapRecordType::kLifecycle, 0, kTime, &close, sizeof close, "ab", 2));
  EXPECT_EQ(ring_.ReadAll().back().payload.size(), sizeof close + 2);
}

TEST_F(RingWriterTest, CountsControlRecordsThatDoNotFit) {
  const std::string large(kTapControlReserveBytes, 'x');
  while (Append(large)) {
  }
  int fitted = 0;
  while (writer_.AppendControl(TapRecordType::kLifecycle, 0, kTime, large.data(), 8000)) ++fitted;
  EXPECT_GE(fitted, 3);
  EXPECT_EQ(counters().refused_control_records.load(), 1u);
}

TEST_F(RingWriterTest, RoomForDocumentIsExact) {
  ASSERT_TRUE(Append(std::string(12'345, 'x')));
  const uint64_t room = writer_.RoomForDocument();
  EXPECT_FALSE(Append(std::string(room + 9, 'x')));
  EXPECT_TRUE(Append(std::string(room, 'x')));
}

TEST_F(RingWriterTest, RefusesADocumentLargerThanTheFormatAllows) {
  TapRingFixture large(kTapRecordPayloadBytesMax * 2);
  RingWriter writer;
  writer.Attach(large.header(), large.ring(), large.bytes());
  const std::string json(kTapRecordPayloadBytesMax + 1, 'x');
  EXPECT_FALSE(writer.AppendDocument(0, 0, kTime, json.data(), json.size()));
  EXPECT_TRUE(writer.AppendDocument(0, 0, kTime, json.data(), json.size() - 1));
}

TEST_F(RingWriterTest, BelievesNoImpossibleReadPosition) {
  const std::string json(100'000, 'x');
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Append(json));
  const uint64_t free_before = writer_.RoomForDocument();
  const uint64_t hostile[] = {ring_.write_pos() + 8, UINT64_MAX, UINT64_MAX - 7, uint64_t{1} << 63,
                              ring_.write_pos() - 3};
  for (const uint64_t position : hostile) {
    ring_.header()->read_pos.store(position);
    EXPECT_EQ(writer_.RoomForDocument(), free_before) << position;
  }
  EXPECT_EQ(counters().invalid_read_pos.load(), 5u);
  // Going back is no less a lie: what was given free may be overwritten already.
  ring_.header()->read_pos.store(ring_.write_pos());
  EXPECT_GT(writer_.RoomForDocument(), free_before);
  ring_.header()->read_pos.store(0);
  EXPECT_GT(writer_.RoomForDocument(), free_before);
  EXPECT_EQ(counters().invalid_read_pos.load(), 6u);
}

TEST_F(RingWriterTest, KeepsToItsRingWhateverTheConsumerScribbles) {
  // A guard behind the ring, and an agent that writes all over the shared header.
  for (int i = 0; i < 2000; ++i) {
    ring_.header()->read_pos.store(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15ULL);
    ring_.header()->ring_bytes = static_cast<uint64_t>(i) << 40;
    ring_.header()->write_pos.store(static_cast<uint64_t>(i) << 33);
    Append(std::string(static_cast<size_t>(i) * 37 % 9000, 'x'));
    ASSERT_TRUE(ring_.GuardIsIntact());
  }
}

TEST(Crc32cTest, EqualsTheStandardVectorBothWays) {
  EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(Crc32c("", 0), 0u);
  EXPECT_EQ(ExtendCrc32c(Crc32c("12345", 5), "6789", 4), 0xe3069283u);
  const std::string zeros(32, '\0');
  EXPECT_EQ(Crc32c(zeros.data(), zeros.size()), 0x8a9136aau);
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes.push_back(static_cast<char>(i * 31));
  for (size_t size = 0; size < bytes.size(); size += 7) {
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    EXPECT_EQ(~crc32c_internal::ExtendByTable(~0u, data, size), Crc32c(data, size));
  }
}

}  // namespace
}  // namespace neurontrace::tap
