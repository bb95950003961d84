// SPDX-License-Identifier: Apache-2.0
// Goal: each format draws exactly the arrows of a framework's file, by the span that one starts in
// and the span that it ends in. Method: files drawn from seeds, with overlapping spans, equal
// times, spans without length, several ends of one start, ends without a start and ends before
// theirs; exported, read back as viewers do, and compared with what is found by looking at all
// spans.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "lib/trace/limits.h"
#include "tests/export/format_readers.h"

namespace neurontrace {
namespace {

constexpr uint64_t kBegin = 1'790'000'000'000'000'000u;
constexpr uint64_t kPid = 4'100;

struct DrawnSpan {
  uint64_t id = 0;
  uint64_t thread = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t incoming = 0;
};
struct DrawnPoint {
  Phase phase = Phase::kFlowStart;
  uint64_t flow = 0;
  uint64_t thread = 0;
  uint64_t at = 0;
};

// A framework's file, and its arrows.
class ArrowFile {
 public:
  struct Shape {
    uint64_t spans = 200;
    uint64_t points = 300;
    uint64_t length = 20'000;
    uint64_t longest = 2'000;
    uint64_t grid = 10;  // times are its multiples
    bool many_equal_times = false;
    bool many_batches = false;
  };
  ArrowFile(uint64_t seed, const Shape& shape) : random_(seed), shape_(shape) {
    for (uint64_t i = 0; i < shape.spans; ++i) AddSpan();
    for (uint64_t i = 0; i < shape.points; ++i) AddPoint();
    Join();
  }

  std::multiset<SeenArrow> arrows;  // from start to end
  // As Perfetto draws them: from the span that began first, whichever of two that begin together.
  std::multiset<SeenArrow> InOrderOfTime(const std::multiset<SeenArrow>& drawn) const {
    std::map<uint64_t, uint64_t> start_of;
    for (const DrawnSpan& span : spans_) start_of[span.id] = span.start;
    std::multiset<SeenArrow> ordered;
    for (auto [from, to] : drawn) {
      if (std::pair(start_of[to], to) < std::pair(start_of[from], from)) {
        if (start_of[to] == start_of[from] || &drawn == &arrows) std::swap(from, to);
      }
      ordered.emplace(from, to);
    }
    return ordered;
  }

  void AddTo(FakeChunkSource& source) {
    EventChunkBuilder builder;
    EventScript script(builder);
    const EventScript::Attribute pid{"pid", kPid, KeyScope::kTop};
    for (const DrawnSpan& span : spans_) {
      script.Complete("cpu_op", kBegin + span.start, 0, span.thread,
                      {{"name", fmt::format("span {}", span.id), KeyScope::kTop},
                       pid,
                       {"dur_ns", span.end - span.start, KeyScope::kTop},
                       {"p.id", span.id}});
    }
    for (const DrawnPoint& point : points_) {
      script.Add({"ac2g",
                  point.phase,
                  kBegin + point.at,
                  0,
                  point.thread,
                  {{"flow_id", point.flow, KeyScope::kTop}, pid}});
    }
    const uint32_t stream = source.AddStream({.agent_id = "agent",
                                              .worker = {"i-0", "boot", 0, 0, ""},
                                              .kind = StreamKind::kFramework,
                                              .nc_idx = limits::kNoNcIdx,
                                              .name = "worker0.pt.trace.json"});
    source.AddChunk(stream, builder);
  }

 private:
  uint64_t Below(uint64_t end) { return random_() % end; }
  uint64_t Time() { return Below(shape_.length / shape_.grid) * shape_.grid; }

  // No two of one thread have the same start and length, which nothing could tell apart.
  void AddSpan() {
    DrawnSpan span{.id = spans_.size() + 1, .thread = 1 + Below(4), .start = Time()};
    span.end = span.start + (Below(8) == 0 ? 0 : 1 + Below(shape_.longest));
    if (taken_.emplace(span.thread, span.start, span.end).second) spans_.push_back(span);
  }

  // Most stand where a span begins, as profilers have it.
  void AddPoint() {
    DrawnPoint point{.flow = 1 + Below(shape_.points / 3)};
    const uint64_t kind = Below(8);
    point.phase = kind < 3 ? Phase::kFlowStart : kind < 4 ? Phase::kFlowStep : Phase::kFlowEnd;
    const DrawnSpan& span = spans_[Below(spans_.size())];
    point.thread = span.thread;
    point.at = Below(4) != 0 ? span.start : span.start + Below(span.end - span.start + 1);
    if (SpanOf(point) == nullptr) return;
    // At one time a file does not say which of two comes first.
    if (times_.emplace(point.flow, point.at).second) points_.push_back(point);
  }

  DrawnSpan* SpanOf(const DrawnPoint& point) {
    DrawnSpan* best = nullptr;
    std::tuple<int, uint64_t, uint64_t> best_rank;
    for (DrawnSpan& span : spans_) {
      if (span.thread != point.thread || span.start > point.at || span.end < point.at) continue;
      const bool has_length = span.end > span.start;
      const bool begins = span.start == point.at;
      const bool ends = has_length && span.end == point.at;
      // Of those that begin there: with a length, without; else around it; else ending there.
      const int kind = ends ? 0 : !begins ? 1 : has_length ? 3 : 2;
      const std::tuple rank(kind, span.start, UINT64_MAX - span.end);
      if (best != nullptr && rank < best_rank) continue;
      best = &span;
      best_rank = rank;
    }
    return best;
  }

