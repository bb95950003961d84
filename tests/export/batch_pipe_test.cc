// SPDX-License-Identifier: Apache-2.0
// Goal: whoever takes batches gets each once, in order, and prepared before; and a pipe that nobody
// empties ends all the same. Run under ThreadSanitizer, too.
#include "aggregator/export/batch_pipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

class BatchPipeTest : public ExportFixture {
 protected:
  // More batches than a pipe holds.
  BatchPipeTest() {
    const uint32_t stream = AddCore("i-a", 1, 0, 0);
    for (uint64_t i = 0; i < kSpans; ++i) {
      script_.Span("s", kBase + 10 * i, kBase + 10 * i + 5, i + 1);
      if (i % 100 == 99) Close(stream);
    }
    TimelineOptions options;
    options.batch_records_target = 100;
    auto reader = TimelineReader::Open(source_, std::move(options));
    EXPECT_TRUE(reader.ok());
    reader_ = *std::move(reader);
  }

  static constexpr uint64_t kSpans = 5'000;
  std::unique_ptr<TimelineReader> reader_;
};

TEST_F(BatchPipeTest, EveryBatchIsPreparedBeforeItIsTaken) {
  std::mutex mutex;
  std::vector<uint64_t> prepared;  // ends of batches
  BatchPipe pipe(*reader_, [&](const TimelineBatch& batch) {
    const std::lock_guard lock(mutex);
    prepared.push_back(batch.end_ns);
  });
  TimelineBatch batch;
  uint64_t taken = 0;
  uint64_t spans = 0;
  while (true) {
    const auto more = pipe.Take(batch);
    ASSERT_TRUE(more.ok());
    if (!*more) break;
    spans += batch.records.size();
    const std::lock_guard lock(mutex);
    ASSERT_GT(prepared.size(), taken);
    EXPECT_EQ(prepared[taken], batch.end_ns);
    EXPECT_LE(prepared.size() - taken, BatchPipe::kBatchesMax + 1);
    ++taken;
  }
  EXPECT_EQ(spans, kSpans);
  EXPECT_EQ(prepared.size(), taken);
  EXPECT_GT(taken, 2 * BatchPipe::kBatchesMax);
}

TEST_F(BatchPipeTest, OneThatNobodyEmptiesEnds) {
  uint64_t prepared = 0;
  {
    BatchPipe pipe(*reader_, [&](const TimelineBatch&) { ++prepared; });
    TimelineBatch batch;
    ASSERT_TRUE(pipe.Take(batch).ok());
  }
  EXPECT_GE(prepared, 1u);
  EXPECT_LE(prepared, BatchPipe::kBatchesMax + 1);
}

TEST_F(BatchPipeTest, WithoutPreparationBatchesComeAsTheyAreRead) {
  BatchPipe pipe(*reader_, nullptr);
  TimelineBatch batch;
  uint64_t spans = 0;
  while (true) {
    const auto more = pipe.Take(batch);
    ASSERT_TRUE(more.ok());
    if (!*more) break;
    spans += batch.records.size();
  }
  EXPECT_EQ(spans, kSpans);
  EXPECT_EQ(pipe.counts().spans, kSpans);
}

}  // namespace
}  // namespace neurontrace
