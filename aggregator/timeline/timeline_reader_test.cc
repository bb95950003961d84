// SPDX-License-Identifier: Apache-2.0
// Goal: whatever the chunks, windows and budgets, the reader yields exactly what a naive reader of
// the whole capture would, in order. Method: captures in memory; a random one against a model.
#include "aggregator/timeline/timeline_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "aggregator/align/core/clock_maps.h"
#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;
constexpr uint64_t kBase = 1'750'000'000'000'000'000u;

StreamIdentity Core(const std::string& instance, uint32_t pid, uint32_t nc_idx) {
  return {.agent_id = "agent-" + instance,
          .worker = {instance, "boot", pid, 1, ""},
          .kind = StreamKind::kNeuronCore,
          .nc_idx = nc_idx};
}

RankEvidence Claim(int64_t gid) { return {RankSource::kCommunicator, gid, 64, "test"}; }

// A record without its chunk: what the model and the reader are compared by.
struct Seen {
  std::string type;
  uint64_t start_ns;
  uint64_t end_ns;
  uint64_t thread_id;
  int kind;
  int flags;
  friend bool operator==(const Seen&, const Seen&) = default;
  friend auto operator<=>(const Seen&, const Seen&) = default;
};
void PrintTo(const Seen& seen, std::ostream* out) {
  *out << seen.type << " [" << seen.start_ns << ", " << seen.end_ns << "] tid " << seen.thread_id
       << " kind " << seen.kind << " flags " << seen.flags;
}

class TimelineReaderTest : public ::testing::Test {
 protected:
  std::vector<Seen> Read(TimelineOptions options = {}) {
    auto reader = TimelineReader::Open(source_, std::move(options));
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return {};
    std::vector<Seen> seen;
    TimelineBatch batch;
    uint64_t last_end_ns = 0;
    while (true) {
      const auto more = (*reader)->Next(batch);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) break;
      EXPECT_GE(batch.begin_ns, last_end_ns);
      last_end_ns = batch.end_ns;
      uint64_t before_ns = batch.begin_ns;
      for (const TimelineRecord* record : batch.records) {
        EXPECT_GE(record->start_ns, before_ns);
        EXPECT_LT(record->start_ns, batch.end_ns);
        EXPECT_GE(record->end_ns, record->start_ns);
        before_ns = record->start_ns;
        seen.push_back({std::string(record->start().event_type), record->start_ns, record->end_ns,
                        record->thread_id, static_cast<int>(record->kind), record->flags});
      }
    }
    counts_ = (*reader)->counts();
    warnings_ = (*reader)->warnings();
    return seen;
  }

  void Close(uint32_t stream) { source_.AddChunk(stream, builder_); }

  FakeChunkSource source_;
  EventChunkBuilder builder_;
  EventScript script_{builder_};
  TimelineCounts counts_;
  std::vector<std::string> warnings_;
};

constexpr int kSpanKind = static_cast<int>(RecordKind::kSpan);
constexpr int kStopKind = static_cast<int>(RecordKind::kStopAttributes);

TEST_F(TimelineReaderTest, AnEmptyCaptureHasNoRecord) {
  source_.AddStream(Core("i-a", 1, 0));
  EXPECT_THAT(Read(), IsEmpty());
}

TEST_F(TimelineReaderTest, PairsInsideAChunkAndAcrossChunks) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  script_.Start("outer", kBase, 1, 7);
  script_.Span("inner", kBase + 10, kBase + 20, 2);
  Close(stream);
  script_.Span("inner", kBase + 30, kBase + 40, 3);
  Close(stream);
  script_.Stop("outer", kBase + 50, 1, 7);
  Close(stream);
  EXPECT_THAT(Read(), ElementsAre(Seen{"outer", kBase, kBase + 50, 7, kSpanKind, kStopFollows},
                                  Seen{"inner", kBase + 10, kBase + 20, 7, kSpanKind, 0},
                                  Seen{"inner", kBase + 30, kBase + 40, 7, kSpanKind, 0},
                                  Seen{"outer", kBase + 50, kBase + 50, 7, kStopKind, 0}));
  EXPECT_EQ(counts_.spans, 3u);
}

