// SPDX-License-Identifier: Apache-2.0
// Bytes flipped, cut and removed in every kind of file of a store: it opens again by itself, what
// is left is served, and what is lost is counted in its stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "aggregator/storage/store_damage_test_support.h"
#include "aggregator/store/found_damage.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreRecoveryTest : public StoreDamageTest {
 protected:
  std::vector<StreamRecord> Streams(const Store& store, uint8_t capture = 1) {
    const auto streams = store.OpenCapture(TestCaptureId(capture)).Streams();
    EXPECT_TRUE(streams.ok()) << streams.status();
    return streams.value_or(std::vector<StreamRecord>{});
  }
  // Everything is there and is sound.
  void ExpectWhole(const Store& store, uint32_t streams, uint64_t chunks) {
    const auto records = Streams(store);
    ASSERT_EQ(records.size(), streams);
    for (const StreamRecord& record : records) {
      EXPECT_EQ(record.next_sequence, chunks);
      EXPECT_EQ(record.events, chunks * kEventsPerChunk);
      EXPECT_THAT(record.losses, IsEmpty());
    }
    ExpectReadable(store);
  }
  // All that the index names can be read, and gives as many events as the record counts.
  void ExpectReadable(const Store& store) {
    for (const StreamRecord& record : Streams(store)) {
      const StreamReader stream = store.OpenCapture(TestCaptureId(1)).Stream(record.number);
      uint64_t events = 0;
      StoredChunk chunk;
      ChunkIndexIterator it = stream.Index();
      for (; it.Valid(); it.Next()) {
        const absl::Status read = stream.ReadChunk(it.entry().sequence, chunk);
        EXPECT_TRUE(read.ok()) << read;
        events += chunk.event_count();
      }
      EXPECT_TRUE(it.status().ok()) << it.status();
      EXPECT_EQ(events, record.events);
      EXPECT_TRUE(record.Conserved());
    }
  }
  void ExpectSound() {
    const auto report = CheckStore(path(), nullptr, {.examine = ExamineThrough(door())});
    ASSERT_TRUE(report.ok()) << report.status();
    for (const StoreFault& fault : report->faults) ADD_FAILURE() << fault.ToString();
  }
  // One stream has lost so many chunks to damage; all else is there.
  void ExpectLost(uint64_t chunks_lost, uint64_t chunks_each) {
    {
      const auto store = OpenStore();
      ASSERT_NE(store, nullptr);
      uint64_t lost = 0;
      for (const StreamRecord& record : Streams(*store)) {
        EXPECT_EQ(record.next_sequence, chunks_each);
        EXPECT_EQ(record.events + record.events_lost(), chunks_each * kEventsPerChunk);
        for (const Loss& loss : record.losses) {
          EXPECT_EQ(loss.place, LossPlace::kStore);
          EXPECT_EQ(loss.reason, LossReason::kMalformed);
        }
        lost += record.events_lost();
      }
      EXPECT_EQ(lost, chunks_lost * kEventsPerChunk);
      ExpectReadable(*store);
      // Writing continues where it was.
      const ReceivedChunk next = RealChunk(1, 0, chunks_each);
      const auto result = store->chunks().PutBatch({&next, 1});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->front().outcome, PutOutcome::kStored);
    }
    ExpectSound();
    const auto again = OpenStore();
    ASSERT_NE(again, nullptr);
    EXPECT_THAT(again->notes(), IsEmpty());  // once is enough
  }
};

TEST_F(StoreRecoveryTest, DamageInTheMiddleOfTheLogIsACountedLoss) {
  Fill(1, 1, 60);
  FlipInLogOf(1, 0, 20);
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  EXPECT_THAT(store->notes(), Contains(HasSubstr("damaged in the middle")));
  const auto records = Streams(*store);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].next_sequence, 60u);
  EXPECT_GT(records[0].events_lost(), 0u);
  EXPECT_EQ(records[0].events + records[0].events_lost(), 60u * kEventsPerChunk);
  EXPECT_TRUE(records[0].Conserved());
  ASSERT_EQ(records[0].losses.size(), 1u);
  EXPECT_EQ(records[0].losses[0].place, LossPlace::kStore);
  ExpectReadable(*store);
  EXPECT_THAT(store->captures().Get(TestCaptureId(1))->warnings,
              Contains(HasSubstr("disk damage destroyed")));
}

