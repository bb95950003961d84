// SPDX-License-Identifier: Apache-2.0
#include "agent/spool/spool_disk.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "agent/spool/spool_format.h"
#include "lib/base/crc32c.h"
#include "lib/base/fake_file_system.h"

namespace neurontrace {
namespace {

constexpr char kDirectory[] = "/spool/01M80BDF0EMHPSPT11J5N3R5MG";

class SpoolDiskTest : public ::testing::Test {
 protected:
  // Stores one chunk in a segment of its own, and returns where it is.
  SpoolPlace Store(uint64_t segment, const std::string& header, const std::string& columns) {
    auto chunk = std::make_shared<v1::ChunkEnvelope>();
    chunk->set_header(header);
    chunk->set_columns(columns);
    const std::string bytes = header + columns;
    chunk->set_crc32c(Crc32c(bytes.data(), bytes.size()));
    SpoolJob::Append append{.directory = kDirectory,
                            .segment = {.segment = segment, .salt = 100 + segment},
                            .create = true,
                            .chunks = {chunk}};
    append.offset = static_cast<uint32_t>(EncodeSegmentHeader(append.segment).size());
    SpoolJob job;
    job.appends.push_back(append);
    EXPECT_TRUE(spool_.Run(job).appended.ok());
    return {.segment = segment,
            .offset = append.offset,
            .header_bytes = static_cast<uint32_t>(header.size()),
            .columns_bytes = static_cast<uint32_t>(columns.size())};
  }

  FakeFileSystem disk_;
  SpoolDisk spool_{disk_, "/spool"};
};

TEST_F(SpoolDiskTest, SegmentThatIsDamagedDoesNotAffectTheOneBefore) {
  const SpoolPlace good = Store(1, "header", "columns");
  const SpoolPlace bad = Store(2, "header", "columns");
  ASSERT_TRUE(disk_.FlipBit(std::string(kDirectory) + "/" + SegmentName(2), 0));
  const std::vector<LoadedChunk> loaded = spool_.Load(kDirectory, {good, bad, good});
  ASSERT_EQ(loaded.size(), 3u);
  EXPECT_TRUE(loaded[0].status.ok()) << loaded[0].status;
  EXPECT_TRUE(absl::IsDataLoss(loaded[1].status)) << loaded[1].status;
  EXPECT_TRUE(loaded[2].status.ok()) << loaded[2].status;
}

}  // namespace
}  // namespace neurontrace
