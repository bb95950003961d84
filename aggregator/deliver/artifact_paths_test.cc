// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/artifact_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/deliver/volume.h"
#include "base/sha256.h"

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

TEST(ArtifactPathsTest, OfTwoThatDifferAtOnePlaceTheSecondHasAPlaceOfItsOwn) {
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

TEST(ArtifactPathsTest, WhatIsThereAlreadyHasNone) {
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

}  // namespace
}  // namespace neurontrace
