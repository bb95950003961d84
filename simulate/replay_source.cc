// SPDX-License-Identifier: Apache-2.0
#include "simulate/replay_source.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "lib/trace/capture_selection.h"
#include "lib/trace/event_filter.h"

namespace neurontrace {
namespace {

constexpr uint64_t kReplayTickNs = 100'000'000;
constexpr uint32_t kTicksPerReport = 10;
// How soon a batch that found no room is tried again.
constexpr uint64_t kRoomRetryNs = 20'000'000;

// Returns what of a capture is not simulated, so that workers refuse it; empty if nothing.
std::string FindUnsimulated(const CaptureSpec& spec) {
  if (spec.mode != CaptureMode::kStream && spec.mode != CaptureMode::kContinuous)
    return "simulated workers stream; they have no rings to hold or to read";
  if (spec.conditions.by_execution()) return "simulated workers record by time, not by execution";
  return "";
}

}  // namespace

std::vector<CachedShape> MakeReplayShapes(const FleetRows& rows) {
  std::vector<CachedShape> shapes(FleetRows::kShapes);
  for (uint32_t i = 0; i < FleetRows::kShapes; ++i) {
    shapes[i].shape = rows.shape(i);
    shapes[i].number = i;
    shapes[i].generation = 1;
  }
  return shapes;
}

ReplaySource::ReplaySource(const Deps& deps, Identity identity)
    : deps_(deps), identity_(std::move(identity)), first_rank_(identity_.ranks.front()) {
  const FleetPlan& plan = deps_.plan;
  for (const uint32_t rank : identity_.ranks) {
    WorkerIdentity process = FleetWorker(plan, rank, identity_.boot_id);
    if (workers_.empty() || workers_.back().info.identity != process) {
      workers_.push_back({.info = {.identity = std::move(process),
                                   .state = WorkerState::kIdle,
                                   .command = "neurontrace-simulate",
                                   .job = identity_.job}});
    }
    Worker& worker = workers_.back();
    worker.ranks.push_back(rank);
    worker.info.cores.push_back(
        {.nc_idx = plan.core_of(rank), .rank_evidence = FleetRankEvidence(plan, rank)});
  }
  cores_.resize(identity_.ranks.back() - first_rank_ + 1);
}

ReplaySource::~ReplaySource() = default;

void ReplaySource::Start() {
  for (const Worker& worker : workers_) deps_.listener.OnWorker(worker.info);
  deps_.runner.PostDelayedTask(weak_tasks_.Wrap([this] { Tick(); }), kReplayTickNs);
}

// --- Orders --------------------------------------------------------------------------------------

ReplaySource::Capture& ReplaySource::AddCapture(const SourceOrder& order) {
  const auto [entry, is_new] = captures_.try_emplace(order.capture_id);
  Capture& capture = entry->second;
  if (!is_new) return capture;
  capture.spec = order.spec;
  capture.writers.resize(cores_.size());
  // The aggregator has checked the filter; one that this build does not understand selects all.
  const auto filter = EventFilter::Parse(order.spec.filter.event_types);
  for (size_t i = 0; i < kFleetEventTypes; ++i) {
    const char* const name = RuntimeEventName(static_cast<FleetEventType>(i));
    capture.selects[i] = !filter.ok() || filter->Selects(name);
  }
  for (size_t i = 0; i < workers_.size() && order.spec.filter.include_neuron; ++i) {
    if (workers_[i].has_ended || !Selects(order.spec, workers_[i].info)) continue;
    Part& part = capture.parts[i];
    part.status.capture_id = order.capture_id;
    part.status.worker = workers_[i].info.identity;
    const std::string why = FindUnsimulated(order.spec);
    if (!why.empty())
      Enter(part, CaptureWorkerState::kRefused, why, CaptureObstacle::kRuntimeRefused);
  }
  return capture;
}

void ReplaySource::ApplyOrder(const SourceOrder& order) {
  using Kind = SourceOrder::Kind;
  // The streams of an earlier run are those of another boot and another agent.
  if (order.kind == Kind::kContinue || order.kind == Kind::kFinish) return;
  if (order.kind == Kind::kBegin) {
    const auto known = captures_.find(order.capture_id);
    if (known != captures_.end()) Begin(order.capture_id, known->second, false);
    return;
  }
  Capture& capture = AddCapture(order);
  if (order.kind != Kind::kArm) return Begin(order.capture_id, capture, order.kind == Kind::kJoin);
  for (auto& [index, part] : capture.parts) {
    if (part.status.state == CaptureWorkerState::kUnspecified)
      Enter(part, CaptureWorkerState::kArmed);
  }
}

void ReplaySource::Begin(const CaptureId& capture_id, Capture& capture, bool is_late) {
  if (std::exchange(capture.has_begun, true) || capture.is_stopping) return;
  for (auto& [index, part] : capture.parts) {
    if (part.status.state == CaptureWorkerState::kRefused) continue;
    OpenStreams(capture_id, capture, index, part);
    part.status.joined_late = is_late;
    part.status.begun_realtime_ns = deps_.host.RealtimeNs();
    Enter(part, CaptureWorkerState::kRecording);
  }
}

void ReplaySource::OpenStreams(const CaptureId& capture_id, Capture& capture, size_t worker,
                               Part& part) {
  const Worker& of = workers_[worker];
  part.writers.resize(of.ranks.size());
  for (size_t i = 0; i < of.ranks.size(); ++i) {
    const uint32_t rank = of.ranks[i];
    if (cores_[IndexOf(rank)].is_silent || !SelectsCore(capture.spec, of.info.cores[i])) continue;
    part.writers[i] = std::make_unique<StreamWriter>(
        capture_id, FleetStream(deps_.plan, rank, identity_.agent_id, identity_.boot_id),
        deps_.host, deps_.sink, metrics_);
    part.writers[i]->SetRankEvidence(of.info.cores[i].rank_evidence);
    capture.writers[IndexOf(rank)] = part.writers[i].get();
    ++part.status.streams;
  }
}

void ReplaySource::Stop(const CaptureId& capture_id, uint64_t) {
  const auto known = captures_.find(capture_id);
  if (known == captures_.end() || std::exchange(known->second.is_stopping, true)) return;
  for (auto& [index, part] : known->second.parts) {
    if (part.status.state == CaptureWorkerState::kArmed)
      Enter(part, CaptureWorkerState::kComplete, "it was stopped before it began");
    if (part.status.state == CaptureWorkerState::kRecording)
      Enter(part, CaptureWorkerState::kStopping);
  }
  Pump();
}

bool ReplaySource::IsFinished(const CaptureId& capture_id) const {
  const auto known = captures_.find(capture_id);
  if (known == captures_.end()) return true;
  const Capture& capture = known->second;
  return capture.has_ended &&
         std::all_of(capture.writers.begin(), capture.writers.end(),
                     [](const StreamWriter* writer) { return !writer || writer->finished(); });
}

void ReplaySource::Forget(const CaptureId& capture_id) { captures_.erase(capture_id); }

void ReplaySource::Flush() {
  for (auto& [id, capture] : captures_) {
    for (StreamWriter* const writer : capture.writers) {
      if (writer != nullptr) writer->Flush(position_);
    }
  }
}

bool ReplaySource::Records(const CaptureId& capture_id) const {
  return std::any_of(captures_.begin(), captures_.end(), [&](const auto& item) {
    const auto& [id, capture] = item;
    if (!capture_id.empty() && id != capture_id) return false;
    return std::any_of(capture.parts.begin(), capture.parts.end(), [](const auto& part) {
      return part.second.status.state == CaptureWorkerState::kRecording;
    });
  });
}

void ReplaySource::Enter(Part& part, CaptureWorkerState state, std::string detail,
                         CaptureObstacle obstacle) {
  part.status.state = state;
  part.status.detail = std::move(detail);
  part.status.obstacle = obstacle;
  UpdateCounts(part);
  deps_.listener.OnCaptureWorker(part.status);
}

void ReplaySource::UpdateCounts(Part& part) const {
  CaptureWorkerStatus& status = part.status;
  status.events_read = status.events_stored = status.events_lost = status.bytes_read = 0;
  for (const auto& writer : part.writers) {
    if (writer == nullptr) continue;
    const StreamWriter::Counts& counts = writer->counts();
    status.events_read += counts.read;
    status.events_stored += counts.stored;
    status.events_lost += counts.lost;
    status.events_lost_unknown |= counts.lost_unknown;
    status.bytes_read += counts.bytes;
  }
}

// --- Events --------------------------------------------------------------------------------------

void ReplaySource::Take(ReplayBatch batch) {
  batches_.push_back(std::move(batch));
  Pump();
}

bool ReplaySource::HasRoom() const {
  return std::all_of(captures_.begin(), captures_.end(), [this](const auto& item) {
    return !item.second.has_begun || item.second.has_ended || deps_.sink.HasRoom(item.first);
  });
}

void ReplaySource::Pump() {
  while (!batches_.empty()) {
    if (!HasRoom()) {
      if (std::exchange(is_pump_posted_, true)) return;
      deps_.runner.PostDelayedTask(weak_tasks_.Wrap([this] {
        is_pump_posted_ = false;
        Pump();
      }),
                                   kRoomRetryNs);
      return;
    }
    Deliver(batches_.front());
    deps_.waiting -= batches_.front().events.size();
    batches_.pop_front();
  }
  for (auto& [id, capture] : captures_) {
    if (capture.is_stopping && !capture.has_ended) EndStreams(capture);
  }
}

void ReplaySource::Deliver(const ReplayBatch& batch) {
  deps_.host.Reach(batch.true_ns, batch.clock);
  for (auto& [id, capture] : captures_) {
    // The first batch says when the run began.
    for (auto& [index, part] : capture.parts) {
      if (part.status.begun_realtime_ns == 0)
        part.status.begun_realtime_ns = deps_.host.RealtimeNs();
    }
  }
  for (const FleetEvent& event : batch.events) Record(event);
  for (const ReplayBatch::RankLoss& lost : batch.losses) {
    for (auto& [id, capture] : captures_) {
      StreamWriter* const writer = capture.writers[IndexOf(lost.rank)];
      if (writer == nullptr || writer->ended()) continue;
      writer->AddLoss(position_, lost.loss);
      counts_.losses += lost.loss.events;
      counts_.unknown_losses += lost.loss.events_unknown ? 1 : 0;
    }
  }
  ++position_;
  for (const uint32_t rank : batch.silent) {
    cores_[IndexOf(rank)].is_silent = is_silent_ = true;
    for (auto& [id, capture] : captures_) {
      StreamWriter* const writer = capture.writers[IndexOf(rank)];
      if (writer != nullptr) writer->Flush(position_);
    }
  }
  for (const uint32_t rank : batch.ended) {
    for (size_t i = 0; i < workers_.size(); ++i) {
      const std::vector<uint32_t>& ranks = workers_[i].ranks;
      if (std::binary_search(ranks.begin(), ranks.end(), rank)) EndWorker(workers_[i], i);
    }
  }
}

void ReplaySource::Record(const FleetEvent& event) {
  uint64_t& rows = cores_[IndexOf(event.rank)].rows;
  const uint64_t start_row = rows++;
  RecordRow(event, deps_.rows.Start(event, start_row));
  const auto stop = deps_.rows.Stop(event, rows, start_row);
  if (!stop) return;
  ++rows;
  RecordRow(event, *stop);
}

void ReplaySource::RecordRow(const FleetEvent& event, const FleetRow& row) {
  for (auto& [id, capture] : captures_) {
    StreamWriter* const writer = capture.writers[IndexOf(event.rank)];
    if (writer == nullptr || writer->ended()) continue;
    if (!capture.selects[static_cast<size_t>(event.type)]) {
      writer->PassOver(position_);
      continue;
    }
    writer->Append(position_, deps_.shapes[row.shape], row.fields, row.values);
    ++counts_.rows;
  }
}

// What the process did before it ended was fetched, so nothing is lost with it.
void ReplaySource::EndWorker(Worker& worker, size_t index) {
  if (std::exchange(worker.has_ended, true)) return;
  for (auto& [id, capture] : captures_) {
    const auto found = capture.parts.find(index);
    if (found == capture.parts.end()) continue;
    Part& part = found->second;
    for (const auto& writer : part.writers) {
      if (writer != nullptr) writer->End(position_);
    }
    const bool has_recorded = part.status.state == CaptureWorkerState::kRecording ||
                              part.status.state == CaptureWorkerState::kStopping;
    if (has_recorded) {
      Enter(part, CaptureWorkerState::kLost, "the process has ended");
    } else if (part.status.state == CaptureWorkerState::kArmed) {
      Enter(part, CaptureWorkerState::kRefused, "the process ended before it began",
            CaptureObstacle::kEnded);
    }
  }
  deps_.listener.OnWorkerGone(worker.info.identity);
}

void ReplaySource::EndStreams(Capture& capture) {
  capture.has_ended = true;
  for (size_t i = 0; i < capture.writers.size(); ++i) {
    if (capture.writers[i] != nullptr && !cores_[i].is_silent) capture.writers[i]->End(position_);
  }
}

void ReplaySource::Tick() {
  const bool is_report_due = ++ticks_ % kTicksPerReport == 0;
  for (auto& [id, capture] : captures_) {
    for (size_t i = 0; i < capture.writers.size(); ++i) {
      if (capture.writers[i] != nullptr && !cores_[i].is_silent)
        capture.writers[i]->Tick(position_);
    }
    for (auto& [index, part] : capture.parts) {
      const bool is_finished =
          part.status.state == CaptureWorkerState::kStopping && capture.has_ended &&
          std::all_of(part.writers.begin(), part.writers.end(),
                      [](const auto& writer) { return !writer || writer->finished(); });
      if (is_finished) {
        Enter(part, CaptureWorkerState::kComplete);
      } else if (is_report_due && !part.writers.empty()) {
        UpdateCounts(part);
        deps_.listener.OnCaptureWorker(part.status);
      }
    }
  }
  deps_.runner.PostDelayedTask(weak_tasks_.Wrap([this] { Tick(); }), kReplayTickNs);
}

}  // namespace neurontrace
