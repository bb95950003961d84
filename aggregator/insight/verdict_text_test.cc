// SPDX-License-Identifier: Apache-2.0
// Goal: each verdict and refusal is one line that begins with the answer, and names from outside
// cannot break it. Method: reports by hand.
#include "aggregator/insight/verdict_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class VerdictTextTest : public ::testing::Test {
 protected:
  VerdictTextTest() {
    for (uint32_t core = 0; core < 64; ++core) {
      cores_.push_back({.job = "llama",
                        .instance_id = core < 32 ? "i-0abc" : "i-0def",
                        .worker_gid = 400 + core,
                        .nc_idx = core % 32});
    }
    verdict_ = {.kind = VerdictKind::kSlowCore,
                .suspects = {17},
                .phase = InsightPhase::kDevice,
                .role = "llama70b/pp2",
                .peers = 63,
                .ratio = 1.312,
                .z = 41.2,
                .executions = 214,
                .judged = 214,
                .cost_ns = 118'200'000,
                .step_ns = 501'000'000,
                .waiting = 1023,
                .exec_id = 9,
                .op_id = 17};
  }

  std::vector<InsightCore> cores_;
  Verdict verdict_;
};

TEST_F(VerdictTextTest, ReportsRankPhaseRatioAndCost) {
  EXPECT_EQ(
      VerdictText(verdict_, cores_),
      "SLOW slow-core: rank 417 (i-0abc nc 17), device work of llama70b/pp2: own work 1.31 times "
      "the median of its 63 peers, in 214 of 214 executions; costs 118 ms of a 501 ms step; 1,023 "
      "cores wait in collective op 17 of execution 9");
}

TEST_F(VerdictTextTest, TheSumOfAllStepsIsNamedIfItIsKnown) {
  verdict_.total_cost_ns = 25'252'000'000;
  EXPECT_THAT(VerdictText(verdict_, cores_),
              HasSubstr("costs 118 ms of a 501 ms step, 25.25 s in all; 1,023 cores wait"));
}

TEST_F(VerdictTextTest, ARefusalHasItsTimeAndItsWholeSentence) {
  Refusal refusal{.reason = RefusalReason::kLosses, .cores = {3}, .count = 2};
  refusal.missing = std::string(200, 'x');
  EXPECT_EQ(RefusalText(refusal, cores_),
            "REFUSED losses: rank 403 (i-0abc nc 3) (2 lost events): " + refusal.missing);
  refusal.refused_ns = 1'200'000'000;
  refusal.judged_ns = 30'000'000'000;
  EXPECT_THAT(RefusalText(refusal, cores_),
              HasSubstr("(2 lost events), 1.20 s of 30.00 s not judged: x"));
}

// One fault may have more suspects in a later window; another collective is another fault.
TEST_F(VerdictTextTest, KeysAreThoseOfOneFault) {
  const std::string key = VerdictKey(verdict_, cores_);
  verdict_.op_id = 18;
  EXPECT_NE(VerdictKey(verdict_, cores_), key);
  verdict_.op_id = 17;
  verdict_.suspects = {18};
  EXPECT_NE(VerdictKey(verdict_, cores_), key);
  verdict_.kind = VerdictKind::kSlowHost;
  const std::string host = VerdictKey(verdict_, cores_);
  verdict_.suspects = {17, 18, 19};
  EXPECT_EQ(VerdictKey(verdict_, cores_), host);
  verdict_.suspects = {40};
  EXPECT_NE(VerdictKey(verdict_, cores_), host);
}

TEST_F(VerdictTextTest, JoinsRanksOfAnInstance) {
  verdict_.kind = VerdictKind::kSlowHost;
  verdict_.suspects = {0, 1, 2, 5, 8, 9};
  EXPECT_THAT(VerdictText(verdict_, cores_),
              HasSubstr("SLOW slow-host: ranks 400-402, 405, 408-409 of i-0abc, device work"));
  EXPECT_THAT(VerdictText(verdict_, cores_), HasSubstr("the median of their 63 peers"));
  verdict_.suspects = {0, 1, 40};
  EXPECT_THAT(VerdictText(verdict_, cores_), HasSubstr("ranks 400-401, 440, device work"));
}

