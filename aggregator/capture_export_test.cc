// SPDX-License-Identifier: Apache-2.0
// What is said of a file whose capture is damaged on disk: every format, from a real store.
#include "aggregator/capture_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "aggregator/reply_files.h"
#include "aggregator/store_damage_test_support.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CaptureExportTest : public StoreDamageTest {
 protected:
  // A capture that has ended, of whose two streams everything came.
  void FillWhole() {
    Fill(1, 2, 5);
    record_ = TestCapture(1);
    record_.state = CaptureState::kComplete;
    record_.ended_realtime_ns = 2'000;
    record_.agents = {{.agent_id = "a", .instance_id = "i-a", .finished = true}};
    {
      const auto store = OpenStore();
      for (uint32_t stream = 0; stream < 2; ++stream) {
        const ReceivedChunk last = RealChunk(1, stream, 5, true);
        record_.agents[0].instance_id = last.header.stream.worker.instance_id;
        record_.workers = {{.capture_id = record_.id,
                            .worker = last.header.stream.worker,
                            .state = CaptureWorkerState::kComplete,
                            .events_read = 2 * 5 * kEventsPerChunk,
                            .streams = 2}};
        ASSERT_TRUE(store->chunks().PutBatch({&last, 1}).ok());
      }
      ASSERT_TRUE(store->captures().Put(record_, true).ok());
    }
    Flush();
  }

  v1::ExportDone Export(const Store& store, v1::ExportFormat format) {
    v1::ExportRequest request;
    request.set_capture_id(record_.id.ToString());
    request.set_format(format);
    v1::ExportDone done;
    file_.clear();
    const ExportWriter write = [&](const v1::ExportReply& reply) {
      file_ += reply.data();
      if (reply.has_done()) done = reply.done();
      return true;
    };
    ReplyFiles files(write);
    const absl::Status status = ExportStoredCapture(store, record_, request, clocks_, files, write);
    EXPECT_TRUE(status.ok()) << status;
    return done;
  }

  CaptureRecord record_;
  CaptureClocks clocks_;
  std::string file_;
};

constexpr v1::ExportFormat kFormats[] = {
    v1::EXPORT_FORMAT_PERFETTO,     v1::EXPORT_FORMAT_JSON,         v1::EXPORT_FORMAT_EVENTS,
    v1::EXPORT_FORMAT_SUMMARY_TEXT, v1::EXPORT_FORMAT_SUMMARY_JSON, v1::EXPORT_FORMAT_CHROME_JSON,
    v1::EXPORT_FORMAT_XSPACE};

TEST_F(CaptureExportTest, OfAWholeCaptureNothingIsMissingInAnyFormat) {
  FillWhole();
  const auto store = OpenStore();
  for (const v1::ExportFormat format : kFormats) {
    const v1::ExportDone done = Export(*store, format);
    EXPECT_FALSE(done.capture_incomplete()) << v1::ExportFormat_Name(format);
    EXPECT_THAT(done.verdict(), StartsWith("complete")) << v1::ExportFormat_Name(format);
  }
}

TEST_F(CaptureExportTest, AChunkThatIsDamagedOnDiskMakesItsFilesIncompleteInEveryFormat) {
  FillWhole();
  FlipInBlobOf(1, 1, 3);
  const auto untouched = Snapshot();
  for (const v1::ExportFormat first : kFormats) {
    // What an earlier round made of it goes.
    std::filesystem::remove_all(path());
    std::filesystem::create_directory(path());
    for (const auto& [name, bytes] : untouched) WriteFile(path() + "/" + name, bytes);
    auto store = OpenStore();
    // Who meets the damage says so.
    const v1::ExportDone met = Export(*store, first);
    EXPECT_TRUE(met.capture_incomplete()) << v1::ExportFormat_Name(first);
    EXPECT_THAT(met.verdict(), HasSubstr("1 stored chunk cannot be read and is left out"));
    ASSERT_GE(met.warnings_size(), 1);
    EXPECT_THAT(met.warnings(0), HasSubstr("left out"));
    // A compaction of RocksDB's that met it first keeps the store from being written to until it is
    // opened anew, as the aggregator does then.
    for (int i = 0; i < 5 && !Export(*store, v1::EXPORT_FORMAT_SUMMARY_JSON).capture_incomplete();
         ++i) {
      store.reset();
      store = OpenStore();
      Export(*store, v1::EXPORT_FORMAT_EVENTS);
    }
    // From then on it is a loss of the capture's.
    for (const v1::ExportFormat format : kFormats) {
      const v1::ExportDone done = Export(*store, format);
      EXPECT_TRUE(done.capture_incomplete()) << v1::ExportFormat_Name(format);
      EXPECT_THAT(done.verdict(), HasSubstr("8 of 80 events lost")) << done.verdict();
    }
  }
}

}  // namespace
}  // namespace neurontrace
