// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/artifact_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/deliver/volume.h"
#include "lib/base/sha256.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ArtifactReference Found(const std::string& agent, const std::string& root,
                        const std::string& content, const std::string& directory = "i-1_pid_1") {
  return {.agent_id = agent,
          .root = root.empty() ? "" : ArtifactRootOf(root),
          .place = MakeArtifactPlace(directory, "", "ntrace.pb").value(),
          .sha256 = content};
}

TEST(ArtifactPathsTest, AreThePlacesWhereTheyWereFound) {
  EXPECT_THAT(ArtifactPaths({Found("a", "/out", "1"), Found("a", "/out", "2", "i-1_pid_2")}),
              ElementsAre("i-1_pid_1/ntrace.pb", "i-1_pid_2/ntrace.pb"));
}

TEST(ArtifactPathsTest, SecondOfTwoDifferingFilesGetsSeparatePath) {
  const std::string place = "i-1_pid_1/ntrace.pb";
  const std::string of_b = "agent-" + Sha256HexOf("b").substr(0, 12) + "/";
  const auto root = [](const char* path) { return "root-" + ArtifactRootOf(path) + "/"; };
  const auto paths =
      ArtifactPaths({Found("a", "", "1"), Found("a", "/y", "2"), Found("a", "/z", "3"),
                     Found("b", "/y", "4"), Found("b", "/z", "5")});
  EXPECT_THAT(paths, ElementsAre(place, root("/y") + place, root("/z") + place, of_b + place,
                                 of_b + root("/z") + place));
  for (const std::string& path : paths) EXPECT_TRUE(IsVolumeName(path)) << path;
}

TEST(ArtifactPathsTest, ExistingFileHasNoNewPath) {
  EXPECT_THAT(ArtifactPaths({Found("a", "/x", "1"), Found("a", "/y", "1"), Found("b", "/x", "1"),
                             Found("b", "/y", "2"), Found("b", "/z", "2")}),
              ElementsAre("i-1_pid_1/ntrace.pb", "", "",
                          "agent-" + Sha256HexOf("b").substr(0, 12) + "/i-1_pid_1/ntrace.pb", ""));
}

TEST(ArtifactPathsTest, AreAWorkersWhereNoOtherOneHasItsInstanceAndProcess) {
  const WorkerIdentity twice{.instance_id = "i-1", .pid = 3};
  const std::vector<WorkerIdentity> workers = {
      {.instance_id = "i-1", .pid = 1}, {.instance_id = "i-2", .pid = 1}, twice, twice};
  const std::vector<ArtifactReference> artifacts = {
      Found("a", "/x", "1"), Found("a", "/y", "2"), Found("a", "/x", "3", "i-1_pid_1_container"),
      Found("a", "/x", "4", "i-1_pid_2"), Found("a", "/x", "5", "i-1_pid_3")};
  const std::vector<std::string> paths = {"first", "second", "third", "fourth", "fifth"};
  EXPECT_THAT(ArtifactPathsOfWorkers(workers, artifacts, paths),
              ElementsAre(ElementsAre("first", "second"), IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_THAT(ArtifactPathsOfWorkers(workers, artifacts, {"", "", "", "", ""}),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(WorkerDirectoryTest, IsTheVendorsWithTheContainerWhereThereIsOne) {
  EXPECT_THAT(WorkerDirectories({{.instance_id = "i-0f20", .pid = 1234},
                                 {.instance_id = "i-0f20",
                                  .pid = 1,
                                  .container_id = "0123456789abcdef0123456789abcdef"}}),
              ElementsAre("i-0f20_pid_1234", "i-0f20_pid_1_0123456789ab"));
  EXPECT_EQ(SessionDirectory(1776672348756756905), "1776672348756756905");
  EXPECT_EQ(SessionDirectory(5), "0000000000000000005");
}

TEST(WorkerDirectoryTest, NoTwoAreTheSame) {
  const WorkerIdentity worker{.instance_id = "i-1", .pid = 7, .start_time_ticks = 9};
  EXPECT_THAT(WorkerDirectories({worker, worker, worker}),
              ElementsAre("i-1_pid_7", "i-1_pid_7_9", "i-1_pid_7_9_2"));
}

TEST(WorkerDirectoryTest, AgentTextStaysPlainName) {
  for (const char* id : {"../../etc", "", "..", "a/b\n", "\xff\xfe"}) {
    const auto names = WorkerDirectories({{.instance_id = id, .pid = 1, .container_id = "/../x"}});
    EXPECT_TRUE(IsVolumeName(names[0])) << names[0];
    EXPECT_EQ(names[0].find('/'), std::string::npos);
  }
}

}  // namespace
}  // namespace neurontrace