  void Join() {
    std::stable_sort(points_.begin(), points_.end(),
                     [](const DrawnPoint& a, const DrawnPoint& b) { return a.at < b.at; });
    struct Open {
      DrawnSpan* start = nullptr;
      std::vector<DrawnSpan*> waiting;
    };
    std::map<uint64_t, Open> flows;
    for (const DrawnPoint& point : points_) {
      Open& open = flows[point.flow];
      DrawnSpan* span = SpanOf(point);
      if (point.phase != Phase::kFlowStart && open.start != nullptr) Add(*open.start, *span);
      if (point.phase == Phase::kFlowEnd && open.start == nullptr) open.waiting.push_back(span);
      if (point.phase == Phase::kFlowEnd) continue;
      if (point.phase == Phase::kFlowStep && open.start == nullptr) continue;
      for (DrawnSpan* end : std::exchange(open.waiting, {})) Add(*span, *end);
      open.start = span;
    }
  }
  void Add(const DrawnSpan& from, DrawnSpan& to) {
    ++to.incoming;
    arrows.emplace(from.id, to.id);
  }

  std::mt19937_64 random_;
  const Shape shape_;
  std::vector<DrawnSpan> spans_;
  std::vector<DrawnPoint> points_;
  std::set<std::tuple<uint64_t, uint64_t, uint64_t>> taken_;
  std::set<std::pair<uint64_t, uint64_t>> times_;
};

std::string Difference(const std::multiset<SeenArrow>& truth,
                       const std::multiset<SeenArrow>& found) {
  std::string text;
  const auto list = [&](std::string_view title, const auto& a, const auto& b) {
    std::vector<SeenArrow> only;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only));
    text += fmt::format("{} {}:", title, only.size());
    for (size_t i = 0; i < std::min<size_t>(only.size(), 8); ++i) {
      text += fmt::format(" {}>{}", only[i].first, only[i].second);
    }
    text += "\n";
  };
  list("missing", truth, found);
  list("made up", found, truth);
  return text;
}

void ExpectAllArrows(uint64_t seed, const ArrowFile::Shape& shape) {
  ArrowFile file(seed, shape);
  FakeChunkSource source;
  file.AddTo(source);
  EXPECT_GT(file.arrows.size(), shape.points / 8);
  for (const FormatReader& format : FormatReaders()) {
    // Parts of a size end arrows, and are ended early by what their events could take at most.
    if (!format.has_arrows || format.name == "perfetto by worker") continue;
    // The format binds a point to a span by its time alone: where many begin at one time, readers
    // tell them apart by the order in the file, each in its own way.
    if (format.name == "chrome-json" && shape.many_equal_times) continue;
    const bool is_perfetto = format.name.starts_with("perfetto");
    const auto truth = is_perfetto ? file.InOrderOfTime(file.arrows) : file.arrows;
    const SeenCapture seen = format.read(source, {});
    auto found = seen.arrows;
    if (is_perfetto) found = file.InOrderOfTime(found);
    if (shape.many_batches && is_perfetto) {
      // A slice that is written already can carry no further arrow: each that is left out is
      // counted, and none leads elsewhere.
      EXPECT_TRUE(std::includes(truth.begin(), truth.end(), found.begin(), found.end()));
      EXPECT_GE(found.size(), truth.size() - truth.size() / 50) << Difference(truth, found);
      if (format.name == "perfetto") {
        EXPECT_EQ(found.size() + seen.arrows_not_drawn, truth.size()) << Difference(truth, found);
      }
      continue;
    }
    if (format.name == "chrome-json") {
      // Of two spans that begin at one time the reader takes the inner one.
      std::vector<SeenArrow> same;
      std::set_intersection(truth.begin(), truth.end(), found.begin(), found.end(),
                            std::back_inserter(same));
      EXPECT_EQ(found.size(), truth.size()) << "seed " << seed;
      EXPECT_GE(same.size(), truth.size() - truth.size() / 32) << Difference(truth, found);
      continue;
    }
    EXPECT_TRUE(found == truth) << format.name << ", seed " << seed << ", " << truth.size()
                                << " arrows\n"
                                << Difference(truth, found);
  }
}

TEST(ArrowPropertyTest, EveryFormatDrawsTheArrowsOfTheFile) {
  for (uint64_t seed = 1; seed <= 20; ++seed) ExpectAllArrows(seed, {});
}

TEST(ArrowPropertyTest, AlsoWhereManyTimesAreEqual) {
  for (uint64_t seed = 100; seed < 120; ++seed) {
    ExpectAllArrows(seed, {.spans = 120,
                           .points = 200,
                           .length = 300,
                           .longest = 40,
                           .grid = 10,
                           .many_equal_times = true});
  }
}

TEST(ArrowPropertyTest, AlsoWhereSpansOverlapForLong) {
  for (uint64_t seed = 200; seed < 210; ++seed) ExpectAllArrows(seed, {.longest = 20'000});
}

// More events than a batch: spans are written before the points in them are read.
TEST(ArrowPropertyTest, AlsoOverManyBatches) {
  ExpectAllArrows(300, {.spans = 3'000,
                        .points = 3'000,
                        .length = 1'000'000,
                        .longest = 3'000,
                        .many_batches = true});
}

}  // namespace
}  // namespace neurontrace
