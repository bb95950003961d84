// SPDX-License-Identifier: Apache-2.0
#include "aggregator/stacks/stack_collector.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <string>
#include <utility>
#include <vector>

#include "aggregator/stacks/stack_report.h"
#include "lib/base/fake_task_runner.h"
#include "lib/base/temporary_directory.h"
#include "lib/trace/stacks_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SentOrders final : public AgentOrderSender {
 public:
  void Send(ConnectionId connection, v1::AgentOrder order) override {
    sent.emplace_back(connection, std::move(order));
  }
  std::vector<std::pair<ConnectionId, v1::AgentOrder>> sent;
};

class KeptReports final : public StackReportStore {
 public:
  void Store(const CaptureId&, const v1::StacksReport& report, Done done) override {
    if (status.ok()) reports.push_back(report);
    done(status);
  }
  absl::StatusOr<std::vector<v1::StacksReport>> Load(const CaptureId&) override { return reports; }
  absl::Status status;
  std::vector<v1::StacksReport> reports;
};

class StackCollectorTest : public ::testing::Test {
 protected:
  // Two agents, each with two workers of one core.
  StackCollectorTest() {
    for (int i = 0; i < 2; ++i) {
      const std::string agent = fmt::format("agent-{}", i);
      const std::string instance = fmt::format("i-{}", i);
      EXPECT_TRUE(registry_
                      .Connect({.protocol_version = kProtocolVersion,
                                .agent_id = agent,
                                .instance_id = instance,
                                .boot_id = "boot"},
                               Connection(i), clock_.RealtimeNs())
                      .ok());
      for (int j = 0; j < 2; ++j) {
        WorkerInfo worker{.identity = Worker(2 * i + j), .job = "llama"};
        worker.cores.push_back({.rank_evidence = {{.worker_gid = 2 * i + j}}});
        EXPECT_TRUE(registry_.PutWorker(agent, worker).ok());
      }
    }
  }
  static ConnectionId Connection(int agent) { return static_cast<ConnectionId>(10 + agent); }
  static WorkerIdentity Worker(int gid) {
    return {.instance_id = fmt::format("i-{}", gid / 2),
            .boot_id = "boot",
            .pid = static_cast<uint32_t>(100 + gid),
            .start_time_ticks = 5};
  }
  static CaptureId Capture() { return *CaptureId::FromBytes(std::string(CaptureId::kBytes, 'c')); }

  void Answer(int gid, const std::vector<std::string>& functions, uint64_t collection = 1,
              const std::string& agent = "") {
    WorkerStacks stacks{.capture_id = Capture(),
                        .collection = collection,
                        .worker = Worker(gid),
                        .outcome = StacksOutcome::kTaken};
    StackThread& thread = stacks.threads.emplace_back();
    thread.os_thread_id = Worker(gid).pid;
    for (const std::string& function : functions) thread.frames.push_back({function, "a.py", 1});
    collector_.OnStacks(agent.empty() ? fmt::format("agent-{}", gid / 2) : agent, stacks);
  }
  v1::StacksReport Newest() {
    const auto reports = collector_.Reports(Capture());
    EXPECT_TRUE(reports.ok()) << reports.status();
    return reports.ok() && !reports->empty() ? reports->front() : v1::StacksReport();
  }
  static std::vector<std::string> LinesOf(const v1::StacksReport& report) {
    return {report.lines().begin(), report.lines().end()};
  }

  TemporaryDirectory directory_;
  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  AgentRegistry registry_;
  SentOrders orders_;
  KeptReports files_;
  prometheus::Registry metrics_;
  std::unique_ptr<AuditLog> audit_ = *AuditLog::Open(directory_.path() + "/audit", clock_);
  StackCollector collector_{{clock_, runner_, registry_, orders_, files_, *audit_, metrics_}};
};

