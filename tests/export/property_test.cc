// SPDX-License-Identifier: Apache-2.0
// Goal: every format holds the same spans and instants, with the same times and attributes, as the
// capture; the same arrows and samples where it has them; and of a part of the capture what that
// part holds. Method: hostile captures drawn from seeds, exported, read back by programs that share
// nothing with the writers, and compared event by event with what was written into the capture.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "aggregator/export/parquet/parquet_format.h"
#include "lib/base/sanitizers.h"
#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/export_fixture.h"
#include "tests/export/format_readers.h"
#include "tests/export/hostile_capture.h"
#include "tests/export/random_part.h"

namespace neurontrace {
namespace {

using Events = std::map<uint64_t, SeenEvent>;

constexpr size_t kDifferencesShown = 5;

// What is found in a format against what should be there.
class Comparison {
 public:
  Comparison(std::string_view format, const SeenCapture& found)
      : format_(format), stops_not_shown_(found.stops_not_shown) {}

  // By id, whatever the order. `can_lack`: true of an event that need not be there.
  template <typename CanLack>
  void Compare(const Events& truth, const std::vector<SeenEvent>& seen, const CanLack& can_lack) {
    Events found;
    for (const SeenEvent& event : seen) {
      if (!found.emplace(event.id, event).second && IsShown()) {
        ADD_FAILURE() << format_ << " has twice: " << ::testing::PrintToString(event);
      }
    }
    for (const auto& [id, event] : truth) {
      const auto at = found.find(id);
      if (at == found.end() ? can_lack(event) : IsSame(event, at->second)) continue;
      if (!IsShown()) continue;
      ADD_FAILURE() << format_ << " lacks or changes\n  " << ::testing::PrintToString(event)
                    << "\n  it has\n  "
                    << (at == found.end() ? "nothing" : ::testing::PrintToString(at->second));
    }
    for (const auto& [id, event] : found) {
      if (truth.contains(id) || !IsShown()) continue;
      ADD_FAILURE() << format_ << " made up " << ::testing::PrintToString(event);
    }
    EXPECT_EQ(differences_, 0u) << format_ << ": so many differences of " << truth.size();
  }

 private:
  bool IsShown() { return ++differences_ <= kDifferencesShown; }

  // docs/formats/pftrace.md, "Parts": "the attributes of a stop that comes in a later part are not
  // shown, and a warning of the part counts them".
  bool IsSame(const SeenEvent& truth, const SeenEvent& found) {
    if (truth == found) return true;
    SeenEvent whole = found;
    std::vector<std::pair<std::string, std::string>> missing;
    std::set_difference(truth.attributes.begin(), truth.attributes.end(), found.attributes.begin(),
                        found.attributes.end(), std::back_inserter(missing));
    for (auto& attribute : missing) {
      if (!attribute.first.starts_with(kStopAttributePrefix)) return false;
      whole.attributes.insert(std::move(attribute));
    }
    if (whole != truth || stops_not_shown_ == 0) return false;
    --stops_not_shown_;
    return true;
  }