TEST_F(VerdictTextTest, ShortensLongListsWithTheirCount) {
  verdict_.suspects.clear();
  for (uint32_t core = 0; core < 24; core += 2) verdict_.suspects.push_back(core);
  EXPECT_THAT(VerdictText(verdict_, cores_), HasSubstr("412, 414 and 4 more of i-0abc"));
}

TEST_F(VerdictTextTest, NamesThePlaceOfACoreWithoutARank) {
  cores_[17].worker_gid = -1;
  EXPECT_THAT(VerdictText(verdict_, cores_), HasSubstr("SLOW slow-core: i-0abc nc 17, "));
}

TEST_F(VerdictTextTest, IsOneLineOfPlainTextForEveryKind) {
  cores_[17].instance_id = "i-\x1b[2J\n";
  verdict_.role = "model\r\nSLOW rank 1";
  verdict_.ruled_out = {{"host\n", 0.99, {}}, {"clock", 0, "bound\t9 us"}};
  for (int kind = 1; kind <= 14; ++kind) {
    verdict_.kind = static_cast<VerdictKind>(kind);
    const std::string text = VerdictText(verdict_, cores_) + RuledOutText(verdict_);
    for (const char c : text) EXPECT_GE(c, ' ') << text;
    EXPECT_THAT(text, HasSubstr(VerdictKindName(verdict_.kind)));
    EXPECT_THAT(text, Not(HasSubstr("likely")));
  }
}

TEST_F(VerdictTextTest, NoRankIsNamedForWhatIsUneven) {
  verdict_.suspects.clear();
  for (const VerdictKind kind : {VerdictKind::kUnevenRole, VerdictKind::kUnevenData}) {
    verdict_.kind = kind;
    const std::string text = VerdictText(verdict_, cores_);
    EXPECT_THAT(text, HasSubstr("no rank is at fault"));
    EXPECT_THAT(text, Not(HasSubstr("417")));
  }
}

TEST_F(VerdictTextTest, HangsReportTheirLengthAndTheCoresInside) {
  verdict_.kind = VerdictKind::kHangNotEntered;
  verdict_.cost_ns = 12'340'000'000;
  EXPECT_EQ(VerdictText(verdict_, cores_),
            "HUNG hang-not-entered: rank 417 (i-0abc nc 17) did not enter collective op 17 of "
            "execution 9 for 12.34 s; 1,023 other cores inside");
  verdict_.is_barrier = true;
  EXPECT_THAT(VerdictText(verdict_, cores_), HasSubstr("did not enter a barrier of execution 9"));
}

TEST_F(VerdictTextTest, ListsWhatWasRuledOut) {
  EXPECT_EQ(RuledOutText(verdict_), "");
  verdict_.ruled_out = {{"host", 0.99, {}}, {"clock", 0, "bound 9 us, lateness 118 ms"}};
  EXPECT_EQ(RuledOutText(verdict_), "ruled out: host 0.99x; clock (bound 9 us, lateness 118 ms)");
}

TEST_F(VerdictTextTest, RefusalsReportWhatIsMissing) {
  const Refusal refusal = {.reason = RefusalReason::kLosses,
                           .cores = {32, 33},
                           .count = 2,
                           .missing = "Events were lost; judge a window without the loss."};
  EXPECT_EQ(
      RefusalText(refusal, cores_),
      "REFUSED losses: ranks 432-433 of i-0def (2 lost events): Events were lost; judge a window "
      "without the loss.");
}

TEST_F(VerdictTextTest, NobodyToNameHasItsReason) {
  InsightReport report = {.cores = 64,
                          .cores_judged = 64,
                          .executions = 12'840,
                          .step_ns = 501'000'000,
                          .exposed_wait_ns = 900'000,
                          .is_below_cost = true};
  EXPECT_EQ(ReportText(report, cores_),
            "Nobody to name: cores wait 900 us of a 501 ms step, less than 5 % or 1 ms; 64 of 64 "
            "cores judged in 12,840 executions");
  report.is_below_cost = false;
  EXPECT_THAT(ReportText(report, cores_), HasSubstr("nobody's own work explains it"));
  report.cores_judged = 0;
  EXPECT_THAT(ReportText(report, cores_), HasSubstr("Nothing was judged"));
  report.verdicts.push_back(verdict_);
  report.refusals.resize(2);
  EXPECT_THAT(ReportText(report, cores_), HasSubstr("1 verdict, 2 refusals"));
}

}  // namespace
}  // namespace neurontrace
