// SPDX-License-Identifier: Apache-2.0
// What the reader takes from shared memory, and every way of lying to it that is refused.
#include "agent/source/neuron/tap/tap_buffer_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "agent/source/neuron/tap/fake_tap.h"
#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class TapBufferReaderTest : public ::testing::Test {
 protected:
  TapBufferReaderTest() { tap_.Seal(F_SEAL_SHRINK | F_SEAL_GROW); }
  void Open() {
    auto reader = TapBufferReader::Open(tap_.memfd());
    ASSERT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
  }
  std::string OpenError() {
    return std::string(TapBufferReader::Open(tap_.memfd()).status().message());
  }
  // The payload of the next record, or what is wrong.
  std::string Next() {
    const absl::StatusOr<bool> more = reader_->Next(buffer_, record_);
    if (!more.ok()) return "error: " + std::string(more.status().message());
    return *more ? std::string(record_.payload, record_.payload_bytes) : "nothing";
  }

  FakeTap tap_;
  std::unique_ptr<TapBufferReader> reader_;
  RecordBuffer buffer_;
  TapRecord record_;
  const CaptureId capture_ = *CaptureId::FromBytes("0123456789abcdef");
};

TEST_F(TapBufferReaderTest, ReadsRecordsInOrderAndPads) {
  Open();
  EXPECT_EQ(Next(), "nothing");
  tap_.WriteDocument("first", capture_, 7);
  tap_.Write(static_cast<TapRecordType>(99), "", CaptureId());
  EXPECT_EQ(Next(), "first");
  EXPECT_EQ(record_.nc_idx, 7u);
  EXPECT_EQ(record_.capture_id, capture_);
  EXPECT_EQ(record_.next_position, 48u);
  EXPECT_EQ(record_.payload[5], '\0');
  EXPECT_EQ(record_.payload[5 + 63], '\0');
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(record_.type, 99u);
  EXPECT_EQ(Next(), "nothing");
}

