// SPDX-License-Identifier: Apache-2.0
#include "cli/record_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

class RecordProgramsTest : public testing::Test {
 protected:
  absl::StatusOr<RecordPrograms> Find(const ProgramPlaces& places) {
    return FindRecordPrograms(places,
                              [this](const std::string& path) { return there_.contains(path); });
  }
  std::set<std::string> there_ = {"/opt/bin/neurontrace-agent", "/opt/bin/neurontrace-aggregator",
                                  "/opt/bin/../lib/libneurontrace_tap.so"};
};

TEST_F(RecordProgramsTest, FindsThemBesideItself) {
  const auto found = Find({.own_directory = "/opt/bin"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->agent, "/opt/bin/neurontrace-agent");
  EXPECT_EQ(found->aggregator, "/opt/bin/neurontrace-aggregator");
  EXPECT_EQ(found->tap, "/opt/bin/../lib/libneurontrace_tap.so");
}

TEST_F(RecordProgramsTest, GoesWhereItIsSent) {
  there_.insert("/tmp/tap.so");
  const auto found =
      Find({.own_directory = "/usr/bin", .programs = "/opt/bin", .tap = "/tmp/tap.so"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->agent, "/opt/bin/neurontrace-agent");
  EXPECT_EQ(found->tap, "/tmp/tap.so");
}

TEST_F(RecordProgramsTest, FindsTheAnnotationLibraryBesideTheTap) {
  const auto is_there = [this](const std::string& path) { return there_.contains(path); };
  EXPECT_EQ(FindAnnotationLibrary("/opt/lib/libneurontrace_tap.so", is_there), "");
  there_ = {"/opt/lib/libneurontrace_annotate.so", "libneurontrace_annotate.so"};
  EXPECT_EQ(FindAnnotationLibrary("/opt/lib/libneurontrace_tap.so", is_there),
            "/opt/lib/libneurontrace_annotate.so");
  EXPECT_EQ(FindAnnotationLibrary("tap.so", is_there), "libneurontrace_annotate.so");
}

TEST_F(RecordProgramsTest, ReportsMissingProgramAndOption) {
  there_.erase("/opt/bin/neurontrace-aggregator");
  EXPECT_THAT(std::string(Find({.own_directory = "/opt/bin"}).status().message()),
              HasSubstr("no /opt/bin/neurontrace-aggregator; set the directory"));
  there_ = {"/opt/bin/neurontrace-agent", "/opt/bin/neurontrace-aggregator"};
  EXPECT_THAT(std::string(Find({.own_directory = "/opt/bin"}).status().message()),
              HasSubstr("libneurontrace_tap.so beside /opt/bin"));
  EXPECT_THAT(std::string(Find({.own_directory = "/opt/bin", .tap = "/x.so"}).status().message()),
              HasSubstr("no /x.so; set the tap library with --tap FILE or NEURONTRACE_TAP"));
}

}  // namespace
}  // namespace neurontrace::cli
