// SPDX-License-Identifier: Apache-2.0
// What framework files say about their ranks is compared with one another.
#include "aggregator/certificate/file_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/certificate/certificate_world_test_support.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct File {
  std::string name;
  int64_t rank = 0;
  int64_t world_size = 2;
  uint64_t first_ns = 100;
  uint64_t last_ns = 500;
};

class FileRanksTest : public ::testing::Test {
 protected:
  FileRanksTest() {
    world_.record.workers.push_back({.worker = {.instance_id = "i-a", .boot_id = "b"},
                                     .state = CaptureWorkerState::kComplete,
                                     .framework = true});
  }
  void Add(const File& file) {
    StreamRecord& stream = world_.Stream(0, 5);
    stream.identity.kind = StreamKind::kFramework;
    stream.identity.nc_idx = limits::kNoNcIdx;
    stream.identity.name = file.name;
    stream.first_timestamp_ns = file.first_ns;
    stream.last_timestamp_ns = file.last_ns;
    stream.evidence = {{RankSource::kFrameworkFile, file.rank, file.world_size, ""}};
    CaptureWorkerStatus& status = world_.record.workers.front();
    status.streams = world_.streams.size();
    status.events_read = status.events_stored = 5 * world_.streams.size();
  }

  CertificateWorld world_;
};

TEST_F(FileRanksTest, FilesOfDifferentRanksAgree) {
  Add({.name = "a", .rank = 0});
  Add({.name = "b", .rank = 1});
  const Certificate certificate = world_.Make();
  EXPECT_THAT(certificate.findings, IsEmpty());
  EXPECT_TRUE(certificate.complete);
}

TEST_F(FileRanksTest, ARankThatIsClaimedTwiceIsAFindingWithAllNames) {
  Add({.name = "engine0-rank0", .rank = 0});
  Add({.name = "engine0-rank1", .rank = 1, .first_ns = 600, .last_ns = 700});
  Add({.name = "engine1-rank0", .rank = 0, .first_ns = 500, .last_ns = 600});
  Add({.name = "engine1-rank1", .rank = 1, .first_ns = 650, .last_ns = 660});
  const Certificate certificate = world_.Make();
  EXPECT_THAT(certificate.findings,
              ElementsAre(AllOf(HasSubstr("2 ranks are contradicted"),
                                HasSubstr("rank 0 is claimed by 2 files at the same time: i-a "
                                          "engine0-rank0, i-a engine1-rank0"),
                                HasSubstr("rank 1 is claimed by 2 files"))));
  EXPECT_FALSE(certificate.complete);
}

TEST_F(FileRanksTest, ProfilesOfOneRankOneAfterTheOtherAgree) {
  Add({.name = "step10", .first_ns = 100, .last_ns = 200});
  Add({.name = "step20", .first_ns = 300, .last_ns = 400});
  EXPECT_THAT(world_.Make().findings, IsEmpty());
}

TEST_F(FileRanksTest, WorldSizesThatDifferAreAFinding) {
  Add({.name = "a", .rank = 0, .world_size = 2});
  Add({.name = "b", .rank = 1, .world_size = 4});
  Add({.name = "c", .rank = 2, .world_size = 4});
  Add({.name = "d", .rank = 3, .world_size = 0});
  EXPECT_THAT(world_.Make().findings,
              ElementsAre(HasSubstr("files name different world sizes: i-a a (2), i-a b (4)")));
}

TEST_F(FileRanksTest, FarMoreFilesAreCounted) {
  for (int i = 0; i < 300; ++i) Add({.name = std::to_string(i)});
  EXPECT_THAT(world_.Make().findings,
              Contains(AllOf(HasSubstr("claimed by 300 files"), HasSubstr("and 296 more"))));
}

}  // namespace
}  // namespace neurontrace
