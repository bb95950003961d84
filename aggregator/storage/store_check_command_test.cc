// SPDX-License-Identifier: Apache-2.0
// A store with real chunks, whole and then damaged byte by byte: the output of the check.
#include "aggregator/storage/store_check_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "aggregator/certificate/make_certificate.h"
#include "aggregator/ingest/chunk_admission.h"
#include "aggregator/storage/store_damage_test_support.h"
#include "aggregator/store/chunk_index_entry.h"
#include "lib/base/sha256.h"
#include "lib/trace/artifact.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreCheckTest : public StoreDamageTest {
 protected:
  StoreCheckReport Check() {
    const auto report = CheckStore(path(), nullptr, {.examine = ExamineThrough(door())});
    EXPECT_TRUE(report.ok()) << report.status();
    return report.value_or(StoreCheckReport{});
  }
  std::string Faults(const StoreCheckReport& report) {
    std::string text;
    for (const StoreFault& fault : report.faults) text += fault.ToString() + "\n";
    return text;
  }
  int Run(bool json, std::string& printed) {
    StoreCheckCommandOptions options;
    options.store = path();
    options.json = json;
    FILE* const out = std::tmpfile();
    FILE* const err = std::tmpfile();
    const int code = RunStoreCheck(options, out, err);
    for (FILE* const file : {out, err}) {
      std::rewind(file);
      for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) {
        printed.push_back(static_cast<char>(c));
      }
      std::fclose(file);
    }
    return code;
  }
};

TEST_F(StoreCheckTest, ASoundStoreIsSoundAndUnchanged) {
  Fill(2, 3, 5);
  const auto before = Snapshot();
  const StoreCheckReport report = Check();
  EXPECT_THAT(Faults(report), IsEmpty());
  EXPECT_EQ(report.captures, 2u);
  EXPECT_EQ(report.streams, 6u);
  EXPECT_EQ(report.chunks, 30u);
  EXPECT_EQ(report.events, 30u * kEventsPerChunk);
  EXPECT_EQ(Snapshot(), before);
  std::string printed;
  EXPECT_EQ(Run(false, printed), 0);
  EXPECT_THAT(printed, HasSubstr("30 chunks"));
  EXPECT_THAT(printed, HasSubstr("sound"));
}

TEST_F(StoreCheckTest, ASoundStoreInFilesIsSound) {
  Fill(2, 3, 5);
  Flush();
  const StoreCheckReport report = Check();
  EXPECT_THAT(Faults(report), IsEmpty());
  EXPECT_EQ(report.chunks, 30u);
  EXPECT_GT(report.files, 0u);
}

TEST_F(StoreCheckTest, NamesTheChunkWhoseBytesAreDamaged) {
  Fill(1, 2, 5);
  Flush();
  FlipInBlobOf(1, 1, 3);
  const StoreCheckReport report = Check();
  EXPECT_EQ(report.faults_total, 1u) << Faults(report);
  EXPECT_THAT(Faults(report), AllOf(HasSubstr("capture " + TestCaptureId(1).ToString()),
                                    HasSubstr("stream 1, chunk 3: "), HasSubstr("damaged")));
  EXPECT_EQ(report.chunks, 9u);
  std::string printed;
  EXPECT_EQ(Run(true, printed), 1);
  EXPECT_THAT(printed, HasSubstr("\"sound\":false"));
  EXPECT_THAT(printed, HasSubstr("\"stream\":1,\"sequence\":3,\"what\":\""));
}

TEST_F(StoreCheckTest, TheCertificateOfTheCaptureRemembersWhatItFound) {
  Fill(1, 2, 5);
  EditStore([](Database& database) {
    auto record =
        DecodeStreamRecord(1, *database.Get(Family::kStreams, keys::Stream(TestCaptureId(1), 1)))
            .value();
    record.events += 7;
    EXPECT_TRUE(database
                    .Put(Family::kStreams, keys::Stream(TestCaptureId(1), 1),
                         EncodeStreamRecord(record), true)
                    .ok());
  });
  std::string printed;
  EXPECT_EQ(Run(false, printed), 1);
  EXPECT_EQ(Run(false, printed), 1);  // the same again
  for (int start = 0; start < 2; ++start) {
    const auto store = OpenStore();
    const auto record = store->captures().Get(TestCaptureId(1)).value();
    const Certificate certificate = ReadCertificate(*store, record).value();
    EXPECT_THAT(certificate.findings,
                Contains(AllOf(HasSubstr("found by a check of the store"), HasSubstr("events: "))));
    EXPECT_FALSE(certificate.complete);
  }
}

