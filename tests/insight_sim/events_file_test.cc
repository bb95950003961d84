// SPDX-License-Identifier: Apache-2.0
#include "tests/insight_sim/events_file.h"

#include <gtest/gtest.h>

#include <sstream>

namespace neurontrace {
namespace {

absl::StatusOr<EventsFile> Read(const std::string& text) {
  std::istringstream in(text);
  return ReadEventsFile(in);
}

TEST(EventsFileTest, ReadsCoresModelsAndEvents) {
  const auto file = Read(
      "# comment\ncore job i-1 7 3 0\nmodel 9 forward\nevent 0 run 10 20 1 0 9 0\n"
      "event 0 collective 12 15 1 2 0 4 open\n");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->cores.at(0).worker_gid, 3);
  EXPECT_EQ(file->models.at(0).second, "forward");
  ASSERT_EQ(file->events.size(), 2u);
  EXPECT_EQ(file->events[0].kind, InsightClass::kRun);
  EXPECT_EQ(file->events[1].group, 4u);
  EXPECT_TRUE(file->events[1].is_open);
}

TEST(EventsFileTest, NamesTheLineThatIsWrong) {
  for (const char* text : {"core job\n", "event 0 run 1 2 0 0 0 0\n", "what\n",
                           "core j i 0 0 0\nevent 0 walk 1 2 0 0 0 0\n",
                           "core j i 0 0 0\nevent 0 run 2 1 0 0 0 0\n"}) {
    const auto file = Read(text);
    ASSERT_FALSE(file.ok()) << text;
    EXPECT_NE(file.status().message().find("line "), std::string::npos);
  }
}

}  // namespace
}  // namespace neurontrace
