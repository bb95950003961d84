// SPDX-License-Identifier: Apache-2.0
// Which names are places of artifacts, and how they are read; names that lead elsewhere are none.
#include "lib/trace/artifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "lib/trace/artifact_limits.h"

namespace neurontrace {
namespace {

TEST(ArtifactPlaceTest, ReadsTheLayoutsOfBothEras) {
  const auto old = MakeArtifactPlace("i-0f207fb2a99bd2d08_pid_1113579", "", "ntrace.pb");
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(old->kind, ArtifactKind::kSystemTrace);
  EXPECT_EQ(old->instance_id, "i-0f207fb2a99bd2d08");
  EXPECT_EQ(old->pid, 1113579u);
  EXPECT_EQ(old->container, "");
  EXPECT_EQ(old->path(), "i-0f207fb2a99bd2d08_pid_1113579/ntrace.pb");

  const auto current =
      MakeArtifactPlace("i-1_pid_1_0a1b_c", "1776672348756756905", "profile_nc_0_session_1.ntff");
  ASSERT_TRUE(current.ok()) << current.status();
  EXPECT_EQ(current->kind, ArtifactKind::kNtff);
  EXPECT_EQ(current->container, "0a1b_c");
  EXPECT_EQ(current->path(), "i-1_pid_1_0a1b_c/1776672348756756905/profile_nc_0_session_1.ntff");

  const auto shared = MakeArtifactPlace("neffs", "", "graph_abc.neff");
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_EQ(shared->kind, ArtifactKind::kNeff);
  EXPECT_EQ(shared->pid, 0u);
}

TEST(ArtifactPlaceTest, KnowsEveryKindByItsName) {
  const std::pair<const char*, ArtifactKind> kNames[] = {
      {"neff_abc_vnc_0.neff", ArtifactKind::kNeff},
      {"abc_instid_0_vnc_1.ntff", ArtifactKind::kNtff},
      {"ntrace.pb", ArtifactKind::kSystemTrace},
      {"trace_info.pb", ArtifactKind::kTraceInfo},
      {"cpu_util.pb", ArtifactKind::kCpuUtil},
      {"host_mem.pb", ArtifactKind::kHostMemory}};
  for (const auto& [name, kind] : kNames) {
    const auto place = MakeArtifactPlace("i-1_pid_2", "", name);
    ASSERT_TRUE(place.ok()) << name;
    EXPECT_EQ(place->kind, kind) << name;
  }
}

TEST(ArtifactPlaceTest, StacksHaveATimeAndTheirOwnDirectories) {
  const auto raw = MakeArtifactPlace("i-1_pid_2", "1750000000000000000", "stacks.json");
  ASSERT_TRUE(raw.ok()) << raw.status();
  EXPECT_EQ(raw->kind, ArtifactKind::kStacks);
  EXPECT_EQ(raw->pid, 2u);
  const auto merged = MakeArtifactPlace("stacks", "1750000000000000000", "merged.json");
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->kind, ArtifactKind::kMergedStacks);
  EXPECT_EQ(merged->pid, 0u);
  EXPECT_FALSE(IsInspectDirectory("stacks"));
  for (const auto& [directory, session, name] :
       {std::tuple("i-1_pid_2", "", "stacks.json"),
        std::tuple("stacks", "1750000000000000000", "stacks.json"),
        std::tuple("stacks", "", "merged.json"), std::tuple("stacks", "", "a.neff"),
        std::tuple("neffs", "", "merged.json"),
        std::tuple("i-1_pid_2", "1750000000000000000", "merged.json")}) {
    EXPECT_FALSE(MakeArtifactPlace(directory, session, name).ok()) << directory << " " << name;
  }
}

TEST(ArtifactPlaceTest, RejectsInvalidPaths) {
  const struct {
    std::string directory;
    std::string session;
    std::string name;
  } kCases[] = {
      {"..", "", "a.neff"},
      {"i-1_pid_2", "..", "a.neff"},
      {"i-1_pid_2", "", "../a.neff"},
      {"i-1_pid_2", "", ".a.neff"},
      {"i-1_pid_2", "", ".neff"},
      {"i-1_pid_2", "", "a/b.neff"},
      {"i-1_pid_2", "", std::string("a\0.neff", 7)},
      {"i-1_pid_2", "", "a\n.neff"},
      {"i-1_pid_2", "", "trace.json"},
      {"i-1_pid_2", "", ""},
      {"i-1_pid_2/x", "", "a.neff"},
      {"i-1_pid_0", "", "a.neff"},
      {"i-1_pid_02", "", "a.neff"},
      {"i-1_pid_4294967296", "", "a.neff"},
      {"i-1_pid_2_", "", "a.neff"},
      {"i-1_pid_", "", "a.neff"},
      {"_pid_2", "", "a.neff"},
      {"i-1", "", "a.neff"},
      {"", "", "a.neff"},
      {"neffs", "", "a.ntff"},
      {"neffs", "1776672348756756905", "a.neff"},
      {"i-1_pid_2", "177667234x756756905", "a.neff"},
      {"i-1_pid_2", "1", "a.neff"},
      {"i-1_pid_2", "", std::string(limits::kArtifactNameBytesMax, 'a') + ".neff"},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(MakeArtifactPlace(test.directory, test.session, test.name).status().code(),
              absl::StatusCode::kInvalidArgument)
        << test.directory << " " << test.session << " " << test.name;
  }
}

TEST(ArtifactPlaceTest, RejectedTextHasNoLineBreaks) {
  for (const auto& status : {MakeArtifactPlace("x\ny", "", "a.neff").status(),
                             MakeArtifactPlace("i-1_pid_2", "x\ny", "a.neff").status(),
                             MakeArtifactPlace("i-1_pid_2", "", "x\ny").status()}) {
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("'x?y'"));
  }
}

TEST(ArtifactRootTest, IsTheBeginningOfAHashAndNothingElse) {
  EXPECT_EQ(ArtifactRootOf("abc"), "ba7816bf8f01");
  EXPECT_TRUE(IsArtifactRoot(ArtifactRootOf("/var/inspect")));
  for (const char* text : {"", "ba7816bf8f0", "ba7816bf8f012", "BA7816BF8F01", "../../../etc"}) {
    EXPECT_FALSE(IsArtifactRoot(text)) << text;
  }
}

}  // namespace
}  // namespace neurontrace
