// SPDX-License-Identifier: Apache-2.0
// Goal: a walk passes over chunks that cannot be read, and ends whatever numbers chunks have.
// Method: rows by hand, and blob files in which some of them are overwritten.
#include "aggregator/store/chunk_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "aggregator/store/keys.h"
#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

constexpr char kWhole = 'w';
constexpr char kDamaged = 'd';

class ChunkWalkTest : public testing::Test {
 protected:
  void Put(uint32_t stream, uint64_t sequence, char filling) {
    rows_.emplace_back(keys::Chunk(capture_, stream, sequence), std::string(500, filling));
  }
  // Writes the rows, and hurts the damaged ones in their files.
  void Make() {
    Open();
    for (const auto& [key, value] : rows_) {
      ASSERT_TRUE(database_->Put(Family::kChunks, key, value, false).ok());
    }
    ASSERT_TRUE(database_->db().Flush({}, database_->family(Family::kChunks)).ok());
    database_.reset();
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      if (entry.path().extension() != ".blob") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::string bytes{std::istreambuf_iterator<char>(in), {}};
      const std::string whole(500, kDamaged);
      for (size_t at = 0; (at = bytes.find(whole, at)) != std::string::npos; at += whole.size()) {
        bytes[at + 250] = 'X';
      }
      std::ofstream(entry.path(), std::ios::binary | std::ios::trunc) << bytes;
    }
    Open();
  }
  absl::Status Walk(uint64_t sequence_end) {
    return WalkChunks(*database_, capture_, 1, sequence_end,
                      {.chunk =
                           [this](uint64_t sequence, std::string_view) {
                             ASSERT_LT(read_.size(), 1'000u) << "it never ends";
                             read_.push_back(sequence);
                           },
                       .damaged = [this](uint64_t sequence,
                                         const absl::Status&) { damaged_.push_back(sequence); }});
  }

  std::vector<uint64_t> read_;
  std::vector<uint64_t> damaged_;

 private:
  void Open() {
    auto database = Database::Open(directory_.path(), nullptr);
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
  }

  const CaptureId capture_ = TestCaptureId(1);
  TemporaryDirectory directory_;
  std::vector<std::pair<std::string, std::string>> rows_;
  std::unique_ptr<Database> database_;
};

TEST_F(ChunkWalkTest, SkipsUnreadableChunks) {
  Put(1, 3, kWhole);
  Put(1, 4, kDamaged);
  Put(1, 9, kDamaged);
  Put(1, 40'000, kWhole);
  Put(2, 5, kDamaged);
  Make();
  EXPECT_TRUE(Walk(50'000).ok());
  EXPECT_THAT(read_, testing::ElementsAre(3, 40'000));
  EXPECT_THAT(damaged_, testing::ElementsAre(4, 9));
}

TEST_F(ChunkWalkTest, GivesUpOnUnboundedSearch) {
  for (uint64_t i = 0; i < 40; ++i) Put(1, i * 65'000, kDamaged);
  Make();
  EXPECT_FALSE(Walk(UINT64_MAX).ok());
  EXPECT_GE(damaged_.size(), 8u);
  EXPECT_LE(damaged_.size(), 10u);
}

TEST_F(ChunkWalkTest, DoesNotWrapAfterLastNumber) {
  Put(1, 5, kDamaged);
  Put(1, UINT64_MAX, kWhole);
  Put(2, 0, kDamaged);  // where the walk goes next
  Make();
  EXPECT_TRUE(Walk(UINT64_MAX).ok());
  EXPECT_THAT(read_, testing::ElementsAre(UINT64_MAX));
  EXPECT_THAT(damaged_, testing::ElementsAre(5));
}

}  // namespace
}  // namespace neurontrace
