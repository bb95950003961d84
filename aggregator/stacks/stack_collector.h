// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/audit_log.h"
#include "aggregator/ingest/agent_order_sender.h"
#include "aggregator/ingest/stacks_report_handler.h"
#include "aggregator/session/agent_registry.h"
#include "aggregator/stacks/stack_files.h"
#include "aggregator/stacks/stack_tree.h"
#include "aggregator/watch/verdict_observer.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Asks agents for the stacks of workers, merges what they report, and keeps the result in the
// capture: for operators, for rules with `stacks`, and by itself for the suspects of a hang and
// some peers. One collection of a capture at a time. Every worker gets an outcome: that of its
// agent, or "no answer" after limits::kStacksAnswerNs. On the coordinator's sequence, except for
// Reports.
class StackCollector final : public StacksReportHandler, public VerdictObserver {
 public:
  // All of them must outlive this.
  struct Deps {
    const Clock& clock;
    TaskRunner& sequence;
    const AgentRegistry& registry;
    AgentOrderSender& orders;
    StackReportStore& files;
    AuditLog& audit;
    prometheus::Registry& metrics;
  };
  explicit StackCollector(const Deps& deps);
  StackCollector(const StackCollector&) = delete;
  StackCollector& operator=(const StackCollector&) = delete;

  // Asks for the stacks of these workers. Returns the report as it is now: all are pending, but for
  // those whose agent is not connected. Fails with INVALID_ARGUMENT without workers or for more
  // than limits::kStacksWorkersMax, and with FAILED_PRECONDITION while a collection of this capture
  // or too many others are under way.
  absl::StatusOr<v1::StacksReport> Collect(const CaptureId& capture, const std::string& reason,
                                           std::vector<WorkerIdentity> workers);
  // Does the same without a person who waits: writes it to the audit log, and logs why it fails.
  void CollectFor(const std::string& caller, const CaptureId& capture, const std::string& reason,
                  std::vector<WorkerIdentity> workers);

  // StacksReportHandler: ignores and counts what was not asked for.
  void OnStacks(const std::string& agent_id, const WorkerStacks& stacks) override;
  // VerdictObserver: collects for a hang.
  void OnVerdict(const LiveVerdict& verdict) override;

  // Returns the newest report of each job of a capture, the newest first; of an earlier run of the
  // aggregator, too. Any thread; waits for the disk.
  absl::StatusOr<std::vector<v1::StacksReport>> Reports(const CaptureId& capture);

 private:
  struct Collection {
    CaptureId capture;
    v1::StacksReport report;
    std::map<WorkerIdentity, uint32_t> members;
    std::vector<std::string> agents;  // of each member; empty: unknown
    StackTree tree;
  };
  struct Metrics {
    explicit Metrics(prometheus::Registry& registry);
    prometheus::Counter& collections;
    prometheus::Counter& refused;
    prometheus::Counter& ignored;
    prometheus::Counter& not_stored;
  };

  // Adds a member, and its worker to the order for its agent.
  void AddMember(const WorkerIdentity& worker, Collection& collection,
                 std::map<ConnectionId, std::vector<WorkerIdentity>>& orders) const;
  void SetOutcome(Collection& collection, uint32_t member, v1::StacksOutcome outcome,
                  const std::string& detail) const;
  // Ends a collection: members without an answer get an outcome, and the report is stored.
  void Finish(uint64_t number);
  // Makes the report visible to Reports.
  void Publish(const Collection& collection);

  const Deps deps_;
  Metrics metrics_;
  uint64_t last_ = 0;
  std::map<uint64_t, Collection> collections_;  // under way, by number
  Mutex mutex_;
  // The newest by capture and job; at most limits::kStacksReportsMax.
  std::map<std::pair<CaptureId, std::string>, v1::StacksReport> reports_ NT_GUARDED_BY(mutex_);
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