// The audit log lies in the store's directory, and its name ends like a write-ahead log's.
TEST_F(StoreRecoveryTest, NoRepairTouchesFilesThatAreNotTheStores) {
  const std::string audit = path() + "/audit.log";
  const std::string content(100'000, 'a');  // no log of RocksDB's
  WriteFile(audit, content);
  std::filesystem::permissions(audit, std::filesystem::perms(0600));
  WriteFile(path() + "/notes.sst", "a table of somebody's");
  struct stat before = {};
  ASSERT_EQ(stat(audit.c_str(), &before), 0);
  const auto expect_untouched = [&](const char* after) {
    SCOPED_TRACE(after);
    struct stat now = {};
    ASSERT_EQ(stat(audit.c_str(), &now), 0);
    EXPECT_EQ(now.st_ino, before.st_ino);
    EXPECT_EQ(now.st_mode, before.st_mode);
    EXPECT_EQ(ReadFile(audit), content);
    EXPECT_EQ(ReadFile(path() + "/notes.sst"), "a table of somebody's");
    EXPECT_FALSE(std::filesystem::exists(audit + ".damaged"));
  };
  EXPECT_THAT(OpenStore()->notes(), IsEmpty());
  expect_untouched("a sound start");
  Fill(1, 1, 60);
  FlipInLogOf(1, 0, 20);
  EXPECT_THAT(OpenStore()->notes(), Contains(HasSubstr("damaged in the middle")));
  expect_untouched("a repaired log");
  Fill(2, 1, 60);  // what is new is in the log again
  FlipInLogOf(2, 0, 30);
  EXPECT_THAT(OpenStore()->notes(), Contains(HasSubstr("damaged in the middle")));
  expect_untouched("a second repair");
  Flush();
  FlipInLargest("MANIFEST-");
  EXPECT_NE(OpenStore(), nullptr);
  expect_untouched("a rebuilt store");
}

// RocksDB drops the rest of the block behind it, without a message.
TEST_F(StoreRecoveryTest, AHeaderOfZerosInTheLogIsACountedLoss) {
  Fill(1, 1, 60);
  const std::filesystem::path log = Files(".log").back();
  std::string bytes = ReadFile(log);
  constexpr size_t kBlock = 32'768;
  constexpr size_t kHeader = 7;  // checksum, length, type
  size_t at = 0;
  for (int fragments = 0; fragments < 20; ++fragments) {
    const auto length = static_cast<size_t>(static_cast<uint8_t>(bytes[at + 4]) |
                                            static_cast<uint8_t>(bytes[at + 5]) << 8);
    at += kHeader + length;
    if (kBlock - at % kBlock < kHeader) at += kBlock - at % kBlock;
    ASSERT_LT(at + kHeader, bytes.size());
  }
  WriteFile(log, bytes.replace(at + 4, 3, std::string(3, '\0')));
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  EXPECT_THAT(store->notes(), Contains(HasSubstr("damaged in the middle")));
  const auto records = Streams(*store);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].next_sequence, 60u);
  EXPECT_GT(records[0].events_lost(), 0u);
  EXPECT_LT(records[0].events_lost(), 10 * kEventsPerChunk) << "only the damaged write is lost";
  EXPECT_TRUE(records[0].Conserved());
  ExpectReadable(*store);
}

TEST_F(StoreRecoveryTest, AfterDamageInTheLogTheStoreIsSound) {
  Fill(1, 1, 60);
  FlipInLogOf(1, 0, 20);
  ASSERT_NE(OpenStore(), nullptr);
  ExpectSound();
  const auto again = OpenStore();
  ASSERT_NE(again, nullptr);
  EXPECT_THAT(again->notes(), IsEmpty());
}

