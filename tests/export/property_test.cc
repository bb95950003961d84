// SPDX-License-Identifier: Apache-2.0
// Goal: every format holds the same spans and instants, with the same times and attributes, as the
// capture. Method: hostile captures drawn from seeds, exported, read back by programs that share
// nothing with the writers, and compared event by event with what was written into the capture.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/export/format_readers.h"
#include "tests/export/hostile_capture.h"

namespace neurontrace {
namespace {

using Truth = std::map<uint64_t, SeenEvent>;

constexpr size_t kDifferencesShown = 5;

// By id, whatever the order.
void ExpectSame(const Truth& truth, const std::vector<SeenEvent>& seen, std::string_view format) {
  Truth found;
  size_t differences = 0;
  for (const SeenEvent& event : seen) {
    if (!found.emplace(event.id, event).second && ++differences <= kDifferencesShown) {
      ADD_FAILURE() << format << " has twice: " << ::testing::PrintToString(event);
    }
  }
  for (const auto& [id, event] : truth) {
    const auto at = found.find(id);
    if (at != found.end() && at->second == event) continue;
    if (++differences > kDifferencesShown) continue;
    ADD_FAILURE() << format << " lacks or changes\n  " << ::testing::PrintToString(event)
                  << "\n  it has\n  "
                  << (at == found.end() ? "nothing" : ::testing::PrintToString(at->second));
  }
  for (const auto& [id, event] : found) {
    if (truth.contains(id) || ++differences > kDifferencesShown) continue;
    ADD_FAILURE() << format << " made up " << ::testing::PrintToString(event);
  }
  EXPECT_EQ(differences, 0u) << format << ": so many differences of " << truth.size();
}

// Of a span that leaves a window the stop can lie in a chunk that is not read: then its attributes
// are not there.
SeenEvent WithoutStopAfter(uint64_t window_end_ns, SeenEvent event) {
  if (event.end_ns >= window_end_ns) {
    std::erase_if(event.attributes, [](const auto& attribute) {
      return attribute.first.starts_with(std::string(kAttributePrefix) + "stop");
    });
  }
  return event;
}

void ExpectAllFormatsHold(uint64_t seed, const HostileCapture::Shape& shape) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  FakeChunkSource source;
  const Truth truth = HostileCapture::Make(seed, shape, source);
  for (const FormatReader& format : FormatReaders()) {
    ExpectSame(truth, format.read(source, {}), format.name);
  }
}

TEST(FormatPropertyTest, EveryFormatHoldsWhatTheCaptureHolds) {
  for (uint64_t seed = 1; seed <= 8; ++seed) ExpectAllFormatsHold(seed, {});
}

TEST(FormatPropertyTest, AlsoWhereManyTimesAreEqual) {
  for (uint64_t seed = 100; seed <= 104; ++seed) {
    ExpectAllFormatsHold(seed, {.length_ns = 10'000, .grid_ns = 1'000});
  }
}

TEST(FormatPropertyTest, AlsoWithTenThousandTracks) {
  ExpectAllFormatsHold(200, {.streams = 20, .threads = 1'000, .events = 1'500});
}

TEST(FormatPropertyTest, AWindowHoldsWhatOverlapsItAndNothingElse) {
  for (uint64_t seed = 300; seed <= 304; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    FakeChunkSource source;
    const Truth truth = HostileCapture::Make(seed, {}, source);
    TimelineFilter filter;
    filter.window_start_ns = HostileCapture::kBase + 300'000;
    filter.window_end_ns = HostileCapture::kBase + 400'000;
    Truth inside;
    for (const auto& [id, event] : truth) {
      const bool is_point = event.start_ns == event.end_ns;
      if (event.start_ns < filter.window_end_ns &&
          (event.end_ns > filter.window_start_ns ||
           (is_point && event.end_ns == filter.window_start_ns))) {
        inside.emplace(id, WithoutStopAfter(filter.window_end_ns, event));
      }
    }
    ASSERT_GT(inside.size(), 100u);
    ASSERT_LT(inside.size(), truth.size() / 2);
    for (const FormatReader& format : FormatReaders()) {
      if (!format.has_spans) continue;
      std::vector<SeenEvent> seen = format.read(source, filter);
      for (SeenEvent& event : seen) event = WithoutStopAfter(filter.window_end_ns, event);
      ExpectSame(inside, seen, format.name);
    }
  }
}

TEST(FormatPropertyTest, RangesOfRanksAreTheSameInEveryFormat) {
  FakeChunkSource source;
  const Truth truth = HostileCapture::Make(400, {.streams = 6, .events = 100}, source);
  TimelineFilter filter;
  filter.worker_gids = {{1, 2}, {5, 9}};
  Truth selected;
  for (const auto& [id, event] : truth) {
    if (event.nc_idx == 1 || event.nc_idx == 2 || event.nc_idx == 5) selected.emplace(id, event);
  }
  for (const FormatReader& format : FormatReaders()) {
    ExpectSame(selected, format.read(source, filter), format.name);
  }
}

}  // namespace
}  // namespace neurontrace
