// SPDX-License-Identifier: Apache-2.0
// Goal: each check of legacy events, which Chrome's trace format of JSON became in Perfetto's,
// finds what it is for, and nothing in those that are sound. Method: traces made by hand.
#include <optional>
#include <string>

#include "validate/trace_maker.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TraceLegacy : public TraceMaker {
 protected:
  static constexpr uint32_t kNoType = 0;
  static constexpr uint32_t kIn = 1, kOut = 2, kInOut = 3;

  void SetUp() override { Row(); }

  static Fill Legacy(const Fill& fill, const std::string& name = "") {
    return [=](protozero::pbf_writer& event) {
      if (!name.empty()) event.add_string(23, name);
      event.add_message(6, Message(fill));
    };
  }
  static Fill Phase(char phase, const std::string& name = "") {
    return Legacy([=](protozero::pbf_writer& legacy) { legacy.add_int32(2, phase); }, name);
  }
  static Fill Lasts(int64_t duration_us) {
    return Legacy([=](protozero::pbf_writer& legacy) {
      legacy.add_int32(2, 'X');
      legacy.add_int64(3, duration_us);
    });
  }
  static Fill Bound(uint64_t id, uint32_t direction) {
    return Legacy([=](protozero::pbf_writer& legacy) {
      legacy.add_uint64(8, id);
      if (direction != 0) legacy.add_uint32(13, direction);
    });
  }
  static Fill Arrow(char phase, std::optional<uint64_t> id, bool binds_enclosing = false,
                    const std::string& name = "") {
    return Legacy(
        [=](protozero::pbf_writer& legacy) {
          legacy.add_int32(2, phase);
          if (id) legacy.add_uint64(6, *id);
          if (binds_enclosing) legacy.add_bool(12, true);
        },
        name);
  }
};

TEST_F(TraceLegacy, PhasesAreTypes) {
  Event(kNoType, 2, 1, Phase('B', "slice"));
  Event(kNoType, 2, 1, Phase('i'));
  Event(kNoType, 2, 1, Phase('E', "slice"));
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.slices, 1u);
  EXPECT_EQ(report.summary.instants, 1u);
  Event(kNoType, 2, 1, Phase('E'));
  EXPECT_THAT(Checks(), ElementsAre("thread_end_without_begin"));
}

