// SPDX-License-Identifier: Apache-2.0
#include "simulate/replay_agent.h"

#include <utility>

#include "agent/clock/clock_collector.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

Spool::Options SpoolOptions(const ReplayAgent::Options& options) {
  Spool::Options spool;
  spool.directory = options.spool_directory;
  spool.agent_id = options.info.agent_id;
  spool.boot_id = options.info.boot_id;
  return spool;
}

}  // namespace

ReplayAgent::ReplayAgent(const Shared& shared, const Connectors& connectors, const Options& options)
    : runner_(shared.runner),
      spool_(SpoolOptions(options), shared.files, shared.io, shared.runner, shared.clock,
             shared.random),
      queue_(&spool_),
      uploader_(queue_, connectors.upload, shared.runner, shared.clock, shared.random),
      control_(options.info, connectors.control, shared.clock, shared.runner, shared.random, *this),
      host_(shared.plan.seed, options.instance, options.reference),
      evidence_(connectors.evidence, host_, shared.runner, shared.random, *this),
      source_({.plan = shared.plan,
               .rows = shared.rows,
               .shapes = shared.shapes,
               .host = host_,
               .runner = shared.runner,
               .sink = queue_,
               .listener = control_,
               .waiting = shared.waiting},
              {.agent_id = options.info.agent_id,
               .boot_id = options.info.boot_id,
               .job = options.job,
               .ranks = options.ranks}) {
  control_.AddSource(source_);
}

ReplayAgent::~ReplayAgent() = default;

absl::Status ReplayAgent::Start() {
  RETURN_IF_ERROR(queue_.Recover());
  source_.Start();
  control_.Start();
  evidence_.Start();
  SendEvidencePeriodically();
  return absl::OkStatus();
}

void ReplayAgent::Take(ReplayBatch batch) {
  is_last_ |= batch.is_last;
  source_.Take(std::move(batch));
  if (is_last_) SendEvidence();
}

bool ReplayAgent::IsFinished(const CaptureId& capture_id) const {
  for (const ControlSession::CaptureState& capture : control_.CaptureStates()) {
    if (capture.id == capture_id) return capture.finished;
  }
  return true;
}

ReplayAgent::State ReplayAgent::state() const {
  State state;
  state.is_welcome = control_.welcomed();
  state.has_sent_all = queue_.chunks() == 0 && evidence_.backlog_batches() == 0;
  state.is_silent = source_.is_silent();
  if (!spool_.health().ok()) state.problem = std::string(spool_.health().message());
  state.played = source_.counts();
  state.events_stored = queue_.counters().events_stored;
  queue_.losses().ForEach(LossPlace::kStore, [&](LossPlace place, LossReason, uint64_t events) {
    uint64_t& sum = place == LossPlace::kWireRefusal ? state.events_refused : state.events_lost;
    sum += events;
  });
  return state;
}

// Each batch of evidence repeats nothing, so an empty one is not sent.
void ReplayAgent::SendEvidence() {
  const ClockEvidence evidence = host_.TakeEvidence(is_last_);
  if (!evidence.snapshots.empty()) evidence_.Put(evidence);
}

void ReplayAgent::SendEvidencePeriodically() {
  SendEvidence();
  runner_.PostDelayedTask(weak_tasks_.Wrap([this] { SendEvidencePeriodically(); }),
                          ClockCollector::kBatchNs);
}

// --- Calls and questions of the control session --------------------------------------------------

void ReplayAgent::OnWelcome(const std::set<CaptureId>& captures) {
  uploader_.ForgetAllBut(captures);
  uploader_.SetEnabled(true);
}

absl::Status ReplayAgent::CheckAggregator(const std::string& aggregator_id) {
  const std::string& known = spool_.aggregator_id();
  if (!known.empty() && known != aggregator_id && queue_.chunks() > 0) {
    return FailedPrecondition(
        "connected to aggregator {}, but {} chunks are for aggregator {}, which has a different "
        "store",
        aggregator_id, queue_.chunks(), known);
  }
  if (known != aggregator_id) spool_.RecordAggregator(aggregator_id);
  return absl::OkStatus();
}

bool ReplayAgent::WasWronglyResumed(const CaptureResume& resume) {
  return queue_.WasWrong(resume.capture_id, resume.cursors);
}

void ReplayAgent::OnCaptureRunning(const CaptureId& capture_id, const CaptureSpec& spec) {
  queue_.RecordRunning(capture_id, spec);
}

void ReplayAgent::OnCaptureOver(const CaptureId& capture_id) {
  uploader_.ForgetCapture(capture_id);
}

void ReplayAgent::AddSpoolCursors(CaptureResume& resume) {
  uploader_.HandleCursors(resume.capture_id, resume.cursors);
  queue_.MergeCursors(resume.capture_id, resume.cursors);
}

bool ReplayAgent::IsDelivered(const CaptureId& capture_id) const {
  return !queue_.Holds(capture_id);
}

}  // namespace neurontrace
