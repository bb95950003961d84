// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/access/audit_log.h"
#include "aggregator/ingest/agent_connections.h"
#include "aggregator/ingest/trigger_report_handler.h"
#include "aggregator/session/capture_observer.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/stacks/stack_collector.h"
#include "aggregator/triggers/trigger_captures.h"
#include "aggregator/triggers/trigger_engine.h"
#include "aggregator/triggers/worker_silence.h"
#include "aggregator/watch/verdict_observer.h"
#include "lib/base/clock.h"
#include "lib/base/reloaded_file.h"
#include "lib/base/task_runner.h"
#include "lib/health/post_page.h"
#include "lib/wire/trigger_posts.h"
#include "neurontrace/v1/agent_gateway.pb.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// Everything about triggers in one aggregator: reads the rule file, sends rules to agents, receives
// what fires, starts captures and answers operators. On the coordinator's sequence, except for
// ReloadFile and the answers to POSTs.
class TriggerService final : public TriggerReportHandler,
                             public CaptureObserver,
                             public VerdictObserver,
                             private TriggerCaptures,
                             private PostHandler {
 public:
  // The rule file as last read: loaded when the service is made, and again when it changes.
  using RuleFile = ReloadedFile<std::vector<TriggerRule>>;
  // All of them must outlive the service.
  struct Deps {
    const Clock& clock;
    TaskRunner& sequence;
    Coordinator& coordinator;
    AgentConnections& connections;
    prometheus::Registry& registry;
    AuditLog& audit;
    StackCollector& stacks;
  };

  // Reads the rule file. Returns null for an empty path: there are no rules. Fails with the errors
  // of the file.
  static absl::StatusOr<std::unique_ptr<RuleFile>> OpenRules(const std::string& path,
                                                             const Clock& clock);
  // `rules` may be null. `posts` says from where POST requests may fire a rule.
  TriggerService(std::unique_ptr<RuleFile> rules, TriggerPosts posts, const Deps& deps);

  // Takes a stored capture. All are passed before Begin, which puts the rules into force.
  void Restore(const CaptureRecord& record) { engine_.Restore(record); }
  // Called once, on the thread that owns the sequence before it runs.
  void Begin() { Apply(std::move(rules_)); }
  // Judges silence and publishes metrics, at most twice a second. Called several times a second.
  void Tick();
  // Reads the file again if it has changed, or in any case with `force`. Called after Begin on one
  // thread other than the sequence, because file systems can hang.
  void ReloadFile(bool force);
  // CaptureObserver: learns of captures that did not begin.
  void OnCaptureChanged(const CaptureRecord& record) override;

  // VerdictObserver: fires the rules that wait for this kind of verdict.
  void OnVerdict(const LiveVerdict& verdict) override;

  // Returns the rules that agents evaluate with their version, which grows with every change. Like
  // the next two, of TriggerReportHandler and for agents.
  v1::AgentOrder RulesOrder() const override;
  // Counts an agent's report for its own workers only; drops and counts any other.
  void OnFired(const std::string& agent_id, const TriggerFired& fired) override;
  void OnWorkerStatus(const std::string& agent_id, const CaptureWorkerStatus& status) override;

  // Serve operators. Fire does not wait for further reports, and its reply has either a capture or
  // a problem.
  v1::ListTriggersReply List() const;
  v1::FireTriggerReply Fire(const v1::FireTriggerRequest& request);

  // Returns the page POST /triggers/NAME, which refers to this service.
  PostPage MakePostPage();

 private:
  // Implement TriggerCaptures with the coordinator. Start writes the capture to the audit log,
  // whether it succeeds or not.
  absl::StatusOr<CaptureId> Start(const CaptureSpec& spec) override;
  bool IsRunning(const CaptureId& capture) const override {
    return deps_.coordinator.FindRunning(capture) != nullptr;
  }
  CaptureId FlightRecorderOf(const CaptureSpec& spec) const override;
  CaptureId RecorderOf(const CaptureSpec& spec) const override;
  Continuous ContinuousOf(const CaptureSpec& spec) const override;
  void CollectStacks(const CaptureId& capture, const TriggerRule& rule, const std::string& cause,
                     std::vector<WorkerIdentity> workers) override {
    deps_.stacks.CollectFor("rule " + rule.name, capture, cause, std::move(workers));
  }
  // Puts the rules into force here and sends them to all connected agents.
  void Apply(std::vector<TriggerRule> rules);
  // Returns whether a capture that `fits` records workers of the rule's job.
  bool Records(const TriggerRule& rule, const std::function<bool(const CaptureSpec&)>& fits) const;
  // Returns why the rule cannot fire at present; empty: it can.
  std::string CannotFireReason(const TriggerRule& rule) const;
  // Fires kSilentCore rules. Takes time proportional to the number of watched workers.
  void CheckSilentWorkers(uint64_t now_ns);
  // PostHandler. Called on other threads; waits for the sequence.
  PostAnswer TakePost(const PostRequest& request) override;
  // Handles one POST on the sequence: 202 if the rule fired, 404 for a rule that no POST can fire,
  // 429 with a delay while it is limited.
  PostAnswer Post(const PostRequest& request);
  void PublishMetrics();

  const Deps deps_;
  const bool posts_from_anywhere_;
  // Shown to operators while the earlier rules stay in effect.
  std::string file_problem_;  // of the current file
  std::vector<TriggerRule> rules_;
  // Grows with every change; agents get it with the rules.
  uint64_t version_ = 0;
  TriggerEngine engine_;
  WorkerSilence silence_;
  uint64_t judged_ns_ = 0;   // monotonic
  uint64_t judging_ns_ = 0;  // total time spent on judging
  uint64_t foreign_ = 0;     // reports by agents about workers that they do not have

  struct Metrics {
    explicit Metrics(prometheus::Registry& registry);
    prometheus::Gauge& rules;
    prometheus::Gauge& file_good;
    prometheus::Counter& fired;
    prometheus::Counter& unknown;
    prometheus::Counter& foreign;
    prometheus::Counter& not_watched;
    prometheus::Counter& judging_seconds;
    std::array<prometheus::Counter*, kTriggerSuppressions> suppressed{};
  };
  Metrics metrics_;
  const std::unique_ptr<RuleFile> file_;  // null: no rules; used on ReloadFile's thread
};

}  // namespace neurontrace