// A check reads the log as it is, and finds chunks missing that the next start books, or gets back.
TEST_F(StoreRecoveryTest, RepairedDamageIsNoFinding) {
  Fill(1, 1, 60);
  FlipInLogOf(1, 0, 20);
  const auto report = CheckStore(path(), nullptr, {.examine = ExamineThrough(door())});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->faults_total, 0u);
  ASSERT_TRUE(RememberFaults(path(), nullptr, *report).ok());
  // As if the chunk had been sent again.
  const FoundDamage whole{.capture = TestCaptureId(1),
                          .stream = 0,
                          .sequence = 0,
                          .kind = RemarkKind::kStoreFault,
                          .what = "chunk 0: it is missing; the next one is 1"};
  ASSERT_TRUE(AppendFoundDamage(path(), *rocksdb::Env::Default(), {&whole, 1}).ok());
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  EXPECT_FALSE(std::filesystem::exists(path() + "/FOUND_DAMAGE"));
  EXPECT_THAT(Streams(*store)[0].remarks, IsEmpty());
  EXPECT_GT(Streams(*store)[0].events_lost(), 0u);
}

TEST_F(StoreRecoveryTest, ARecordOfACaptureLostInTheLogIsMadeAgain) {
  Fill(1, 1, 60);
  // The capture's own record is the first long write of the log.
  for (const auto& log : Files(".log")) {
    const size_t at = ReadFile(log).find("capture 1");
    if (at != std::string::npos) FlipAt(log, at + 2);
  }
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  const auto record = store->captures().Get(TestCaptureId(1));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->state, CaptureState::kIncomplete);
  ASSERT_FALSE(Streams(*store).empty());
  EXPECT_TRUE(Streams(*store)[0].Conserved());
}

TEST_F(StoreRecoveryTest, TornLogOpensSilently) {
  Fill(1, 2, 5);
  std::filesystem::path log;
  for (const auto& file : Files(".log")) log = file;
  std::filesystem::resize_file(log, std::filesystem::file_size(log) - 20);
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  EXPECT_THAT(store->notes(), IsEmpty());
  for (const StreamRecord& record : Streams(*store)) EXPECT_EQ(record.next_sequence, 4u);
}