TEST_F(StackCollectorTest, MergesWhatAllAgentsReport) {
  const auto asked =
      collector_.Collect(Capture(), "me", {Worker(0), Worker(1), Worker(2), Worker(3)});
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->pending(), 4u);
  ASSERT_THAT(orders_.sent, SizeIs(2));
  EXPECT_EQ(orders_.sent[1].first, Connection(1));
  EXPECT_EQ(orders_.sent[1].second.collect_stacks().workers_size(), 2);
  for (const int gid : {3, 0, 1}) Answer(gid, {"main", "all_reduce"});
  EXPECT_EQ(Newest().pending(), 1u);
  EXPECT_THAT(files_.reports, IsEmpty());
  Answer(2, {"main", "load", "read"});
  const v1::StacksReport report = Newest();
  EXPECT_EQ(report.pending(), 0u);
  EXPECT_EQ(report.job(), "llama");
  EXPECT_THAT(LinesOf(report),
              ElementsAre("3 of 4: gid 0-1,3: main (a.py) > all_reduce (a.py)",
                          "odd: gid 2 after main (a.py): load (a.py) > read (a.py)"));
  ASSERT_THAT(files_.reports, SizeIs(1));
  EXPECT_EQ(files_.reports[0].nodes_size(), 4);
}

TEST_F(StackCollectorTest, EveryWorkerGetsAnOutcome) {
  registry_.Disconnect("agent-1", Connection(1), clock_.RealtimeNs());
  registry_.RemoveWorker("agent-0", Worker(1));
  ASSERT_TRUE(collector_.Collect(Capture(), "me", {Worker(0), Worker(1), Worker(2)}).ok());
  EXPECT_EQ(Newest().pending(), 1u);
  runner_.AdvanceNs(limits::kStacksAnswerNs);
  const v1::StacksReport report = Newest();
  EXPECT_EQ(report.pending(), 0u);
  EXPECT_EQ(report.members(0).outcome(), v1::STACKS_OUTCOME_NO_ANSWER);
  EXPECT_EQ(report.members(1).outcome(), v1::STACKS_OUTCOME_ENDED);
  EXPECT_EQ(report.members(2).outcome(), v1::STACKS_OUTCOME_NO_ANSWER);
  EXPECT_EQ(report.members(2).detail(), "its agent is not connected");
  ASSERT_THAT(LinesOf(report), SizeIs(2));
  EXPECT_THAT(report.lines(0), HasSubstr("not taken: i-0 pid 101: ended"));
  Answer(0, {"main"});
  EXPECT_EQ(Newest().members(0).outcome(), v1::STACKS_OUTCOME_NO_ANSWER) << "too late";
}

TEST_F(StackCollectorTest, IgnoresWhatWasNotAskedFor) {
  ASSERT_TRUE(collector_.Collect(Capture(), "me", {Worker(0), Worker(1)}).ok());
  Answer(0, {"main"}, 1, "agent-1");
  Answer(2, {"main"});
  Answer(0, {"main"}, 7);
  EXPECT_EQ(Newest().pending(), 2u);
  Answer(0, {"main"});
  Answer(0, {"main", "again"});
  EXPECT_EQ(Newest().pending(), 1u);
  EXPECT_EQ(Newest().nodes_size(), 1);
}

TEST_F(StackCollectorTest, RefusesTooMuch) {
  EXPECT_EQ(collector_.Collect(Capture(), "me", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  std::vector<WorkerIdentity> many(limits::kStacksWorkersMax + 1, Worker(0));
  for (size_t i = 0; i < many.size(); ++i) many[i].pid = static_cast<uint32_t>(i + 1);
  EXPECT_EQ(collector_.Collect(Capture(), "me", many).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(collector_.Collect(Capture(), "me", {Worker(0)}).ok());
  EXPECT_EQ(collector_.Collect(Capture(), "me", {Worker(1)}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  Answer(0, {"main"});
  EXPECT_TRUE(collector_.Collect(Capture(), "me", {Worker(1)}).ok()) << "the first is over";
}

TEST_F(StackCollectorTest, CollectsForAHangWithPeers) {
  LiveVerdict verdict{.capture = Capture(), .job = "llama", .kind = "slow-core", .text = "slow"};
  verdict.suspects = {{Worker(2), 2}};
  verdict.peers = {{Worker(0), 0}, {Worker(3), 3}};
  collector_.OnVerdict(verdict);
  EXPECT_THAT(orders_.sent, IsEmpty());
  verdict.kind = "hang-not-entered";
  collector_.OnVerdict(verdict);
  EXPECT_THAT(orders_.sent, SizeIs(2));
  EXPECT_EQ(Newest().members_size(), 3);
}

TEST_F(StackCollectorTest, ReportsAFileThatIsNotStored) {
  files_.status = absl::ResourceExhaustedError("full");
  ASSERT_TRUE(collector_.Collect(Capture(), "me", {Worker(0)}).ok());
  Answer(0, {"main"});
  EXPECT_EQ(Newest().problem(), "full");
}

}  // namespace
}  // namespace neurontrace
