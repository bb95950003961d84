// SPDX-License-Identifier: Apache-2.0
// Goal: no two attributes of an event have one name, and names cost no more than there are of them.
// Method: events whose names were chosen to be in the way of each other.
#include "aggregator/export/rows/event_attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

class EventAttributesTest : public testing::Test {
 protected:
  EventAttributesTest() {
    header_.streams = streams_;
    attributes_.Begin(header_);
  }
  static SharedShape ShapeOf(const std::vector<std::string>& names) {
    SharedShape shape;
    for (const std::string& name : names) {
      shape.shape.keys.push_back({.name = name, .type = ValueType::kUint});
    }
    return shape;
  }
  // What a span's start and stop with these names show.
  std::vector<std::string> Names(const std::vector<std::string>& start,
                                 const std::vector<std::string>& stop) {
    const SharedShape start_shape = ShapeOf(start);
    const SharedShape stop_shape = ShapeOf(stop);
    const std::vector<uint64_t> values(start.size() + stop.size());
    TimelineRecord record;
    record.values = values.data();
    record.shape = &start_shape;
    record.stop_shape = &stop_shape;
    std::vector<std::string> names;
    for (const EventAttribute& attribute : attributes_.Of(record)) {
      names.emplace_back(attribute.name);
    }
    return names;
  }

  const std::vector<TimelineStream> streams_{1};
  TimelineHeader header_;
  EventAttributes attributes_;
};

std::string Stop(size_t times, const std::string& name) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += "stop_";
  return text + name;
}

TEST_F(EventAttributesTest, PrefixesReservedNames) {
  EXPECT_THAT(Names({"a", "b", "stop_b"}, {"a", "b", "c"}),
              testing::ElementsAre("a", "b", "stop_b", "stop_a", "stop_stop_b", "c"));
}

TEST_F(EventAttributesTest, NumbersRepeatedlyPrefixedNames) {
  const std::vector<std::string> start = {"a",           Stop(1, "a"), Stop(2, "a"),
                                          Stop(3, "a"),  Stop(4, "a"), Stop(4, "a") + "#2",
                                          Stop(4, "a#3")};
  auto expected = start;
  expected.push_back(Stop(4, "a#4"));
  EXPECT_EQ(Names(start, {"a"}), expected);
}

// Names of 64 KiB: with as many prefixes as it takes this moved and compared gigabytes an event.
TEST_F(EventAttributesTest, NamesInEachOthersWayStayDifferentAndShort) {
  const std::string name(60'000, 'x');
  std::vector<std::string> start;
  std::vector<std::string> stop;
  for (size_t i = 0; i < limits::kAttributesPerEventMax; ++i) {
    start.push_back(Stop(i, name));
    stop.push_back(name);
  }
  for (int event = 0; event < 20; ++event) {
    const auto names = Names(start, stop);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    for (size_t i = start.size(); i < names.size(); ++i) {
      ASSERT_LE(names[i].size(), name.size() + EventAttributes::kPrefixesMax * 5 + 4);
    }
  }
}

}  // namespace
}  // namespace neurontrace
