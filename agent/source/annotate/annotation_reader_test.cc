// SPDX-License-Identifier: Apache-2.0
#include "agent/source/annotate/annotation_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "agent/source/annotate/annotation_test_support.h"
#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

class AnnotationReaderTest : public ::testing::Test {
 protected:
  AnnotationReaderTest() : reader_(*AnnotationReader::Open(fake_.memfd())) {}

  FakeAnnotations fake_;
  std::unique_ptr<AnnotationReader> reader_;
  ReadAnnotation read_;
};

TEST_F(AnnotationReaderTest, ReadsAndReleasesRecordsAroundTheEndOfTheRing) {
  const std::string message(300, 'm');
  for (int i = 0; i < 3'000; ++i) {
    AnnotationRecord record = FakeAnnotations::Make(AnnotationType::kMark, 1'000 + i);
    record.category = 3;
    ASSERT_TRUE(fake_.Write(record, message, "domain", "category", 5));
    ASSERT_TRUE(*reader_->Next(5, read_));
    EXPECT_EQ(read_.record.realtime_ns, 1'000u + i);
    EXPECT_EQ(read_.message, message);
    EXPECT_EQ(read_.domain, "domain");
    EXPECT_EQ(read_.category, "category");
    EXPECT_FALSE(*reader_->Next(5, read_));
  }
  EXPECT_EQ(*reader_->TakeDropped(), 0u);
}

TEST_F(AnnotationReaderTest, TextsAreCleaned) {
  ASSERT_TRUE(fake_.Write(FakeAnnotations::Make(AnnotationType::kMark, 1),
                          "a\x1b\xff"
                          "b"));
  ASSERT_TRUE(*reader_->Next(0, read_));
  EXPECT_EQ(read_.message, "a??b");
}

TEST_F(AnnotationReaderTest, CountsWhatWasDropped) {
  const std::string message(500, 'm');
  uint64_t refused = 0;
  for (int i = 0; i < 600; ++i) {
    refused += fake_.Write(FakeAnnotations::Make(AnnotationType::kMark, 1), message) ? 0 : 1;
  }
  fake_.header().dropped_without_ring.store(4);
  ASSERT_GT(refused, 0u);
  EXPECT_EQ(*reader_->TakeDropped(), refused + 4);
  EXPECT_EQ(*reader_->TakeDropped(), 0u);
  fake_.header().dropped_without_ring.store(3);
  EXPECT_FALSE(reader_->TakeDropped().ok());
}

TEST_F(AnnotationReaderTest, RefusesInvalidPositionsAndLengths) {
  const auto next_is_refused = [this](uint64_t write_pos) {
    fake_.ring(1).write_pos.store(write_pos);
    return absl::IsDataLoss(reader_->Next(1, read_).status());
  };
  EXPECT_TRUE(next_is_refused(kAnnotationRingBytes + 8));
  EXPECT_TRUE(next_is_refused(UINT64_MAX - 7));
  EXPECT_TRUE(next_is_refused(sizeof(AnnotationRecord) + 1));
  EXPECT_TRUE(next_is_refused(8));
  EXPECT_TRUE(next_is_refused(sizeof(AnnotationRecord))) << "a length of 0";
  AnnotationRecord record = FakeAnnotations::Make(AnnotationType::kMark, 1);
  record.message_bytes = 16;
  record.length = sizeof record + 16;
  std::memcpy(fake_.data(1), &record, sizeof record);
  EXPECT_TRUE(next_is_refused(sizeof record + 8)) << "longer than what was written";
  record.message_bytes = 0xffff;
  record.length = sizeof record + 0xffff;
  std::memcpy(fake_.data(1), &record, sizeof record);
  EXPECT_TRUE(next_is_refused(kAnnotationRingBytes)) << "longer than the format allows";
}

TEST_F(AnnotationReaderTest, RefusesOtherFiles) {
  const UniqueFd file(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(AnnotationReader::Open(file.get()).ok());
  FakeAnnotations other;
  other.header().format_version = 2;
  EXPECT_FALSE(AnnotationReader::Open(other.memfd()).ok());
  other.header().format_version = kAnnotationFormatVersion;
  other.header().ring_bytes *= 2;
  EXPECT_FALSE(AnnotationReader::Open(other.memfd()).ok());
  other.header().ring_bytes = kAnnotationRingBytes;
  other.header().magic = 1;
  EXPECT_FALSE(AnnotationReader::Open(other.memfd()).ok());
  other.header().magic = kAnnotationBufferMagic;
  other.ring(3).read_pos.store(4);
  EXPECT_FALSE(AnnotationReader::Open(other.memfd()).ok());
  other.ring(3).read_pos.store(8);
  EXPECT_TRUE(AnnotationReader::Open(other.memfd()).ok());
}

// The process writes to the header while it is checked. ThreadSanitizer reports a plain load of the
// same mapping.
TEST_F(AnnotationReaderTest, LoadsTheHeaderWhileAProcessWritesIt) {
  std::thread process([this] {
    AnnotationBufferHeader& about = fake_.header();
    for (uint32_t i = 0; i < 1'000; ++i) {
      std::atomic_ref(about.header_bytes).store(i);
      std::atomic_ref(about.ring_count).store(i);
      std::atomic_ref(about.ring_header_bytes).store(i);
      std::atomic_ref(about.ring_bytes).store(i);
      std::atomic_ref(about.header_bytes).store(kAnnotationHeaderBytes);
      std::atomic_ref(about.ring_count).store(kAnnotationRings);
      std::atomic_ref(about.ring_header_bytes).store(kAnnotationRingHeaderBytes);
      std::atomic_ref(about.ring_bytes).store(kAnnotationRingBytes);
    }
  });
  for (int i = 0; i < 100; ++i) {
    const absl::Status status = AnnotationReader::Over(&fake_.header()).status();
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  }
  process.join();
  EXPECT_TRUE(AnnotationReader::Over(&fake_.header()).ok());
}

}  // namespace
}  // namespace neurontrace