TEST_F(TraceLegacy, CompleteSlicesNest) {
  Event(kNoType, 2, 0, Lasts(10));
  Event(kNoType, 2, 0, Lasts(10));     // as long
  Event(kNoType, 2, 5'000, Lasts(5));  // to the end of both
  Event(kNoType, 2, 5'000, Lasts(20));
  Event(kBegin, 2, 1'000);
  Event(kNoType, 2, 1'000, Lasts(18));
  Event(kEnd, 2, 18'000);
  Event(kInstant, 2, 1'000);
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.slices, 6u);
  EXPECT_EQ(report.summary.open_slices, 0u);
}

TEST_F(TraceLegacy, CompleteSlicesThatOverlap) {
  Event(kNoType, 2, 0, Lasts(10));
  Event(kNoType, 2, 5'000, Lasts(6));
  TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("overlap"));
  EXPECT_THAT(report.findings.findings()[0].words, HasSubstr("from 6000 to 12000 ns on track 2"));
  trace_.clear();
  Row();
  Event(kNoType, 2, 0, Lasts(10));
  Event(kBegin, 2, 5'000);
  Event(kEnd, 2, 6'000);  // the same with a slice that says its end later: cut short
  EXPECT_THAT(Checks(), ElementsAre("thread_end_without_begin", "misplaced_end"));
}

TEST_F(TraceLegacy, DurationsBelowZeroAndBeyondAllTime) {
  Event(kNoType, 2, 0, Lasts(INT64_MAX));
  EXPECT_THAT(Checks(), IsEmpty());
  Event(kNoType, 2, 0, Lasts(-1));
  EXPECT_THAT(Checks(), ElementsAre("negative_duration"));
}

TEST_F(TraceLegacy, BoundFlows) {
  Event(kInstant, 2, 1, Bound(7, kOut));
  Event(kInstant, 2, 1, Bound(7, kInOut));
  Event(kInstant, 2, 1, Bound(7, kIn));
  Event(kInstant, 2, 1, Bound(7, kIn));  // it may go to several
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.flow_arrows, 3u);
  const std::string sound = trace_;
  Event(kInstant, 2, 1, Bound(7, kOut));
  EXPECT_THAT(Checks(), ElementsAre("flow_duplicate"));
  trace_ = sound;
  Event(kInstant, 2, 1, Bound(8, kInOut));
  EXPECT_THAT(Validate().findings.findings()[0].words, HasSubstr("Flow 8 goes on here"));
  trace_ = sound;
  Event(kInstant, 2, 1, Bound(8, kIn));
  EXPECT_THAT(Checks(), ElementsAre("flow"));
  trace_ = sound;
  Event(kInstant, 2, 1, Bound(7, 0));
  EXPECT_THAT(Checks(), ElementsAre("flow_legacy"));
}

TEST_F(TraceLegacy, ArrowsAreOnTheSliceAroundThem) {
  Event(kBegin, 2, 1);
  Event(kNoType, 2, 1, Arrow('s', 7));
  Event(kNoType, 2, 1, Arrow('t', 7));
  Event(kEnd, 2, 1);
  Event(kNoType, 2, 1, Arrow('f', 7));  // on the slice that begins next
  Event(kInstant, 2, 1);
  Event(kNoType, 2, 1, Arrow('f', 7, true));
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.flow_arrows, 3u);
  Event(kBegin, 2, 1);
  Event(kEnd, 2, 1);
  const std::string sound = trace_;
  for (const char phase : {'s', 't', 'f'}) {
    trace_ = sound;
    Event(kNoType, 2, 1, Arrow(phase, 7, true));
    EXPECT_THAT(Checks(), ElementsAre("flow_enclosing")) << phase;
  }
}

TEST_F(TraceLegacy, ArrowsAreToldApartByTheirNames) {
  Event(kBegin, 2, 1);
  Event(kNoType, 2, 1, Arrow('s', 7, false, "a"));
  Event(kNoType, 2, 1, Arrow('s', 7, false, "b"));
  Event(kEnd, 2, 1);
  const std::string sound = trace_;
  EXPECT_THAT(Checks(), IsEmpty());
  trace_.clear();
  Row();
  Event(kBegin, 2, 1);
  Event(kNoType, 2, 1, Arrow('s', 7, false, "a"));
  Event(kNoType, 2, 1, Arrow('s', 7, false, "a"));
  Event(kNoType, 2, 1, Arrow('s', std::nullopt));
  Event(kEnd, 2, 1);
  EXPECT_THAT(Checks(), ElementsAre("flow_duplicate", "flow_legacy"));
}

TEST_F(TraceLegacy, TracksOfBeforeThereWereTracks) {
  const std::string sound = trace_;
  Event(kNoType, 2, 1, Phase('b'));  // an operation, by its id
  EXPECT_THAT(Checks(), ElementsAre("legacy"));
  EXPECT_EQ(Validate().findings.errors(), 0u);
  trace_ = sound;
  Event(kNoType, 0, 1, Phase('B'));
  EXPECT_THAT(Checks(), ElementsAre("legacy"));
  trace_ = sound;
  Event(kNoType, 2, 1, Phase('M'));  // a name, which is on no track
  EXPECT_THAT(Checks(), IsEmpty());
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
  EXPECT_THAT(Checks(), ElementsAre("legacy")) << "on its sequence's thread";
}

TEST_F(TraceLegacy, TimesOfBeforeThereWereClocks) {
  for (const uint32_t field : {1, 16}) {
    trace_.clear();
    Row();
    Packet([&](auto& packet) {
      packet.add_message(11, Message([&](auto& event) {
                           event.add_uint32(9, kInstant);
                           event.add_uint64(11, 2);
                           event.add_int64(field, 5);
                         }));
    });
    EXPECT_THAT(Checks(), ElementsAre("legacy")) << field;
  }
}

}  // namespace
}  // namespace neurontrace