TEST_F(TimelineReaderTest, PairsFrameworkSpanEnds) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  script_.Add("step", Phase::kBegin, kBase, 1, 7);
  script_.Add("step", Phase::kBegin, kBase + 10, 2, 7);
  script_.Add("step", Phase::kEnd, kBase + 20, 2, 7);
  script_.Add("step", Phase::kBegin, kBase + 25, 3, 7);
  Close(stream);
  script_.Add("step", Phase::kEnd, kBase + 50, 1, 7);
  script_.Add("step", Phase::kEnd, kBase + 60, 9, 7);
  Close(stream);
  EXPECT_THAT(Read(), ElementsAre(Seen{"step", kBase, kBase + 50, 7, kSpanKind, kStopFollows},
                                  Seen{"step", kBase + 10, kBase + 20, 7, kSpanKind, 0},
                                  Seen{"step", kBase + 25, kBase + 60, 7, kSpanKind, kOpen},
                                  Seen{"step", kBase + 50, kBase + 50, 7, kStopKind, 0},
                                  Seen{"step", kBase + 60, kBase + 60, 7, kSpanKind, kStartLost}));
  EXPECT_EQ(counts_.open_spans, 1u);
  EXPECT_EQ(counts_.start_lost_spans, 1u);
}

TEST_F(TimelineReaderTest, KeepsWhatHasNoPartner) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  script_.Stop("lost", kBase + 5, 1, 7);
  script_.Start("open", kBase + 10, 2, 7);
  script_.Instant("tick", kBase + 90, 0, 7);
  Close(stream);
  EXPECT_THAT(Read(), ElementsAre(Seen{"lost", kBase + 5, kBase + 5, 7, kSpanKind, kStartLost},
                                  Seen{"open", kBase + 10, kBase + 90, 7, kSpanKind, kOpen},
                                  Seen{"tick", kBase + 90, kBase + 90, 7,
                                       static_cast<int>(RecordKind::kInstant), 0}));
  EXPECT_EQ(counts_.open_spans, 1u);
  EXPECT_EQ(counts_.start_lost_spans, 1u);
}

TEST_F(TimelineReaderTest, YieldsTheStopsAttributesWhenTheyComeInALaterChunk) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  script_.Start("load", kBase, 9, 7);
  Close(stream);
  script_.Stop("load", kBase + 8, 9, 7, {{"model_id", uint64_t{4}}});
  Close(stream);
  auto reader = TimelineReader::Open(source_, {});
  ASSERT_TRUE(reader.ok());
  TimelineBatch batch;
  std::vector<std::pair<RecordKind, uint64_t>> seen;
  while (*(*reader)->Next(batch)) {
    for (const TimelineRecord* record : batch.records) {
      seen.emplace_back(record->kind, record->span_id);
      if (record->kind == RecordKind::kStopAttributes) {
        EXPECT_EQ(record->start().keys[0].name, "model_id");
        EXPECT_EQ(record->start_values()[0], 4u);
      }
    }
  }
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].first, RecordKind::kSpan);
  EXPECT_EQ(seen[1].first, RecordKind::kStopAttributes);
  EXPECT_EQ(seen[0].second, seen[1].second);
}