TEST_F(TapBufferReaderTest, GoesRoundTheRing) {
  Open();
  for (int round = 0; round < 40; ++round) {
    const std::string text(100'003, static_cast<char>('a' + round % 26));
    tap_.WriteDocument(text, capture_);
    ASSERT_EQ(Next(), text) << round;
    reader_->Commit(reader_->position());
  }
}

TEST_F(TapBufferReaderTest, CommitsOnlyWhatWasReadAndNeverBack) {
  Open();
  tap_.WriteDocument("first", capture_);
  tap_.WriteDocument("second", capture_);
  reader_->Commit(96);
  EXPECT_EQ(tap_.read_pos(), 0u);
  Next();
  reader_->Commit(96);
  EXPECT_EQ(tap_.read_pos(), 48u);
  reader_->Commit(8);
  EXPECT_EQ(tap_.read_pos(), 48u);
  Open();
  EXPECT_EQ(Next(), "second") << "a new reader begins at what is committed";
}

TEST_F(TapBufferReaderTest, GivesARecordAgainAfterAStepBack) {
  Open();
  tap_.WriteDocument("first", capture_);
  Next();
  reader_->StepBack(record_);
  EXPECT_EQ(Next(), "first");
}

TEST_F(TapBufferReaderTest, RefusesLengthsThatDoNotFit) {
  for (const uint32_t length : {0u, 39u, 41u + 56, 0xffffffffu, 0x7fffffffu}) {
    Open();
    const uint64_t at = tap_.WriteDocument("x", capture_);
    std::memcpy(tap_.ring() + at, &length, sizeof length);
    EXPECT_THAT(Next(), HasSubstr("has a length of")) << length;
    tap_.header().write_pos.store(at);
  }
}

TEST_F(TapBufferReaderTest, RefusesAWrongChecksum) {
  Open();
  const uint64_t at = tap_.WriteDocument("some text", capture_);
  tap_.ring()[at + 44] ^= 1;
  EXPECT_THAT(Next(), HasSubstr("wrong checksum"));
}

TEST_F(TapBufferReaderTest, RefusesPositionsThatGoBackOrTooFar) {
  Open();
  tap_.WriteDocument("text", capture_);
  EXPECT_EQ(Next(), "text");
  const uint64_t good = tap_.write_pos();
  for (const uint64_t bad : {uint64_t{0}, good + 4, FakeTap::kRingBytes + 8, UINT64_MAX - 7}) {
    tap_.header().write_pos.store(bad);
    EXPECT_THAT(Next(), HasSubstr("write position")) << bad;
  }
  tap_.header().write_pos.store(good + 8);
  EXPECT_THAT(Next(), HasSubstr("ends within a record"));
}

TEST_F(TapBufferReaderTest, RefusesHeadersItDoesNotUnderstand) {
  const auto with = [this](auto change) {
    TapBufferHeader& header = tap_.header();
    std::string before(reinterpret_cast<const char*>(&header), sizeof header);
    change(header);
    const std::string error = OpenError();
    std::memcpy(static_cast<void*>(&header), before.data(), before.size());
    return error;
  };
  EXPECT_THAT(with([](auto& h) { h.magic = 1; }), HasSubstr("magic"));
  EXPECT_THAT(with([](auto& h) { h.format_version = 2; }), HasSubstr("format 2"));
  EXPECT_THAT(with([](auto& h) { h.ring_bytes *= 2; }), HasSubstr("does not fit"));
  EXPECT_THAT(with([](auto& h) { h.ring_bytes -= 8; }), HasSubstr("does not fit"));
  EXPECT_THAT(with([](auto& h) { h.ring_offset = 0; }), HasSubstr("layout of format 1"));
  EXPECT_THAT(with([](auto& h) { h.read_pos.store(3); }), HasSubstr("read position"));
  EXPECT_THAT(with([](auto& h) { h.read_pos.store(8); }), HasSubstr("write position"));
  EXPECT_EQ(OpenError(), "");
}

// The worker writes to the header and to the facts while they are read. ThreadSanitizer reports a
// plain load of the same mapping.
TEST_F(TapBufferReaderTest, LoadsFieldsWhileAWorkerWritesThem) {
  tap_.SetFacts({{"a", "1"}});
  TapBufferHeader& header = tap_.header();
  const auto reader = TapBufferReader::Over(&header, kTapRingOffset + FakeTap::kRingBytes);
  ASSERT_TRUE(reader.ok()) << reader.status();
  auto& facts =
      *reinterpret_cast<TapFactsHeader*>(reinterpret_cast<char*>(&header) + kTapFactsOffset);
  const uint32_t used = facts.used_bytes;
  const uint32_t crc = facts.crc32c;
  std::thread worker([&] {
    for (uint32_t i = 0; i < 1'000; ++i) {
      std::atomic_ref(header.header_bytes).store(i);
      std::atomic_ref(header.facts_offset).store(i);
      std::atomic_ref(header.facts_bytes).store(i);
      std::atomic_ref(header.ring_offset).store(i);
      std::atomic_ref(facts.used_bytes).store(UINT32_MAX - i);
      std::atomic_ref(facts.crc32c).store(i);
      std::atomic_ref(header.header_bytes).store(kTapHeaderBytes);
      std::atomic_ref(header.facts_offset).store(kTapFactsOffset);
      std::atomic_ref(header.facts_bytes).store(kTapFactsBytes);
      std::atomic_ref(header.ring_offset).store(kTapRingOffset);
      std::atomic_ref(facts.used_bytes).store(used);
      std::atomic_ref(facts.crc32c).store(crc);
    }
  });
  for (int i = 0; i < 100; ++i) {
    const absl::Status status =
        TapBufferReader::Over(&header, kTapRingOffset + FakeTap::kRingBytes).status();
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
    const auto read = (*reader)->ReadFacts();
    if (read.ok()) {
      EXPECT_EQ(read->at("a"), "1");
    }
  }
  worker.join();
  EXPECT_EQ(OpenError(), "");
  EXPECT_TRUE((*reader)->ReadFacts().ok());
}

TEST(TapBufferReaderOpenTest, RefusesFilesThatCanChangeTheirSize) {
  FakeTap tap;
  EXPECT_THAT(std::string(TapBufferReader::Open(tap.memfd()).status().message()),
              HasSubstr("not sealed"));
  tap.Seal(F_SEAL_GROW);
  EXPECT_FALSE(TapBufferReader::Open(tap.memfd()).ok());
  tap.Seal(F_SEAL_SHRINK);
  EXPECT_TRUE(TapBufferReader::Open(tap.memfd()).ok());
  const UniqueFd other(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_THAT(std::string(TapBufferReader::Open(other.get()).status().message()),
              HasSubstr("not a memfd"));
}

TEST(TapBufferReaderOpenTest, RefusesFilesOfAnImpossibleSize) {
  for (const off_t bytes : {off_t{0}, off_t{4096}, static_cast<off_t>(kTapRingOffset)}) {
    const UniqueFd file(memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(file.get(), bytes), 0);
    ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    EXPECT_THAT(std::string(TapBufferReader::Open(file.get()).status().message()),
                HasSubstr("has an invalid size of"));
  }
}

TEST_F(TapBufferReaderTest, ReadsFactsWholeOrNotAtAll) {
  tap_.SetFacts({{"a", "1"}, {"env.NAME", "va\nlue\xff"}});
  Open();
  const auto facts = reader_->ReadFacts();
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->at("a"), "1");
  EXPECT_EQ(facts->at("env.NAME"), "va?lue?");
  auto& head =
      *reinterpret_cast<TapFactsHeader*>(reinterpret_cast<char*>(&tap_.header()) + kTapFactsOffset);
  head.generation.store(3);
  EXPECT_TRUE(absl::IsUnavailable(reader_->ReadFacts().status())) << "being written";
  head.generation.store(4);
  head.used_bytes = 0xffffffff;
  EXPECT_FALSE(reader_->ReadFacts().ok());
  head.used_bytes = 5;
  EXPECT_FALSE(reader_->ReadFacts().ok()) << "checksum";
}

TEST_F(TapBufferReaderTest, OutlivesTheTap) {
  auto tap = std::make_unique<FakeTap>();
  tap->Seal(F_SEAL_SHRINK | F_SEAL_GROW);
  tap->WriteDocument("last words", capture_);
  auto reader = TapBufferReader::Open(tap->memfd());
  ASSERT_TRUE(reader.ok());
  reader_ = *std::move(reader);
  tap.reset();
  EXPECT_EQ(Next(), "last words");
}

TEST_F(TapBufferReaderTest, ReleasesMemoryAndStillReadsLaterRecords) {
  Open();
  tap_.WriteDocument("one", CaptureId());
  EXPECT_EQ(Next(), "one");
  reader_->Commit(reader_->position());
  reader_->ReleaseMemory();
  EXPECT_EQ(Next(), "nothing");
  tap_.WriteDocument("two", CaptureId());
  EXPECT_EQ(Next(), "two");
}

}  // namespace
}  // namespace neurontrace
