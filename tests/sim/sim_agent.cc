// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_agent.h"

namespace neurontrace {
namespace {

constexpr uint64_t kSpoolRetryNs = kSimSecond;

}  // namespace

SimAgent::SimAgent(SimWorld& world, SimLedger& ledger, SimNetwork& network, SimHost& host,
                   const Options& options)
    : world_(world),
      ledger_(ledger),
      host_(host),
      runner_(world.runner),
      disk_runner_(world, host.disk_operation_ns),
      spool_(options.has_spool ? MakeSpool(world, host, options) : nullptr),
      queue_(spool_.get(), options.queue_bytes),
      wrapped_(options.wrap_sink ? options.wrap_sink(queue_) : nullptr),
      sink_(wrapped_ != nullptr ? *wrapped_ : queue_, ledger),
      uploader_(queue_, network.MakeUploadConnector(host.link, host.info.agent_id), runner_,
                world.clock, world.random, options.unacked_max),
      control_(host.info, network.MakeControlConnector(host.link), world.clock, runner_,
               world.random, *this),
      source_(world,
              {.agent_id = host.info.agent_id,
               .instance_id = host.info.instance_id,
               .boot_id = host.info.boot_id},
              host.workers, runner_, sink_, control_) {
  control_.AddSource(source_);
  OpenSpool();
}

SimAgent::~SimAgent() { runner_.Kill(); }

std::unique_ptr<Spool> SimAgent::MakeSpool(SimWorld& world, SimHost& host, const Options& options) {
  Spool::Options spool = options.spool;
  spool.directory = "/var/lib/neurontrace/spool";
  spool.agent_id = host.info.agent_id;
  spool.boot_id = host.info.boot_id;
  return std::make_unique<Spool>(spool, host.disk, disk_runner_, runner_, world.clock,
                                 world.random);
}

void SimAgent::OnWelcome(const std::set<CaptureId>& captures) {
  welcomed_ = true;
  uploader_.ForgetAllBut(captures);
  uploader_.SetEnabled(true);
}

void SimAgent::OnConnectionLost() { uploader_.SetEnabled(false); }

bool SimAgent::WasWronglyResumed(const CaptureResume& resume) {
  const bool wrong = queue_.WasWrong(resume.capture_id, resume.cursors);
  if (wrong && !host_.was_read_only) {
    world_.trace.Violate("{} resumed what was old", host_.info.agent_id);
  }
  if (wrong) ledger_.OnWronglyResumed(host_.info.instance_id);
  return wrong;
}

void SimAgent::OnCaptureRunning(const CaptureId& capture_id, const CaptureSpec& spec) {
  queue_.RecordRunning(capture_id, spec);
}

void SimAgent::OnCaptureOver(const CaptureId& capture_id) { uploader_.ForgetCapture(capture_id); }

void SimAgent::AddSpoolCursors(CaptureResume& resume) {
  uploader_.HandleCursors(resume.capture_id, resume.cursors);
  queue_.MergeCursors(resume.capture_id, resume.cursors);
}

bool SimAgent::IsDelivered(const CaptureId& capture_id) const { return !queue_.Holds(capture_id); }

void SimAgent::BeginToEnd() {
  queue_.Close();
  source_.Flush();
}

void SimAgent::OpenSpool() {
  const absl::Status status = queue_.Recover();
  if (!status.ok()) {
    world_.trace.Log("{} cannot read its spool: {}", host_.info.agent_id, status.ToString());
  }
  if (!status.ok() && spool_->CanHoldChunks()) {
    runner_.PostDelayedTask([this] { OpenSpool(); }, kSpoolRetryNs);
    return;
  }
  world_.trace.Log("{} has {} chunks in its spool", host_.info.agent_id, queue_.chunks());
  control_.Start();
  runner_.PostDelayedTask([this] { ResumeOffline(); }, ControlSession::kResumeOfflineAfterNs);
}

void SimAgent::ResumeOffline() {
  if (welcomed_) return;
  for (const DeliveryQueue::Resumed& capture : queue_.HandleRunning()) {
    world_.trace.Log("{} continues with {}", host_.info.agent_id, capture.capture_id.ToString());
    control_.Resume({capture.capture_id, capture.spec, false, capture.cursors});
  }
}

}  // namespace neurontrace