TEST_F(TimelineReaderTest, SelectsInstancesCoresTypesAndWindow) {
  for (const char* instance : {"i-a", "i-b"}) {
    for (uint32_t nc_idx : {0u, 1u}) {
      const uint32_t stream = source_.AddStream(Core(instance, 1, nc_idx));
      for (uint64_t i = 0; i < 10; ++i) {
        script_.Span(i % 2 == 0 ? "even" : "odd", kBase + i * 10, kBase + i * 10 + 5, i + 1,
                     nc_idx + (instance == std::string("i-b") ? 10 : 0));
        if (i % 3 == 2) Close(stream);
      }
      Close(stream);
    }
  }
  EXPECT_EQ(Read().size(), 40u);
  TimelineOptions options;
  options.filter.instance_ids = {"i-b"};
  options.filter.neuron_cores = {1};
  options.filter.event_types = *EventFilter::Parse({"odd"});
  options.filter.window_start_ns = kBase + 33;
  options.filter.window_end_ns = kBase + 70;
  EXPECT_THAT(Read(options), ElementsAre(Seen{"odd", kBase + 30, kBase + 35, 11, kSpanKind, 0},
                                         Seen{"odd", kBase + 50, kBase + 55, 11, kSpanKind, 0}));
  options.filter.window_end_ns = options.filter.window_start_ns;
  EXPECT_EQ(TimelineReader::Open(source_, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TimelineReaderTest, AWindowSkipsChunksThatLieOutsideIt) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  for (uint64_t second = 0; second < 100; ++second) {
    for (uint64_t i = 0; i < 10; ++i) {
      const uint64_t at = kBase + second * 1'000'000'000 + i * 1'000'000;
      script_.Span("span", at, at + 1'000, second * 10 + i + 1);
    }
    Close(stream);
  }
  TimelineOptions options;
  options.filter.window_start_ns = kBase + 50'000'000'000;
  options.filter.window_end_ns = kBase + 51'000'000'000;
  EXPECT_EQ(Read(options).size(), 10u);
  EXPECT_LE(source_.chunks_read(), 4u);
}

TEST_F(TimelineReaderTest, SkipsAndReportsUnreadableChunk) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  for (uint64_t i = 0; i < 3; ++i) {
    script_.Span("span", kBase + i * 10, kBase + i * 10 + 5, i + 1);
    Close(stream);
  }
  source_.Lose(stream, 1);
  EXPECT_EQ(Read().size(), 2u);
  EXPECT_EQ(counts_.unreadable_chunks, 1u);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("chunk 1 of i-a pid 1 nc 0 cannot be read")));
}

TEST_F(TimelineReaderTest, BindsRanksAndKeepsConflictingClaimsApart) {
  source_.AddStream(Core("i-a", 1, 0), {Claim(7)});
  source_.AddStream(Core("i-b", 1, 0), {{RankSource::kSlurm, 3, 8, "x"}, Claim(7)});
  source_.AddStream(Core("i-c", 1, 0), {Claim(8)});
  source_.AddStream(Core("i-d", 1, 0));
  for (uint32_t stream = 0; stream < 4; ++stream) {
    script_.Span("span", kBase, kBase + 5, 1);
    Close(stream);
  }
  auto reader = TimelineReader::Open(source_, {});
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->streams()[0].rank.label, "gid7 (i-a pid 1 nc 0)");
  EXPECT_EQ((*reader)->streams()[1].rank.label, "gid7 (i-b pid 1 nc 0)");
  EXPECT_EQ((*reader)->streams()[2].rank.label, "gid8");
  EXPECT_EQ((*reader)->streams()[3].rank.worker_gid, std::nullopt);
  EXPECT_THAT((*reader)->warnings(), ElementsAre(HasSubstr("2 cores claim worker_gid 7")));
}

TEST_F(TimelineReaderTest, RanksOfDifferentJobsAreNoConflict) {
  const auto add = [this](const char* host, const char* job, RankEvidence claim) {
    const uint32_t stream = source_.AddStream(Core(host, 1, 0), {std::move(claim)});
    source_.stream(stream).job = job;
    script_.Span("span", kBase, kBase + 5, 1);
    Close(stream);
  };
  const RankEvidence whole_world = {RankSource::kCommunicator, 0, 1, "test"};
  add("i-a", "torch", Claim(0));
  add("i-b", "twice", Claim(0));
  add("i-c", "", whole_world);
  add("i-d", "", whole_world);
  add("i-e", "twice", Claim(0));
  auto reader = TimelineReader::Open(source_, {});
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->streams()[0].rank.label, "gid0 (i-a pid 1 nc 0)")
      << "the label distinguishes the cores";
  EXPECT_THAT((*reader)->warnings(),
              ElementsAre(HasSubstr("2 cores of job twice claim worker_gid 0")));
}

