// SPDX-License-Identifier: Apache-2.0
// Goal: each check of slices, counters and flows finds what it is for. Method: traces made by hand.
#include <limits>
#include <string>
#include <vector>

#include "lib/validate/trace_maker.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TraceEvents : public TraceMaker {
 protected:
  void SetUp() override { Row(); }
  // As neurontrace's own files say who wrote them.
  void Sign() {
    Packet([](auto& packet) {
      packet.add_message(126, Message([](auto& attributes) {
                           attributes.add_message(1, Message([](auto& attribute) {
                                                    attribute.add_string(1,
                                                                         "io.neurontrace.version");
                                                    attribute.add_string(3, "1");
                                                  }));
                         }));
    });
  }
  // Of all findings of a check, line by line.
  static std::string MessagesOf(const TraceReport& report, TraceCheck check) {
    std::string words;
    for (const TraceFinding& finding : report.findings.findings()) {
      if (finding.check == check) words += finding.words + "\n";
    }
    return words;
  }
  static Fill Argument(uint64_t iid, uint64_t value) {
    return [=](protozero::pbf_writer& event) {
      event.add_message(4, Message([=](auto& annotation) {
                          annotation.add_uint64(1, iid);
                          annotation.add_uint64(3, value);
                        }));
    };
  }
};

TEST_F(TraceEvents, EndsWithoutBegins) {
  Plain(3, 1, "plain");
  const std::string sound = trace_;
  Event(kEnd, 2, 1);
  EXPECT_THAT(Checks(), ElementsAre("thread_end_without_begin"));
  trace_ = sound;
  Event(kEnd, 3, 1);
  EXPECT_THAT(Checks(), ElementsAre("end_without_begin"));
  EXPECT_EQ(Validate().findings.errors(), 0u);
}

TEST_F(TraceEvents, BeginsWithoutEnds) {
  Event(kBegin, 2, 1);
  Event(kBegin, 2, 1);
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("open_slices"));
  EXPECT_EQ(report.summary.open_slices, 2u);
  EXPECT_EQ(report.findings.findings()[0].at.packet, 4u);
}

TEST_F(TraceEvents, EndsThatAreNamed) {
  Event(kBegin, 2, 1, Named("outer"));
  Event(kBegin, 2, 1, Named("inner"));
  const std::string begun = trace_;
  Event(kEnd, 2, 1, Named("inner"));
  Event(kEnd, 2, 1, Named("outer"));
  EXPECT_THAT(Checks(), IsEmpty());
  trace_ = begun;
  Event(kEnd, 2, 1, Named("outer"));
  EXPECT_THAT(Checks(), ElementsAre("open_slices")) << "of the inner one";
  Event(kInstant, 2, 1);
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("misplaced_end"));
  EXPECT_THAT(
      report.findings.findings()[0].words,
      HasSubstr("from 1001 to 1003 ns on track 2 ('thread') ends here, before 1 slice inside it"));
  EXPECT_EQ(report.findings.findings()[0].at.packet, 6u) << "where the outer one ends";
  trace_ = begun;
  Event(kEnd, 2, 1, Named("another"));
  Event(kEnd, 2, 1);
  Event(kEnd, 2, 1);
  EXPECT_THAT(Checks(), ElementsAre("thread_end_without_begin"));
}

TEST_F(TraceEvents, NamedEndsOfOneTimeMayComeInAnyOrder) {
  Event(kBegin, 2, 1, Named("outer"));
  Event(kBegin, 2, 1, Named("inner"));
  Event(kEnd, 2, 1, Named("outer"));
  Event(kEnd, 2, 0, Named("inner"));
  Event(kBegin, 2, 0, Named("next"));
  Event(kEnd, 2, 1);
  EXPECT_THAT(Checks(), IsEmpty());
}