TEST_F(StoreRecoveryTest, ADamagedChunkBecomesALossWhenItIsRead) {
  Fill(1, 2, 5);
  Flush();
  FlipInBlobOf(1, 1, 3);
  {
    const auto store = OpenStore();
    ASSERT_NE(store, nullptr);
    EXPECT_THAT(store->notes(), IsEmpty());
    StoredChunk chunk;
    const StreamReader stream = store->OpenCapture(TestCaptureId(1)).Stream(1);
    EXPECT_EQ(stream.ReadChunk(3, chunk).code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(stream.ReadChunk(3, chunk).code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(store->chunks().damaged_chunks(), 1u);
    const StreamRecord record = Streams(*store)[1];
    EXPECT_EQ(record.events, 4u * kEventsPerChunk);
    ASSERT_EQ(record.losses.size(), 1u);
    EXPECT_EQ(record.losses[0].events, kEventsPerChunk);
    EXPECT_EQ(record.losses[0].reason, LossReason::kMalformed);
    EXPECT_GT(record.losses[0].last_timestamp_ns, 0u);
  }
  ExpectLost(1, 5);
}

TEST_F(StoreRecoveryTest, AFlippedTableLosesNothing) {
  Fill(1, 3, 20);
  Flush();
  FlipInLargest(".sst");
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  EXPECT_THAT(store->notes(), Contains(HasSubstr("rebuilt")));
  EXPECT_TRUE(std::filesystem::exists(path() + "/damaged-1/CURRENT"));
  ExpectWhole(*store, 3, 20);
  EXPECT_EQ(store->aggregator_id(), "aggregator-1");
}

TEST_F(StoreRecoveryTest, EveryTableCanBeFlipped) {
  Fill(1, 2, 10);
  Flush();
  for (size_t i = 0; i < 8; ++i) {
    const auto tables = Files(".sst");
    if (i >= tables.size()) break;
    FlipAt(tables[i], std::filesystem::file_size(tables[i]) / 4);
    const auto store = OpenStore();
    ASSERT_NE(store, nullptr) << tables[i];
    ExpectWhole(*store, 2, 10);
    // A capture's own record has no second copy.
    EXPECT_TRUE(store->captures().Get(TestCaptureId(1)).ok());
  }
}

TEST_F(StoreRecoveryTest, AMissingTableLosesNothing) {
  Fill(1, 2, 10);
  Flush();
  std::filesystem::remove(Files(".sst").back());
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  ExpectWhole(*store, 2, 10);
}

TEST_F(StoreRecoveryTest, AnUnreadableManifestOrCurrentLosesNothing) {
  Fill(1, 2, 10);
  Flush();
  for (const char* const kind : {"MANIFEST-", "CURRENT"}) {
    for (const bool gone : {false, true}) {
      const auto file = Files(kind).back();
      if (gone) {
        std::filesystem::remove(file);
      } else {
        FlipAt(file, std::filesystem::file_size(file) / 2);
      }
      const auto store = OpenStore();
      ASSERT_NE(store, nullptr) << kind << gone;
      EXPECT_THAT(store->notes(), Contains(HasSubstr("rebuilt"))) << kind << gone;
      ExpectWhole(*store, 2, 10);
    }
  }
}

TEST_F(StoreRecoveryTest, LogOnlyDataSurvivesLostManifest) {
  Fill(1, 2, 10);
  std::filesystem::remove(Files("MANIFEST-").back());
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  ExpectWhole(*store, 2, 10);
}

TEST_F(StoreRecoveryTest, ABlobFilesOwnHeaderAndFooterAreNotItsChunks) {
  Fill(1, 2, 10);
  Flush();
  for (const int from_end : {-1, -13, -20, 3}) {  // negative: from the beginning
    SCOPED_TRACE(from_end);
    const auto blob = Files(".blob").back();
    FlipAt(blob, from_end < 0 ? -from_end : std::filesystem::file_size(blob) - from_end);
    const auto store = OpenStore();
    ASSERT_NE(store, nullptr);
    EXPECT_THAT(store->notes(), Contains(HasSubstr("rebuilt")));
    ExpectWhole(*store, 2, 10);
  }
}

TEST_F(StoreRecoveryTest, RebuildCountsLostData) {
  Fill(1, 2, 10);
  Flush();
  FlipInBlobOf(1, 1, 9);
  FlipInBlobOf(1, 0, 4);
  std::filesystem::remove(Files("MANIFEST-").back());
  ExpectLost(2, 10);
}

TEST_F(StoreRecoveryTest, ADeletedCaptureDoesNotComeBackWithItsChunks) {
  Fill(2, 2, 10);
  ASSERT_TRUE(OpenStore()->DeleteCapture(TestCaptureId(2)).ok());
  std::filesystem::remove(Files("MANIFEST-").back());
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  ExpectWhole(*store, 2, 10);
  EXPECT_THAT(Streams(*store, 2), IsEmpty());
}

// Blob files hold what has expired until they are deleted themselves.
TEST_F(StoreRecoveryTest, RebuildDoesNotRestoreExpiredData) {
  for (const bool flushed : {false, true}) {
    SCOPED_TRACE(flushed ? "in files" : "in the log");
    std::filesystem::remove_all(path());
    std::filesystem::create_directory(path());
    Fill(1, 2, 10);
    Flush();
    {
      const auto store = OpenStore();
      const auto trimmed = store->chunks().Trim(TestCaptureId(1), 0, {.before_sequence = 4});
      ASSERT_TRUE(trimmed.ok()) << trimmed.status();
      EXPECT_EQ(trimmed->chunks, 4u);
    }
    ExpectSound();
    if (flushed) Flush();
    std::filesystem::remove(Files("MANIFEST-").back());
    {
      const auto store = OpenStore();
      ASSERT_NE(store, nullptr);
      EXPECT_THAT(store->notes(), Contains(HasSubstr("rebuilt")));
      const auto records = Streams(*store);
      ASSERT_EQ(records.size(), 2u);
      EXPECT_EQ(records[0].next_sequence, 10u);
      EXPECT_EQ(records[0].first_sequence, 4u);
      EXPECT_EQ(records[0].chunks, 6u);
      EXPECT_EQ(records[0].events_expired(), 4u * kEventsPerChunk);
      EXPECT_EQ(records[0].events_lost(), 0u);
      EXPECT_EQ(records[1].events, 10u * kEventsPerChunk);
      ExpectReadable(*store);
    }
    ExpectSound();
  }
}

TEST_F(StoreRecoveryTest, InterruptedRebuildRestarts) {
  Fill(1, 2, 10);
  Flush();
  std::filesystem::remove(Files("MANIFEST-").back());
  std::filesystem::create_directory(path() + "/rebuilding");
  WriteFile(path() + "/rebuilding/000004.blob", "half");
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  ExpectWhole(*store, 2, 10);
}

TEST_F(StoreRecoveryTest, AMoveThatWasInterruptedIsEnded) {
  Fill(1, 2, 10);
  Flush();
  // As it is when half of the old files are away.
  std::filesystem::create_directory(path() + "/rebuilding");
  std::filesystem::create_directory(path() + "/damaged-1");
  for (const auto& [name, bytes] : Snapshot()) {
    if (name != "LOCK") WriteFile(path() + "/rebuilding/" + name, bytes);
  }
  WriteFile(path() + "/rebuilding/COMPLETE", "damaged-1");
  std::filesystem::rename(path() + "/CURRENT", path() + "/damaged-1/CURRENT");
  {
    const auto store = OpenStore();
    ASSERT_NE(store, nullptr);
    ExpectWhole(*store, 2, 10);
  }
  EXPECT_FALSE(std::filesystem::exists(path() + "/rebuilding"));
  // And when half of the new ones are in.
  std::filesystem::create_directory(path() + "/rebuilding");
  WriteFile(path() + "/rebuilding/MOVING", "damaged-1");
  std::filesystem::rename(path() + "/CURRENT", path() + "/rebuilding/CURRENT");
  const auto store = OpenStore();
  ASSERT_NE(store, nullptr);
  ExpectWhole(*store, 2, 10);
}

TEST_F(StoreRecoveryTest, WithoutItsCurrentFileTheOldFilesAreNotDeleted) {
  Fill(1, 1, 5);
  Flush();
  std::filesystem::remove(path() + "/CURRENT");
  const auto blobs = Files(".blob").size();
  const auto refused = Store::Open(path(), {});  // with nothing to look at chunks with
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("its file CURRENT is missing"));
  EXPECT_EQ(Files(".blob").size(), blobs);
}

// A copy of a store may come from anybody.
TEST_F(StoreRecoveryTest, NoFileOfAStoreIsReadThroughALink) {
  Fill(1, 1, 5);
  Flush();
  const std::filesystem::path blob = Files(".blob").front();
  const std::string elsewhere = path() + ".elsewhere";
  std::filesystem::rename(blob, elsewhere);
  std::filesystem::create_symlink(elsewhere, blob);
  for (const bool with_current : {true, false}) {
    const auto refused = Store::Open(path(), {.examine = ExamineThrough(door())});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << refused.status();
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("put the file itself there"));
    if (with_current) std::filesystem::remove(path() + "/CURRENT");
  }
  EXPECT_TRUE(std::filesystem::is_symlink(blob)) << "nothing is moved";
  std::filesystem::remove(elsewhere);
}

}  // namespace
}  // namespace neurontrace