  const std::string_view format_;
  uint64_t stops_not_shown_;
  size_t differences_ = 0;
};

// docs/formats/derived.md, "Windows": "Where a span leaves the window and its stop lies in a chunk
// that begins after it, the span has its end, and the attributes of its stop are not read."
SeenEvent WithoutStopAfter(uint64_t window_end_ns, SeenEvent event) {
  if (event.end_ns >= window_end_ns) {
    std::erase_if(event.attributes, [](const auto& attribute) {
      return attribute.first.starts_with(kStopAttributePrefix);
    });
  }
  return event;
}

void WithoutOpenEnd(SeenEvent& event) {
  if (event.is_open) event.end_ns = event.start_ns;
}

void ExpectAllFormatsHold(uint64_t seed, const HostileCapture::Shape& shape) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  FakeChunkSource source;
  const CaptureTruth truth = HostileCapture::Make(seed, shape, source);
  for (const FormatReader& format : FormatReaders()) {
    const SeenCapture found = format.read(source, {});
    Events events = truth.events;
    for (auto& [id, event] : events) format.reduce(event);
    Comparison(format.name, found).Compare(events, found.events, [](const SeenEvent&) {
      return false;
    });
    if (format.has_arrows) {
      EXPECT_EQ(found.arrows, truth.arrows) << format.name;
    }
    EXPECT_EQ(found.samples, truth.samples) << format.name;
  }
}

void ExpectAllFormatsHoldAPart(uint64_t seed, const HostileCapture::Shape& shape) {
  FakeChunkSource source;
  const CaptureTruth truth = HostileCapture::Make(seed, shape, source);
  const RandomPart part = RandomPart::Make(seed, shape);
  SCOPED_TRACE(fmt::format("seed {}: {}", seed, part.words));
  Events inside;
  for (const auto& [id, event] : truth.events) {
    if (!part.Selects(event)) continue;
    inside.emplace(id, WithoutStopAfter(part.filter.window_end_ns, event));
  }
  std::multiset<SeenSample> samples;
  for (const SeenSample& sample : truth.samples) {
    if (part.Selects(sample)) samples.insert(sample);
  }
  for (const FormatReader& format : FormatReaders()) {
    if (part.has_window && !format.has_spans) continue;
    SeenCapture found = format.read(source, part.filter);
    for (SeenEvent& event : found.events) {
      event = WithoutStopAfter(part.filter.window_end_ns, event);
    }
    Events events = inside;
    for (auto& [id, event] : events) format.reduce(event);
    if (!format.has_spans) {
      // Only the stream's last event says when an open span ends, and that need not be selected.
      for (auto& [id, event] : events) WithoutOpenEnd(event);
      for (SeenEvent& event : found.events) WithoutOpenEnd(event);
    }
    Comparison(format.name, found).Compare(events, found.events, [&](const SeenEvent& event) {
      return part.CanLack(event);
    });
    EXPECT_EQ(found.samples, samples) << format.name;
  }
}

std::map<std::string, std::string> FilesOf(const ExportFormat& format, const TimelineFilter& filter,
                                           FakeChunkSource& source) {
  StringFiles files;
  ExportRequest request;
  request.filter = filter;
  const auto summary = ExportCapture(source, format, request, files, {});
  EXPECT_TRUE(summary.ok()) << summary.status();
  return std::move(files.files);
}

TEST(FormatPropertyTest, TypeIndexDoesNotChangeOutputBytes) {
  uint64_t chunks_spared = 0;
  for (uint64_t seed = 600; seed < 612; ++seed) {
    const HostileCapture::Shape shape = {.events = 200};
    FakeChunkSource source;
    HostileCapture::Make(seed, shape, source);
    RandomPart part = RandomPart::Make(seed, shape);
    if (seed % 2 == 0) part.filter.event_types = *EventFilter::Parse({"cc_running", "kernel"});
    FakeChunkSource without = source;
    without.ForgetEventTypes();
    for (const ExportFormat& format : ExportFormats()) {
      if (format.name == "parquet" && !HasParquet()) continue;
      EXPECT_TRUE(FilesOf(format, part.filter, source) == FilesOf(format, part.filter, without))
          << format.name << ", seed " << seed << ": " << part.words;
    }
    EXPECT_LE(source.chunks_read(), without.chunks_read());
    chunks_spared += without.chunks_read() - source.chunks_read();
  }
  EXPECT_GT(chunks_spared, 0u);
}

TEST(FormatPropertyTest, EveryFormatContainsWholeCapture) {
  for (uint64_t seed = 1; seed <= 2; ++seed) ExpectAllFormatsHold(seed, {});
}

TEST(FormatPropertyTest, AlsoWhereManyTimesAreEqual) {
  for (uint64_t seed = 100; seed <= 100; ++seed) {
    ExpectAllFormatsHold(seed, {.length_ns = 10'000, .grid_ns = 500});
  }
}

TEST(FormatPropertyTest, AlsoWithTenThousandTracks) {
  const HostileCapture::Shape shape{.streams = 20,
                                    .threads = kUnderSanitizer ? 100u : 1'000u,
                                    .events = kUnderSanitizer ? 70u : 700u};
  FakeChunkSource source;
  HostileCapture::Make(200, shape, source);
  const auto files = ExportFiles("perfetto", source, {});
  EXPECT_GE(pftrace_check::Check(files.at("system_profile.pftrace")).tracks.size(),
            kUnderSanitizer ? 100u : 10'000u);
  ExpectAllFormatsHold(200, shape);
}

TEST(FormatPropertyTest, HostileCapturesReachTheGreatestNumbers) {
  FakeChunkSource source;
  const CaptureTruth truth = HostileCapture::Make(1, {}, source);
  const std::string greatest = fmt::format("{}", UINT64_MAX);
  ASSERT_TRUE(truth.events.contains(UINT64_MAX));
  const SeenEvent& last = truth.events.at(UINT64_MAX);
  EXPECT_FALSE(last.is_instant || last.is_open || last.is_start_lost)
      << "its ends have a tracking id";
  std::set<std::string> threads;
  std::set<std::string> executions;
  for (const auto& [id, event] : truth.events) {
    if (!event.nc_idx.empty() && event.thread_id == greatest) threads.insert(event.name);
    for (const std::string_view name : kExecutionNames) {
      if (event.attributes.contains({std::string(name), greatest})) {
        executions.insert(fmt::format("{} of {}", name, event.name));
      }
    }
  }
  EXPECT_FALSE(threads.empty());
  for (const char* type : {"nc_exec_running", "cc_running"}) {
    for (const std::string_view name : kExecutionNames) {
      EXPECT_TRUE(executions.contains(fmt::format("{} of {}", name, type))) << name << " " << type;
    }
  }
}

// A double of microseconds and an integer of picoseconds still tell its nanoseconds apart.
TEST(FormatPropertyTest, AlsoOverNinetyDays) {
  ExpectAllFormatsHold(201, {.events = 200, .length_ns = 86'400'000'000'000 * 90});
}

TEST(FormatPropertyTest, PartContainsExactlySelection) {
  for (uint64_t seed = 300; seed < (kUnderSanitizer ? 303 : 312); ++seed) {
    ExpectAllFormatsHoldAPart(seed, {.events = 200});
  }
}

TEST(FormatPropertyTest, AlsoWhereTimesAreEqualToTheEdgesOfTheWindow) {
  for (uint64_t seed = 400; seed < 404; ++seed) {
    ExpectAllFormatsHoldAPart(seed, {.events = 200, .length_ns = 10'000, .grid_ns = 500});
  }
}

TEST(FormatPropertyTest, AlsoWhereSpansReachIntoTheWindowFromLongBefore) {
  for (uint64_t seed = 500; seed < 504; ++seed) {
    ExpectAllFormatsHoldAPart(seed, {.events = 200, .length_ns = 40'000'000'000});
  }
}

}  // namespace
}  // namespace neurontrace
