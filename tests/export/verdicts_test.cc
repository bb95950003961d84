// SPDX-License-Identifier: Apache-2.0
// Goal: each format that has verdicts names the rank that is slow and no other, refuses what it
// cannot judge, and says when there is nobody to name. Method: a job in memory with and without a
// slow rank, exported and read back. Which rank is named when is tested in aggregator/insight.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "aggregator/export/json/json_text.h"
#include "aggregator/export/summary/text_table.h"
#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/straggler_fixture.h"

namespace neurontrace {
namespace {

using pftrace_check::Report;
using pftrace_check::Slice;
using pftrace_check::Track;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Lt;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

class VerdictsTest : public StragglerFixture {
 protected:
  static constexpr std::string_view kSuffix = " verdicts (derived)";

  // Of the whole trace, and of single cores.
  static std::vector<Track> VerdictTracks(const Report& report) {
    std::vector<Track> tracks;
    for (const Track& track : report.tracks) {
      if (track.name.ends_with(kSuffix)) tracks.push_back(track);
    }
    return tracks;
  }
  static std::vector<std::string> Answers(const Report& report) {
    std::vector<std::string> names;
    for (const Track& track : report.tracks) {
      if (!track.row.starts_with("verdicts (derived)")) continue;
      for (const Slice& instant : track.instants) names.push_back(instant.name);
    }
    return names;
  }
  Report Trace(const ExportRequest& request = {}) {
    const std::string trace = Export("perfetto", request);
    ExpectSound(trace);
    Report report = pftrace_check::Check(trace);
    EXPECT_THAT(report.errors, IsEmpty());
    return report;
  }
  // The members of summary-json between a key and the key that follows it.
  static std::string Between(const std::string& json, const std::string& key,
                             const std::string& next) {
    const size_t begin = json.find("\"" + key + "\":");
    const size_t end = json.find(",\"" + next + "\":", begin);
    EXPECT_NE(begin, std::string::npos) << json;
    EXPECT_NE(end, std::string::npos) << json;
    if (begin == std::string::npos || end == std::string::npos) return {};
    return json.substr(begin, end - begin);
  }
  static std::string OneLine(const std::string& text) {
    std::string line;
    for (const char c : text) {
      const bool is_space = c == ' ' || c == '\n';
      if (!is_space || (!line.empty() && line.back() != ' ')) line += is_space ? ' ' : c;
    }
    return line;
  }
};

TEST_F(VerdictsTest, ASummaryBeginsWithTheSlowRank) {
  AddJob(kSlow);
  const std::string text = Export("summary-text");
  ASSERT_TRUE(text.starts_with("Answer\n")) << text;
  const std::string answer = OneLine(text.substr(0, text.find("\ncapture ")));
  EXPECT_THAT(answer, AllOf(HasSubstr(std::to_string(kSlow)), HasSubstr("device"),
                            HasSubstr("ruled out"), Not(HasSubstr("Nobody to name"))));
  EXPECT_LT(text.find("Answer\n"), text.find("\nArrivals: "));
  EXPECT_THAT(text, HasSubstr("Who causes it: see the answer at the top."));
}

TEST_F(VerdictsTest, ASummaryForProgramsHasTheFiguresOfTheSlowRank) {
  AddJob(kSlow);
  const std::string json = Export("summary-json");
  ASSERT_TRUE(IsJson(json)) << json;
  EXPECT_THAT(Between(json, "judged", "verdicts"),
              AllOf(HasSubstr("\"is_judged\":true"), HasSubstr("\"cores\":8,"),
                    HasSubstr("\"cores_judged\":8,"), HasSubstr("\"rule_version\":\"20")));
  const std::string verdicts = Between(json, "verdicts", "refusals");
  EXPECT_THAT(verdicts,
              AllOf(HasSubstr("\"kind\":\"slow-core\",\"phase\":\"device\""),
                    HasSubstr(fmt::format("\"streams\":[{}]", kSlow)), HasSubstr("\"peers\":7"),
                    HasSubstr("\"ruled_out\":["), HasSubstr("\"step_ns\":10000000")));
  EXPECT_EQ(std::count(verdicts.begin(), verdicts.end(), '\n'), 1) << "one row: " << verdicts;
  // Both forms have the same line.
  const std::string_view key = "\"text\":\"";
  const size_t begin = verdicts.rfind(key) + key.size();
  const std::string line = verdicts.substr(begin, verdicts.find('"', begin) - begin);
  EXPECT_THAT(OneLine(Export("summary-text")), HasSubstr(OneLine(line)));
}

TEST_F(VerdictsTest, WithoutASlowRankNobodyIsNamed) {
  AddJob(std::nullopt);
  EXPECT_THAT(OneLine(Export("summary-text")), HasSubstr("Nobody to name"));
  EXPECT_EQ(Between(Export("summary-json"), "verdicts", "refusals"), "\"verdicts\":[]");
  const Report report = Trace();
  EXPECT_THAT(VerdictTracks(report), IsEmpty());
  EXPECT_THAT(Answers(report), ElementsAre("judged"));
}

TEST_F(VerdictsTest, ATraceHasTheVerdictBesideTheRowsOfTheSlowRank) {
  AddJob(kSlow);
  const Report report = Trace();
  const std::vector<Track> tracks = VerdictTracks(report);
  ASSERT_THAT(tracks, SizeIs(1));
  EXPECT_EQ(tracks[0].name, fmt::format("gid{}-nc0 verdicts (derived)", kSlow));
  EXPECT_EQ(tracks[0].parent, fmt::format("worker gid{}", kSlow));
  ASSERT_THAT(tracks[0].slices, SizeIs(1));
  const Slice& slice = tracks[0].slices[0];
  EXPECT_EQ(slice.name, "slow-core (device)");
  EXPECT_THAT(slice.start_ns, AllOf(Ge(kBase), Lt(kBase + kExecutions * kStepNs)));
  EXPECT_GT(slice.end_ns, slice.start_ns + kStepNs);
  EXPECT_THAT(
      slice.arguments,
      AllOf(Contains(Pair("kind", "slow-core")), Contains(Pair("phase", "device")),
            Contains(Pair("worker_gid", std::to_string(kSlow))), Contains(Pair("suspects", "1")),
            Contains(Pair("peers", "7")), Contains(Key("ratio")), Contains(Key("text")),
            Contains(Key("ruled_out")), Contains(Pair("derived", "true"))));
  EXPECT_THAT(Answers(report), ElementsAre("judged"));
}

TEST_F(VerdictsTest, AnExportThatLeavesOutEventsJudgesNothing) {
  AddJob(kSlow);
  ExportRequest request;
  request.filter.event_types = *EventFilter::Parse({"nrt_execute", "nc_exec_running"});
  EXPECT_THAT(OneLine(Export("summary-text", request)), HasSubstr("not judged: "));
  EXPECT_THAT(Export("summary-json", request),
              AllOf(HasSubstr("\"is_judged\":false"), HasSubstr("\"verdicts\":[]")));
  const Report report = Trace(request);
  EXPECT_THAT(VerdictTracks(report), IsEmpty());
  EXPECT_THAT(Answers(report), ElementsAre("not judged"));
}

TEST_F(VerdictsTest, ARankAloneIsNotNamedAndTheAnswerIsOfThatRankOnly) {
  AddJob(kSlow);
  ExportRequest request;
  request.filter.worker_gids = {{kSlow, kSlow}};
  const std::string json = Export("summary-json", request);
  EXPECT_EQ(Between(json, "verdicts", "refusals"), "\"verdicts\":[]");
  EXPECT_THAT(Between(json, "judged", "verdicts"), HasSubstr("the export leaves out ranks"));
  EXPECT_THAT(VerdictTracks(Trace(request)), IsEmpty());
}

TEST_F(VerdictsTest, RanksThatLostEventsAreRefused) {
  AddJob(kSlow);
  source_.stream(kSlow).losses = {{LossPlace::kRuntimeRing, LossReason::kOverwritten, 12, false,
                                   kBase + kStepNs, kBase + kExecutions * kStepNs, "test"}};
  const std::string json = Export("summary-json");
  EXPECT_EQ(Between(json, "verdicts", "refusals"), "\"verdicts\":[]");
  EXPECT_THAT(Between(json, "refusals", "event_types"),
              AllOf(HasSubstr(fmt::format("\"reason\":\"losses\",\"streams\":[{}]", kSlow)),
                    HasSubstr("\"missing\":\"")));
  const Report report = Trace();
  EXPECT_THAT(VerdictTracks(report), IsEmpty());
  EXPECT_THAT(Answers(report), Contains("refused (losses)"));
}

TEST_F(VerdictsTest, TheIndexOfPartsHasTheAnswerOfTheWhole) {
  AddJob(kSlow);
  // Enough for more than one part.
  const uint32_t file = AddFile("i-a", "worker0.pt.trace.json");
  for (uint64_t i = 0; i < 30'000; ++i) {
    script_.Complete("cpu_op", kBase + i * 13'000, 0, 5,
                     {{"name", std::string("aten::mm"), KeyScope::kTop},
                      {"pid", uint64_t{4711}, KeyScope::kTop},
                      {"dur_ns", uint64_t{500}, KeyScope::kTop}});
    if (i % 1'000 == 999) Close(file);
  }
  for (const bool by_worker : {false, true}) {
    StringFiles files;
    const auto summary =
        ExportCapture(source_, **FindExportFormat("perfetto"),
                      {.max_file_bytes = 1 << 20, .split_by_worker = by_worker}, files, {});
    ASSERT_TRUE(summary.ok()) << summary.status();
    ASSERT_GT(files.files.size(), 2u);
    for (const auto& [name, text] : files.files) {
      if (name.ends_with(".json")) {
        EXPECT_TRUE(IsJson(text)) << text;
        EXPECT_THAT(text, AllOf(HasSubstr("\"judged\": \""), HasSubstr("\"refusals\": [")));
        EXPECT_THAT(text, Not(HasSubstr("\"verdicts\": []"))) << by_worker;
      } else {
        EXPECT_THAT(text, Not(HasSubstr(kSuffix))) << name;
      }
    }
  }
}

}  // namespace
}  // namespace neurontrace