TEST_F(TimelineReaderTest, AWorkerThatTookOverARankIsNoConflict) {
  source_.AddStream(Core("i-a", 1, 0), {Claim(7)});
  source_.AddStream(Core("i-a", 2, 0), {Claim(7)});
  script_.Span("span", kBase, kBase + 5, 1);
  Close(0);
  script_.Span("span", kBase + 100, kBase + 105, 1);
  Close(1);
  auto reader = TimelineReader::Open(source_, {});
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT((*reader)->warnings(), IsEmpty());
}

TEST_F(TimelineReaderTest, MapsTimeThroughTheClockOfTheStreamsMachine) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  script_.Span("span", kBase, kBase + 1'000'000, 1);
  Close(stream);
  ClockMaps clocks;
  clocks.Set(source_.stream(0).identity.worker, ClockDomain::kHostRealtime,
             *ClockMap::FromPieces({{kBase, kBase + 500, 0, 10}}));
  TimelineOptions options;
  options.clocks = &clocks;
  EXPECT_THAT(Read(options), ElementsAre(Seen{"span", kBase + 500, kBase + 1'000'500, 7, kSpanKind,
                                              kHasRawStart}));
}

TEST_F(TimelineReaderTest, ManyEventsAtOneInstantDoNotStopIt) {
  for (uint32_t core = 0; core < 20; ++core) {
    const uint32_t stream = source_.AddStream(Core("i-a", 1, core));
    for (uint64_t i = 0; i < 300; ++i) script_.Instant("tick", kBase, 0, 7);
    Close(stream);
  }
  TimelineOptions options;
  options.batch_events_max = 1'000;
  options.batch_records_target = 16;
  options.window_bytes_max = 1;
  EXPECT_EQ(Read(options).size(), 6'000u);
  EXPECT_GT(counts_.moved, 0u);
}

TEST_F(TimelineReaderTest, TimesAtTheEndsOfTheScaleComeThrough) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  script_.Span("span", 0, UINT64_MAX, UINT64_MAX);
  script_.Instant("tick", UINT64_MAX, 0, UINT64_MAX);
  Close(stream);
  const auto seen = Read();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].end_ns, kTimeMaxNs);
  EXPECT_EQ(seen[1].thread_id, UINT64_MAX);
}

// --- Against the model ---------------------------------------------------------------------------

struct ModelEvent {
  EventScript::Event event;
  size_t chunk;
};

// A stream of random events in which tracking ids recur, starts and stops are lost, and chunks may
// overlap in time.
std::vector<ModelEvent> RandomStream(std::mt19937_64& random, size_t events, size_t per_chunk,
                                     uint64_t overlap_ns) {
  std::vector<ModelEvent> made;
  std::vector<EventScript::Event> open;
  uint64_t now = kBase + random() % 1'000;
  uint64_t next_id = 1;
  for (size_t i = 0; i < events; ++i) {
    now += random() % 3 == 0 ? 0 : random() % 2'000;
    EventScript::Event event{"t" + std::to_string(random() % 4), Phase::kInstant,
                             now - random() % (overlap_ns + 1), 0, random() % 3};
    const uint64_t dice = random() % 10;
    if (dice < 4) {
      event.phase = Phase::kStart;
      event.tracking_id = next_id++;
      if (random() % 50 != 0) open.push_back(event);  // else its stop is lost
    } else if (dice < 8 && !open.empty()) {
      const size_t which = random() % std::min<size_t>(open.size(), 5);
      event = open[open.size() - 1 - which];
      open.erase(open.end() - 1 - static_cast<long>(which));
      event.phase = Phase::kStop;
      event.timestamp_ns = std::max(event.timestamp_ns, now);
    } else if (dice == 8 && random() % 10 == 0) {
      event.phase = Phase::kStop;  // its start was lost
      event.tracking_id = (uint64_t{1} << 60) + next_id++;
    }
    made.push_back({event, i / per_chunk});
  }
  return made;
}