TEST_F(TraceEvents, EndsThatHaveCategories) {
  const auto of = [](const std::vector<std::string>& texts,
                     const std::vector<uint64_t>& iids = {}) {
    return [=](protozero::pbf_writer& event) {
      for (const uint64_t iid : iids) event.add_uint64(3, iid);
      for (const std::string& text : texts) event.add_string(22, text);
    };
  };
  Intern(1, 1, "a");
  Intern(1, 2, "b");
  const std::string sound = trace_;
  const auto checks_of = [&](const Fill& begin, const Fill& end) {
    trace_ = sound;
    Event(kBegin, 2, 1, begin);
    Event(kEnd, 2, 1, end);
    return Checks();
  };
  const auto no_match = ElementsAre("thread_end_without_begin", "open_slices");
  EXPECT_THAT(checks_of(of({"a"}), {}), IsEmpty()) << "an end of none ends any";
  EXPECT_THAT(checks_of({}, of({"a"})), no_match) << "an end of one ends none of none";
  EXPECT_THAT(checks_of(of({"a"}), of({}, {1})), IsEmpty());
  EXPECT_THAT(checks_of(of({"a"}), of({"b"})), no_match);
  EXPECT_THAT(checks_of(of({"a", "b"}), of({}, {1, 2})), IsEmpty());
  EXPECT_THAT(checks_of(of({"b"}, {1}), of({"a,b"})), IsEmpty()) << "they are joined by commas";
  EXPECT_THAT(checks_of(of({"a", "b"}), of({"b", "a"})), no_match);
  EXPECT_THAT(checks_of(of({"a", "b"}), of({"b"})), no_match);
}

TEST_F(TraceEvents, NamesInFindingsAreClean) {
  Event(kEnd, 2, 1, Named("\x1b[2J\n\xff" + std::string(1'000, 'x')));
  for (int i = 0; i < 513; ++i) Event(kBegin, 2, 1, Named("\x1b]0;title\x07"));
  const TraceReport report = Validate();
  ASSERT_THAT(ChecksOf(report), ElementsAre("thread_end_without_begin", "depth"));
  for (const TraceFinding& finding : report.findings.findings()) {
    EXPECT_THAT(finding.words, HasSubstr("'?"));
    EXPECT_LT(finding.words.size(), 400u);
    for (const char c : finding.words) EXPECT_TRUE(c >= ' ' && c <= '~') << finding.words;
  }
}

TEST_F(TraceEvents, DepthUpToPerfettosLimit) {
  for (int i = 0; i < 512; ++i) Event(kBegin, 2, 1);
  const std::string deep = trace_;
  for (int i = 0; i < 512; ++i) Event(kEnd, 2, 1);
  EXPECT_THAT(Checks(), IsEmpty());
  trace_ = deep;
  Event(kBegin, 2, 1);
  EXPECT_THAT(Checks(), ElementsAre("depth"));
}

// A=[0,5) and B=[3,7): the importer takes the ends for each other's, and says nothing.
TEST_F(TraceEvents, EndsThatAreExchanged) {
  Intern(3, 1, "duration");
  Sign();
  const std::string sound = trace_;
  Event(kBegin, 2, 1, Argument(1, 5));
  Event(kBegin, 2, 3, Argument(1, 2));
  Event(kEnd, 2, 2);
  Event(kEnd, 2, 0);
  EXPECT_THAT(Checks(), IsEmpty());
  trace_ = sound;
  Event(kBegin, 2, 1, Argument(1, 5));
  Event(kBegin, 2, 3, Argument(1, 4));
  Event(kEnd, 2, 2);
  Event(kEnd, 2, 2);
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("duration"));
  EXPECT_EQ(report.findings.errors(), 2u);
  EXPECT_THAT(report.findings.findings()[0].words,
              HasSubstr("has a duration of 4 ns but ends after 2 ns"));
}

TEST_F(TraceEvents, ForeignDurationArgumentsAreKept) {
  Intern(3, 1, "duration");
  Event(kBegin, 2, 1, Argument(1, 5));
  Event(kEnd, 2, 2);
  EXPECT_THAT(Checks(), IsEmpty());
}

TEST_F(TraceEvents, SqueezedSliceCarriesDuration) {
  Intern(3, 1, "duration");
  Intern(3, 2, "squeezed");
  Sign();
  Event(kBegin, 2, 1, [](protozero::pbf_writer& event) {
    Argument(1, 5)(event);
    event.add_message(4, Message([](auto& annotation) {
                        annotation.add_uint64(1, 2);
                        annotation.add_bool(2, true);
                      }));
  });
  Event(kEnd, 2, 0);
  EXPECT_THAT(Checks(), IsEmpty());
}

TEST_F(TraceEvents, ReportsLossesRecordedInFile) {
  Intern(3, 1, "events");
  Sign();
  Event(kInstant, 2, 1, [](protozero::pbf_writer& event) {
    Named("events lost")(event);
    Argument(1, 12)(event);
  });
  const TraceReport report = Validate();
  EXPECT_EQ(report.summary.loss_instants, 1u);
  EXPECT_EQ(report.summary.lost_events, 12u);
}

// What a ring buffer leaves that has overwritten its oldest packets (ROCm/rocprofiler-systems#107).
TEST_F(TraceEvents, ARingBufferThatHasWrapped) {
  trace_.clear();
  Packet([](protozero::pbf_writer& packet) {
    packet.add_uint32(13, 1);
    packet.add_uint32(42, 1);
    packet.add_bool(87, true);
  });
  Process(11, 601, "app");
  Thread(12, 601, 602, "hip queue");
  Event(kEnd, 12, 100);
  Event(kEnd, 12, 110);
  Event(kBegin, 12, 200, Named("k1"));
  Event(kBegin, 12, 300, Named("k2"));
  Event(kEnd, 12, 400);
  Event(kBegin, 12, 500, Named("k3"));
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report),
              ElementsAre("packet_loss", "thread_end_without_begin", "open_slices"));
  EXPECT_EQ(report.findings.count(TraceCheck::kPacketLoss), 1u);
  EXPECT_EQ(report.findings.count(TraceCheck::kThreadEndWithoutBegin), 2u);
  EXPECT_EQ(report.summary.open_slices, 2u);
  const std::string open = MessagesOf(report, TraceCheck::kOpenSlices);
  EXPECT_THAT(open, AllOf(HasSubstr("'k1' that begins at 200 ns"),
                          HasSubstr("'k3' that begins at 500 ns")));
  EXPECT_GT(report.findings.errors(), 0u) << "exit code 1";
}

