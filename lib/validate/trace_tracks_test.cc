// SPDX-License-Identifier: Apache-2.0
// Goal: each check of track descriptors finds what it is for, and the tree shows tracks as Perfetto
// does. Method: traces made by hand.
#include "lib/validate/trace_maker.h"
#include "lib/validate/trace_report.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TraceTracks : public TraceMaker {
 protected:
  void SetUp() override { Row(); }
};

TEST_F(TraceTracks, DescriptorsThatLackWhatTheyNeed) {
  const std::string sound = trace_;
  Describe([](auto& track) { track.add_string(2, "no uuid"); });
  EXPECT_THAT(Checks(), ElementsAre("track_uuid"));
  trace_ = sound;
  Describe([](auto& track) {
    track.add_uint64(1, 9);
    track.add_message(3, std::string());
  });
  EXPECT_THAT(Checks(), ElementsAre("track_pid"));
  trace_ = sound;
  Describe([](auto& track) {
    track.add_uint64(1, 9);
    track.add_message(4, Message([](auto& thread) { thread.add_int32(1, 1); }));
  });
  EXPECT_THAT(Checks(), ElementsAre("track_tid"));
}

TEST_F(TraceTracks, TheRoot) {
  Describe([](auto& track) {
    track.add_uint64(1, 0);
    track.add_uint32(19, 1);
  });
  EXPECT_THAT(Checks(), IsEmpty());
  Describe([](auto& track) {
    track.add_uint64(1, 0);
    track.add_uint64(5, 1);
  });
  EXPECT_THAT(Checks(), ElementsAre("track_root"));
}

TEST_F(TraceTracks, DescribedTwice) {
  Thread(2, 1, 100);
  EXPECT_THAT(Checks(), IsEmpty()) << "the same again is no harm";
  Plain(2, 1, "other properties");
  EXPECT_THAT(Checks(), ElementsAre("track_conflict"));
}

TEST_F(TraceTracks, OneTrackForAProcessAndForAThread) {
  const std::string sound = trace_;
  Process(3, 2);
  Thread(4, 2, 100);  // the same number in another process
  EXPECT_THAT(Checks(), IsEmpty());
  trace_ = sound;
  Process(3, 1);
  EXPECT_THAT(Checks(), ElementsAre("track_reuse"));
  trace_ = sound;
  Thread(3, 1, 100);
  EXPECT_THAT(Checks(), ElementsAre("track_reuse"));
}

TEST_F(TraceTracks, Ordering) {
  const auto ordered = [&](uint32_t ordering) {
    Describe([&](auto& track) {
      track.add_uint64(1, 3);
      track.add_uint32(11, ordering);
      track.add_uint32(15, 2);
    });
    return Checks();
  };
  const std::string sound = trace_;
  EXPECT_THAT(ordered(3), IsEmpty());
  trace_ = sound;
  EXPECT_THAT(ordered(4), ElementsAre("track_ordering"));
}

TEST_F(TraceTracks, Parents) {
  const std::string sound = trace_;
  Plain(4, 3, "child");  // its parent comes later
  Plain(3, 1, "parent");
  Event(kInstant, 4, 1);
  EXPECT_THAT(Checks(), IsEmpty());
  trace_ = sound;
  Plain(4, 3, "child");
  Event(kInstant, 4, 1);
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("track_parent"));
  EXPECT_THAT(
      report.findings.findings()[0].words,
      HasSubstr("is a child of track 3, which is never described: it is dropped with 1 event"));
  trace_ = sound;
  Plain(4, 3, "child");
  EXPECT_THAT(Validate().findings.findings()[0].words,
              HasSubstr("never described: it is dropped."));
  trace_ = sound;
  Plain(3, 4, "a");
  Plain(4, 3, "b");
  EXPECT_THAT(Checks(), ElementsAre("track_parent")) << "a circle";
  trace_ = sound;
  for (uint64_t uuid = 3; uuid < 105; ++uuid) Plain(uuid, uuid - 1, "deep");
  EXPECT_THAT(Checks(), ElementsAre("track_parent"));
}

TEST_F(TraceTracks, MergedWithSiblings) {
  Plain(3, 1, "same");
  Plain(4, 1, "same");
  Plain(5, 1, "other", false, 0);
  Plain(6, 2, "other", false, 0);  // of another parent
  EXPECT_THAT(Checks(), IsEmpty());
  Plain(7, 1, "other", false, 0);
  EXPECT_THAT(Checks(), ElementsAre("track_merged"));
}

TEST_F(TraceTracks, UsedBeforeTheyAreDescribedOrWithoutIt) {
  Event(kInstant, 3, 1);
  EXPECT_THAT(Checks(), ElementsAre("track_undescribed"));
  Plain(3, 1, "late");
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("track_late"));
  EXPECT_EQ(report.tracks[2].instants, 1u);
  EXPECT_EQ(report.findings.errors(), 0u);
}

TEST_F(TraceTracks, TheTreeStandsAsPerfettoShowsIt) {
  Process(10, 2, "second");
  Describe([](auto& track) {
    track.add_uint64(1, 11);
    track.add_string(2, "worker");
    track.add_uint64(5, 10);
    track.add_uint32(11, 3);  // children by rank
    track.add_uint32(15, 2);
    track.add_string(14, "rank 7");
  });
  const auto child = [&](uint64_t uuid, const std::string& name, int32_t rank) {
    Describe([&](auto& track) {
      track.add_uint64(1, uuid);
      track.add_string(2, name);
      track.add_uint64(5, 11);
      track.add_int32(12, rank);
      track.add_uint32(15, 2);
    });
  };
  child(12, "last", 2);
  child(13, "first", 1);
  Plain(14, 0, "bytes", true);
  Event(kBegin, 12, 1);
  Event(kEnd, 12, 1);
  Event(kBegin, 12, 1);
  Event(kInstant, 13, 1);
  Event(kCounter, 14, 1, [](auto& event) { event.add_int64(30, 5); });
  Event(kInstant, 99, 1);
  EXPECT_EQ(TrackTree(Validate()),
            "process\n"
            "  thread\n"
            "second\n"
            "  worker (rank 7)\n"
            "    first: 1 instant\n"
            "    last: 2 slices, 1 open\n"
            "bytes: 1 value\n"
            "track 99: 1 instant (not described)\n");
}

TEST_F(TraceTracks, ReportsTrackFindingsOnce) {
  for (uint64_t uuid = 10; uuid < 14; ++uuid) {
    Describe([&](auto& track) {
      track.add_uint64(1, uuid);
      track.add_string(2, "row " + std::to_string(uuid));
      track.add_uint64(5, 1);
      track.add_string(14, uuid < 13 ? "derived" : "measured");
      track.add_uint32(15, 2);
    });
  }
  EXPECT_EQ(TrackTree(Validate()),
            "process\n"
            "  thread\n"
            "  row 10 (derived)\n"
            "  row 11\n"
            "  row 12\n"
            "  row 13 (measured)\n");
}

TEST_F(TraceTracks, ACircleIsNoEndlessTree) {
  Plain(3, 4, "a");
  Plain(4, 3, "b");
  EXPECT_EQ(TrackTree(Validate()), "process\n  thread\n");
}

}  // namespace
}  // namespace neurontrace