std::vector<Seen> Model(const std::vector<ModelEvent>& events) {
  uint64_t last_ns = 0;
  std::map<std::pair<std::string, uint64_t>, const ModelEvent*> stops;
  std::map<std::pair<std::string, uint64_t>, const ModelEvent*> starts;
  for (const ModelEvent& e : events) {
    last_ns = std::max(last_ns, e.event.timestamp_ns);
    const std::pair key(e.event.type, e.event.tracking_id);
    if (e.event.phase == Phase::kStop) stops[key] = &e;
    if (e.event.phase == Phase::kStart) starts[key] = &e;
  }
  std::vector<Seen> seen;
  for (const ModelEvent& e : events) {
    const auto& event = e.event;
    const std::pair key(event.type, event.tracking_id);
    if (event.phase == Phase::kInstant) {
      seen.push_back({event.type, event.timestamp_ns, event.timestamp_ns, event.thread_id,
                      static_cast<int>(RecordKind::kInstant), 0});
    } else if (event.phase == Phase::kStart) {
      const auto stop = stops.find(key);
      if (stop == stops.end()) {
        seen.push_back(
            {event.type, event.timestamp_ns, last_ns, event.thread_id, kSpanKind, kOpen});
      } else {
        seen.push_back({event.type, event.timestamp_ns, stop->second->event.timestamp_ns,
                        event.thread_id, kSpanKind,
                        stop->second->chunk == e.chunk ? 0 : int{kStopFollows}});
      }
    } else if (starts.contains(key) && starts.at(key)->chunk != e.chunk) {
      seen.push_back(
          {event.type, event.timestamp_ns, event.timestamp_ns, event.thread_id, kStopKind, 0});
    } else if (!starts.contains(key)) {
      seen.push_back({event.type, event.timestamp_ns, event.timestamp_ns, event.thread_id,
                      kSpanKind, kStartLost});
    }
  }
  return seen;
}

class TimelineModelTest
    : public TimelineReaderTest,
      public ::testing::WithParamInterface<std::tuple<int, uint64_t, size_t, size_t>> {};

TEST_P(TimelineModelTest, MatchesModel) {
  const auto [seed, overlap_ns, window_bytes_max, name_bytes_max] = GetParam();
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  std::vector<Seen> expected;
  for (uint32_t core = 0; core < 5; ++core) {
    const uint32_t stream = source_.AddStream(Core("i-a", 1, core));
    const auto events = RandomStream(random, 3'000, 50 + random() % 400, overlap_ns);
    size_t chunk = 0;
    for (const ModelEvent& event : events) {
      if (event.chunk != chunk) Close(stream);
      chunk = event.chunk;
      script_.Add(event.event);
    }
    Close(stream);
    const auto model = Model(events);
    expected.insert(expected.end(), model.begin(), model.end());
  }
  TimelineOptions options;
  options.window_bytes_max = window_bytes_max;
  options.name_bytes_max = name_bytes_max;
  options.batch_records_target = window_bytes_max < 100'000 ? 64 : 16'384;
  options.batch_events_max = window_bytes_max < 100'000 ? 512 : 131'072;
  auto seen = Read(options);
  EXPECT_EQ(counts_.moved, 0u);
  EXPECT_EQ(counts_.pairing_given_up, 0u);
  std::sort(expected.begin(), expected.end());
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, expected);
}

INSTANTIATE_TEST_SUITE_P(Random, TimelineModelTest,
                         ::testing::Combine(::testing::Range(1, 9),
                                            ::testing::Values(0, 3'000, 400'000),
                                            ::testing::Values(size_t{1}, size_t{96} << 20),
                                            // For a few of the chunks of a slice; for all.
                                            ::testing::Values(size_t{4000}, size_t{96} << 20)));

}  // namespace
}  // namespace neurontrace