// google/perfetto#6849: ends without names close what was begun last.
TEST_F(TraceEvents, AnInnerEndIsMissing) {
  for (int i = 0; i < 2; ++i) {
    Event(kBegin, 2, 1'000, Named("dispatch"));
    Event(kBegin, 2, 1'000, Named("helper"));
    Event(kEnd, 2, 7'000);
  }
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("open_slices"));
  EXPECT_EQ(report.summary.open_slices, 2u);
  const std::string open = MessagesOf(report, TraceCheck::kOpenSlices);
  EXPECT_THAT(
      open, ContainsRegex(
                "'dispatch' that begins at [0-9]+ ns .*\n.*'dispatch' that begins at [0-9]+ ns "));
}

// Two spans that overlap on one track: nothing in the file tells where ends have no names.
TEST_F(TraceEvents, OverlappingSpansWithBareAndWithNamedEnds) {
  Plain(3, 1, "queue");
  const std::string begun = trace_;
  Event(kBegin, 3, 100, Named("encode 1"));
  Event(kBegin, 3, 100, Named("encode 2"));
  Event(kEnd, 3, 100);
  Event(kEnd, 3, 100);
  EXPECT_THAT(Checks(), IsEmpty());
  trace_ = begun;
  for (int i = 0; i < 2; ++i) {
    Event(kBegin, 3, 100, Named("encode 1"));
    Event(kBegin, 3, 100, Named("encode 2"));
    Event(kEnd, 3, 100, Named("encode 1"));
    Event(kEnd, 3, 100, Named("encode 2"));
  }
  const TraceReport report = Validate();
  EXPECT_EQ(report.findings.count(TraceCheck::kMisplacedEnd), 2u);
  EXPECT_EQ(report.findings.count(TraceCheck::kEndWithoutBegin), 2u);
}

TEST_F(TraceEvents, OutOfOrderOnATrack) {
  Event(kBegin, 2, 10);
  Header(1'005);  // back in time
  Event(kEnd, 2, 0);
  Event(kEnd, 2, 0);  // no longer looked at
  EXPECT_THAT(Checks(), ElementsAre("order"));
}

TEST_F(TraceEvents, Counters) {
  Plain(3, 1, "counter", true);
  const Fill value = [](protozero::pbf_writer& event) { event.add_int64(30, -5); };
  Event(kCounter, 3, 1, value);
  const std::string sound = trace_;
  EXPECT_THAT(Checks(), IsEmpty());
  Event(kCounter, 3, 1);
  EXPECT_THAT(Checks(), ElementsAre("counter_value"));
  trace_ = sound;
  Event(kCounter, 3, 1, [](protozero::pbf_writer& event) {
    event.add_double(44, std::numeric_limits<double>::quiet_NaN());
  });
  EXPECT_THAT(Checks(), ElementsAre("counter_value"));
  trace_ = sound;
  Event(kCounter, 2, 1, value);
  EXPECT_THAT(Checks(), ElementsAre("counter_track"));
}

TEST_F(TraceEvents, ExtraCounters) {
  Plain(3, 1, "counter", true);
  const std::string sound = trace_;
  const auto extra = [](size_t values, size_t tracks, uint64_t uuid) -> Fill {
    return [=](protozero::pbf_writer& event) {
      for (size_t i = 0; i < tracks; ++i) event.add_uint64(31, uuid);
      for (size_t i = 0; i < values; ++i) event.add_int64(12, 1);
    };
  };
  Event(kInstant, 2, 1, extra(8, 8, 3));
  EXPECT_THAT(Checks(), IsEmpty());
  EXPECT_EQ(Validate().summary.counter_values, 8u);
  trace_ = sound;
  Event(kInstant, 2, 1, extra(9, 9, 3));
  EXPECT_THAT(Checks(), ElementsAre("extra_counters"));
  trace_ = sound;
  Event(kInstant, 2, 1, extra(2, 1, 3));
  EXPECT_THAT(Checks(), ElementsAre("extra_counters"));
  trace_ = sound;
  Event(kInstant, 2, 1, extra(1, 1, 2));
  EXPECT_THAT(Checks(), ElementsAre("counter_track"));
}

TEST_F(TraceEvents, Flows) {
  const auto flow = [](uint32_t field, uint64_t id) -> Fill {
    return [=](protozero::pbf_writer& event) { event.add_fixed64(field, id); };
  };
  Event(kInstant, 2, 1, flow(47, 7));
  Event(kInstant, 2, 1, flow(47, 7));
  Event(kInstant, 2, 1, flow(48, 7));
  Event(kInstant, 2, 1, flow(47, 8));  // an end alone is no mistake
  TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.flow_points, 4u);
  EXPECT_EQ(report.summary.flow_arrows, 2u);
  EXPECT_EQ(report.summary.lone_flow_points, 1u);
  Event(kInstant, 2, 1, flow(48, 7));  // ended before
  EXPECT_THAT(Checks(), ElementsAre("flow"));
}

// Sequences may stand one after the other; Perfetto follows flows in the order of time.
TEST_F(TraceEvents, FlowsAreFollowedByTime) {
  const auto at = [&](uint64_t time_ns, uint64_t uuid, uint32_t field) {
    Packet([&](auto& packet) {
      packet.add_uint64(8, time_ns);
      packet.add_uint32(58, 1);  // REALTIME, the trace's
      packet.add_message(11, Message([&](auto& event) {
                           event.add_uint32(9, kInstant);
                           event.add_uint64(11, uuid);
                           event.add_fixed64(field, 7);
                         }));
    });
  };
  Plain(3, 1, "another");
  at(2'000, 2, 48);
  at(1'500, 3, 47);
  TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.flow_arrows, 1u);
  EXPECT_EQ(report.summary.lone_flow_points, 0u);
  const size_t offset = trace_.size();
  at(2'500, 3, 48);
  report = Validate();
  ASSERT_THAT(ChecksOf(report), ElementsAre("flow"));
  EXPECT_EQ(report.findings.findings()[0].at.offset, offset);
}

TEST_F(TraceEvents, FlowsWithoutASlice) {
  const Fill flow = [](protozero::pbf_writer& event) {
    event.add_fixed64(47, 7);
    event.add_int64(30, 5);
  };
  Plain(3, 1, "counter", true);
  Plain(4, 1, "plain");
  Event(kBegin, 4, 1, flow);
  Event(kEnd, 4, 1, flow);
  EXPECT_THAT(Checks(), IsEmpty());
  const std::string sound = trace_;
  Event(kCounter, 3, 1, flow);
  EXPECT_THAT(Checks(), ElementsAre("flow_slice"));
  EXPECT_EQ(Validate().summary.flow_points, 2u);
  trace_ = sound;
  Event(kEnd, 4, 1, flow);
  EXPECT_THAT(Checks(), ElementsAre("end_without_begin", "flow_slice"));
}

TEST_F(TraceEvents, StatesNeedATrack) {
  constexpr uint32_t kState = 5;
  Event(kState, 2, 1, Named("idle"));
  EXPECT_THAT(Checks(), IsEmpty());
  const auto untracked = [this] {
    Packet([](auto& packet) {
      packet.add_uint64(8, 1);
      packet.add_message(11, Message([](auto& event) { event.add_uint32(9, kState); }));
    });
  };
  const std::string sound = trace_;
  untracked();
  EXPECT_THAT(Checks(), ElementsAre("state_track"));
  trace_ = sound;
  Packet([](auto& packet) {  // its sequence says one for all
    packet.add_message(59, Message([](auto& defaults) {
                         defaults.add_uint32(58, 64);
                         defaults.add_message(
                             11, Message([](auto& event) { event.add_uint64(11, 2); }));
                       }));
  });
  untracked();
  EXPECT_THAT(Checks(), IsEmpty());
}

TEST_F(TraceEvents, SlicesThatEndAtOneTimeAndThatAreCutShort) {
  for (const char* name : {"a", "b", "c", "d"}) Event(kBegin, 2, 1, Named(name));
  Event(kEnd, 2, 10, Named("c"));
  Event(kEnd, 2, 0, Named("a"));
  EXPECT_EQ(Validate().summary.open_slices, 2u) << "b and d may yet end";
  Event(kInstant, 2, 1);
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("misplaced_end"));
  ASSERT_EQ(report.findings.errors(), 2u);
  EXPECT_THAT(
      MessagesOf(report, TraceCheck::kMisplacedEnd),
      HasSubstr("from 1003 to 1014 ns on track 2 ('thread') ends here, before 1 slice inside it"));
  EXPECT_THAT(
      MessagesOf(report, TraceCheck::kMisplacedEnd),
      HasSubstr("from 1001 to 1014 ns on track 2 ('thread') ends here, before 1 slice inside it"));
  EXPECT_EQ(report.summary.open_slices, 0u);
}

TEST_F(TraceEvents, FlowsBoundByLegacyEvents) {
  constexpr uint32_t kIn = 1, kOut = 2;
  const auto bound = [](uint64_t id, uint32_t direction) -> Fill {
    return [=](protozero::pbf_writer& event) {
      event.add_message(6, Message([=](auto& legacy) {
                          legacy.add_uint64(8, id);
                          if (direction != 0) legacy.add_uint32(13, direction);
                        }));
    };
  };
  Event(kInstant, 2, 1, [](auto& event) { event.add_fixed64(47, 7); });
  Event(kInstant, 2, 1, bound(7, kIn));
  Event(kInstant, 2, 1, bound(7, kIn));  // it may end at several slices
  EXPECT_THAT(Checks(), IsEmpty());
  EXPECT_EQ(Validate().summary.flow_arrows, 2u);
  const std::string sound = trace_;
  Event(kInstant, 2, 1, bound(8, kIn));
  EXPECT_THAT(Checks(), ElementsAre("flow"));
  trace_ = sound;
  Event(kInstant, 2, 1, bound(7, 0));
  EXPECT_THAT(Checks(), ElementsAre("flow_legacy"));
  trace_ = sound;
  Event(kInstant, 2, 1, bound(8, kOut));
  Event(kInstant, 2, 1, bound(8, kIn));
  EXPECT_THAT(Checks(), ElementsAre("unchecked"));
  EXPECT_EQ(Validate().summary.flow_arrows, 3u);
}

TEST_F(TraceEvents, TypesThatDoNotExist) {
  Event(9, 2, 1);
  EXPECT_THAT(Checks(), ElementsAre("event_type"));
}

TEST_F(TraceEvents, ReportsUncheckedFeaturesOnce) {
  const std::string sound = trace_;
  const auto twice = [&](uint32_t type, const Fill& more) {
    trace_ = sound;
    Event(kBegin, 2, 1);
    Event(type, 2, 1, more);
    Event(type, 2, 1, more);
    EXPECT_THAT(Checks(), testing::Contains("unchecked"));
    return Validate();
  };
  const Fill phase = [](auto& event) {
    event.add_message(6, Message([](auto& legacy) { legacy.add_int32(2, 'E'); }));
  };
  EXPECT_EQ(twice(0, phase).findings.warnings(), 1u) << "the track is no longer followed";
  EXPECT_EQ(twice(kEnd, phase).summary.other_events, 2u);
  EXPECT_EQ(twice(0, [](auto& event) { event.add_message(6, std::string()); }).findings.errors(),
            0u);
  const Fill extension = [](auto& event) { event.add_uint64(9'901, 1); };
  EXPECT_EQ(twice(kInstant, extension).findings.count(TraceCheck::kUnchecked), 1u);
  for (const uint32_t field : {1, 16}) {
    const Fill own_time = [=](auto& event) { event.add_int64(field, 5); };
    EXPECT_EQ(twice(kInstant, own_time).summary.other_events, 2u);
  }
  trace_ = sound;
  const auto untracked = [this] {
    Packet([](auto& packet) {
      packet.add_uint64(8, 1);
      packet.add_message(11, Message([](auto& event) { event.add_uint32(9, kBegin); }));
    });
  };
  untracked();
  EXPECT_THAT(Checks(), ElementsAre("open_slices")) << "on the track of what says none";
  trace_ = sound;
  Packet([](auto& packet) { packet.add_message(44, std::string()); });
  untracked();
  EXPECT_THAT(Checks(), ElementsAre("unchecked")) << "on its sequence's thread";
}

}  // namespace
}  // namespace neurontrace
