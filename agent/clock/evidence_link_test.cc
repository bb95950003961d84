// SPDX-License-Identifier: Apache-2.0
// Evidence is kept until its receipt is there, sent again in another call, and bounded; the test
// plays the aggregator.
#include "agent/clock/evidence_link.h"

#include <gtest/gtest.h>

#include <vector>

#include "lib/base/fake_task_runner.h"
#include "lib/clock/fake_host_clocks.h"
#include "lib/trace/clock_evidence_codec.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

// What the test sees of the calls.
struct ReportCalls {
  int begun = 0;
  int open = 0;
  std::vector<EvidenceBatch> sent;
  EvidenceStream::Listener* listener = nullptr;  // of the last call
};

class FakeEvidenceStream final : public EvidenceStream {
 public:
  explicit FakeEvidenceStream(ReportCalls& calls) : calls_(calls) { ++calls_.open; }
  ~FakeEvidenceStream() override { --calls_.open; }
  void Send(const EvidenceBatch& batch) override { calls_.sent.push_back(batch); }

 private:
  ReportCalls& calls_;
};

// Counts the aggregators that came and were lost.
class FakeAccessListener final : public EvidenceLink::AccessListener {
 public:
  void OnAccess(const std::optional<ProbeAccess>&) override { ++accesses; }
  void OnLost() override { ++losses; }

  int accesses = 0;
  int losses = 0;
};

class EvidenceLinkTest : public testing::Test {
 protected:
  EvidenceLinkTest() { link_.Start(); }

  void Put(size_t entries = 1) {
    ClockEvidence evidence;
    evidence.events.resize(entries, {ClockEventKind::kPause, host_.RawNs(), host_.RawNs(), 0});
    link_.Put(evidence);
  }
  // Has everything written that may be.
  void Write() {
    for (size_t sent = 0; sent != calls_.sent.size();) {
      sent = calls_.sent.size();
      calls_.listener->OnWritten();
    }
  }
  std::vector<uint64_t> Numbers() const {
    std::vector<uint64_t> numbers;
    for (const EvidenceBatch& batch : calls_.sent) numbers.push_back(batch.number);
    return numbers;
  }
  using NumberList = std::vector<uint64_t>;

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  FakeHostClocks host_;
  SeededRandom random_{1};
  ReportCalls calls_;
  FakeAccessListener access_;
  EvidenceLink link_{[this](EvidenceStream::Listener& listener) {
                       ++calls_.begun;
                       calls_.listener = &listener;
                       return std::make_unique<FakeEvidenceStream>(calls_);
                     },
                     host_, runner_, random_, access_};
};

TEST_F(EvidenceLinkTest, SendsInOrderOnceThereIsAccess) {
  Put();
  host_.AdvanceNs(7'000);
  Put();
  EXPECT_TRUE(calls_.sent.empty());
  calls_.listener->OnAccess(std::nullopt);
  EXPECT_EQ(access_.accesses, 1);
  EXPECT_EQ(Numbers(), NumberList{1}) << "one at a time";
  EXPECT_EQ(calls_.sent[0].age_ns, 7'000u);
  EXPECT_TRUE(DecodeClockEvidence(calls_.sent[0].observations).ok());
  Write();
  EXPECT_EQ(Numbers(), (NumberList{1, 2}));
  calls_.listener->OnReceipt(2);
  EXPECT_EQ(link_.backlog_batches(), 0u);
  EXPECT_EQ(link_.backlog_bytes(), 0u);
}

TEST_F(EvidenceLinkTest, ResendsUnacknowledgedBatches) {
  for (int i = 0; i < 4; ++i) Put();
  calls_.listener->OnAccess(std::nullopt);
  Write();
  calls_.listener->OnReceipt(2);
  calls_.listener->OnClosed(absl::UnavailableError("gone"));
  EXPECT_EQ(access_.losses, 1);
  runner_.RunUntilIdle();
  EXPECT_EQ(calls_.open, 0);
  Put();
  runner_.AdvanceNs(30'000'000'000);
  EXPECT_EQ(calls_.begun, 2);
  calls_.sent.clear();
  calls_.listener->OnAccess(std::nullopt);
  Write();
  EXPECT_EQ(Numbers(), (NumberList{3, 4, 5}));
}

TEST_F(EvidenceLinkTest, LimitsBatchesInFlight) {
  for (int i = 0; i < 30; ++i) Put();
  calls_.listener->OnAccess(std::nullopt);
  Write();
  EXPECT_EQ(calls_.sent.size(), 8u);
  calls_.listener->OnReceipt(5);
  Write();
  EXPECT_EQ(calls_.sent.size(), 13u);
}

TEST_F(EvidenceLinkTest, IgnoresReceiptsForUnsentBatches) {
  Put();
  Put();
  calls_.listener->OnAccess(std::nullopt);
  calls_.listener->OnReceipt(2);
  calls_.listener->OnReceipt(~uint64_t{0});
  EXPECT_EQ(link_.backlog_batches(), 2u);
}

TEST_F(EvidenceLinkTest, DropsOldestWhenDisconnected) {
  constexpr size_t kEntries = 4'000;
  for (int i = 0; i < 1'000; ++i) Put(kEntries);
  EXPECT_GT(link_.counters().batches_dropped, 100u);
  EXPECT_LE(link_.backlog_bytes(), limits::kClockBacklogBytesMax);
  EXPECT_EQ(link_.backlog_batches() + link_.counters().batches_dropped, 1'000u);
  calls_.listener->OnAccess(std::nullopt);
  EXPECT_EQ(calls_.sent[0].number, link_.counters().batches_dropped + 1);
}

TEST_F(EvidenceLinkTest, DropsBatchesInFlightWhenFull) {
  Put(1'000);
  calls_.listener->OnAccess(std::nullopt);
  for (int i = 0; i < 1'000; ++i) Put(4'000);
  calls_.listener->OnReceipt(1);
  Write();
  for (size_t i = 1; i < calls_.sent.size(); ++i) {
    EXPECT_GT(calls_.sent[i].number, calls_.sent[i - 1].number);
  }
  EXPECT_GT(calls_.sent.size(), 1u);
}

}  // namespace
}  // namespace neurontrace