TEST_F(StoreCheckTest, ReadsEveryArtifact) {
  Fill(1, 1, 1);
  const std::string content = "of the vendor's profiler";
  Sha256 sha;
  sha.Update(content);
  ArtifactReference reference{.capture_id = TestCaptureId(1),
                              .agent_id = "a",
                              .place = MakeArtifactPlace("i-1_pid_7", "", "ntrace.pb").value(),
                              .sha256 = sha.Finish(),
                              .bytes = content.size()};
  {
    const auto store = OpenStore();
    auto upload = store->artifacts().files().Receive(reference.sha256, content.size()).value();
    ASSERT_TRUE(upload->Append(content).ok());
    ASSERT_TRUE(upload->Finish().ok());
    ASSERT_EQ(store->artifacts().Refer(reference).value(), ArtifactStore::Outcome::kKept);
  }
  StoreCheckReport report = Check();
  EXPECT_THAT(Faults(report), IsEmpty());
  EXPECT_EQ(report.artifacts, 1u);
  EXPECT_EQ(report.artifact_bytes, content.size());
  const std::string hex = HexOf(reference.sha256);
  const std::string file = path() + "/artifacts/" + hex.substr(0, 2) + "/" + hex;
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  const std::string where =
      "capture " + TestCaptureId(1).ToString() + ": artifact i-1_pid_7/ntrace.pb: its content ";
  write("of the vendor's profileR");
  EXPECT_EQ(Faults(Check()), where + "does not match its hash\n");
  write("short");
  EXPECT_EQ(Faults(Check()), where + "has 5 bytes, not 24\n");
  std::filesystem::remove(file);
  EXPECT_EQ(Faults(Check()), where + "is missing\n");
}

TEST_F(StoreCheckTest, FindsDamageVisibleOnlyInContents) {
  Fill(1, 2, 4);
  EditStore([](Database& database) {
    const CaptureId id = TestCaptureId(1);
    // A chunk too few, an entry too few, and a record that claims more than there is.
    EXPECT_TRUE(
        database.db().Delete({}, database.family(Family::kChunks), keys::Chunk(id, 0, 1)).ok());
    const std::string index =
        database.Get(Family::kChunkIndex, FirstIndexKey(database, id, 1)).value();
    EXPECT_TRUE(
        database.db()
            .Delete({}, database.family(Family::kChunkIndex), FirstIndexKey(database, id, 1))
            .ok());
    auto record =
        DecodeStreamRecord(1, *database.Get(Family::kStreams, keys::Stream(id, 1))).value();
    record.events += 7;
    EXPECT_TRUE(
        database.Put(Family::kStreams, keys::Stream(id, 1), EncodeStreamRecord(record), true).ok());
    // A capture with a chunk but without a stream.
    EXPECT_TRUE(database.Put(Family::kChunks, keys::Chunk(id, 9, 0), "x", true).ok());
  });
  const std::string faults = Faults(Check());
  EXPECT_THAT(faults, HasSubstr("stream 0, chunk 1: it is missing; the next one is 2"));
  EXPECT_THAT(faults, HasSubstr("stream 1, chunk 0: its index entry is missing"));
  EXPECT_THAT(faults, HasSubstr("stream 1: events: "));
  EXPECT_THAT(faults, HasSubstr("stream 9: it has entries in chunks but no record"));
}

TEST_F(StoreCheckTest, IndexEntryMustMatchChunk) {
  Fill(1, 1, 1);
  std::string written;
  const auto rewrite = [&](const std::function<void(ForeignStops&)>& change) {
    EditStore([&](Database& database) {
      const std::string key = FirstIndexKey(database, TestCaptureId(1), 0);
      if (written.empty()) written = database.Get(Family::kChunkIndex, key).value();
      ChunkIndexEntry entry;
      ForeignStops stops;
      ASSERT_TRUE(DecodeChunkIndexValue(written, entry, &stops).ok());
      EXPECT_TRUE(stops.has_all_types);
      ASSERT_FALSE(stops.event_types.empty());
      change(stops);
      ChunkHeader header;
      header.first_timestamp_ns = entry.first_timestamp_ns;
      header.event_count = entry.event_count;
      EXPECT_TRUE(database
                      .Put(Family::kChunkIndex, key,
                           EncodeChunkIndexValue(header, entry.bytes, stops), true)
                      .ok());
    });
    return Faults(Check());
  };
  EXPECT_THAT(rewrite([](ForeignStops&) {}), IsEmpty());
  const auto is_other = HasSubstr("chunk 0: its index entry does not match its columns");
  EXPECT_THAT(rewrite([](auto& stops) { stops.event_types.back() += "x"; }), is_other);
  EXPECT_THAT(rewrite([](auto& stops) { stops.event_types.pop_back(); }), is_other);
  EXPECT_THAT(rewrite([](auto& stops) { stops.has_all_types = false; }), is_other);
}

TEST_F(StoreCheckTest, ReportsInterruptedDeletion) {
  Fill(2, 1, 2);
  EditStore([](Database& database) {
    EXPECT_TRUE(database.db()
                    .Delete({}, database.family(Family::kCaptures), keys::Capture(TestCaptureId(1)))
                    .ok());
  });
  const StoreCheckReport report = Check();
  EXPECT_THAT(Faults(report), IsEmpty());
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes.front(), HasSubstr("is being deleted"));
}

TEST_F(StoreCheckTest, ReportsMissingStore) {
  std::string printed;
  EXPECT_EQ(Run(false, printed), 2);
  EXPECT_THAT(printed, HasSubstr("there is no store in"));
  Fill(1, 1, 1);
  const auto open = OpenStore();
  printed.clear();
  EXPECT_EQ(Run(false, printed), 2);
  EXPECT_THAT(printed, HasSubstr("this process has the store open"));
}

TEST_F(StoreCheckTest, FindsFlippedBytesInFilesOfKeys) {
  Fill(1, 2, 5);
  Flush();
  FlipInLargest(".sst");
  EXPECT_GT(Check().faults_total, 0u);
}

}  // namespace
}  // namespace neurontrace
