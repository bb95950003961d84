// SPDX-License-Identifier: Apache-2.0
#include "agent/source/annotate/annotation_source.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/trace/annotation_limits.h"
#include "lib/trace/limits.h"

// Poll is the only task. Orders and connections change what it finds.
namespace neurontrace {
namespace {

// A ring holds some 2,000 annotations, so a thread may record 100,000 a second.
constexpr uint64_t kPollNs = 20'000'000;
// Between two questions who takes part.
constexpr uint64_t kRefreshNs = 200'000'000;
// The name of the streams, which have no file.
constexpr char kStreamName[] = "annotations";

}  // namespace

AnnotationSource::AnnotationSource(Options options, const Clock& clock, TaskRunner& runner,
                                   ChunkSink& sink, AgentSourceMetrics& metrics,
                                   const CaptureParticipants& participants)
    : options_(std::move(options)),
      proc_(options_.proc_root),
      boot_id_(options_.boot_id.empty() ? proc_.BootId() : options_.boot_id),
      clock_(clock),
      runner_(runner),
      sink_(sink),
      metrics_(metrics),
      participants_(participants) {}

AnnotationSource::~AnnotationSource() = default;

// --- Orders --------------------------------------------------------------------------------------

bool AnnotationSource::Selects(const CaptureSpec& spec) const {
  if (spec.mode != CaptureMode::kStream && spec.mode != CaptureMode::kContinuous) return false;
  const auto& instances = spec.selection.instance_ids;
  return spec.filter.include_framework &&
         (instances.empty() ||
          std::find(instances.begin(), instances.end(), options_.instance_id) != instances.end());
}

// A capture that selects nothing here is known all the same if streams of it exist, as those have
// to be ended.
AnnotationSource::Capture* AnnotationSource::AddCapture(const SourceOrder& order) {
  const auto is_own = [this](const StreamCursor& cursor) {
    return cursor.stream.kind == StreamKind::kAnnotation &&
           cursor.stream.agent_id == options_.agent_id && cursor.next_sequence > 0;
  };
  auto known = captures_.find(order.capture_id);
  if (known == captures_.end()) {
    const bool has_streams = std::any_of(order.cursors.begin(), order.cursors.end(), is_own);
    if (!Selects(order.spec) && !has_streams) return nullptr;
    known = captures_.try_emplace(order.capture_id).first;
    known->second.selected = Selects(order.spec);
  }
  Capture& capture = known->second;
  for (const StreamCursor& cursor : order.cursors) {
    const bool is_here = capture.streams.contains(cursor.stream.worker);
    if (is_own(cursor) && !is_here) capture.cursors[cursor.stream.worker] = cursor;
  }
  return &capture;
}

void AnnotationSource::ApplyOrder(const SourceOrder& order) {
  if (order.kind == SourceOrder::Kind::kBegin) {
    const auto found = captures_.find(order.capture_id);
    if (found == captures_.end() || found->second.begin) return;
    found->second.begin = PlanMoment(order.begin->host_raw_ns, options_.read_host_instant());
    return;
  }
  Capture* const capture = AddCapture(order);
  if (capture == nullptr) return;
  switch (order.kind) {
    case SourceOrder::Kind::kFinish:
      // Begins nothing: it has no part but to end what earlier agents began.
      capture->selected = capture->selected && capture->begin;
      break;
    case SourceOrder::Kind::kArm:
      break;
    default: {
      const uint64_t host_raw_ns = order.begin ? order.begin->host_raw_ns : 0;
      if (!capture->begin) {
        capture->begin = PlanMoment(host_raw_ns, options_.read_host_instant());
      }
    }
  }
  refreshed_ns_ = 0;
  SchedulePoll();
}

void AnnotationSource::Stop(const CaptureId& capture_id, uint64_t host_raw_ns) {
  const auto found = captures_.find(capture_id);
  if (found == captures_.end() || found->second.stop) return;
  found->second.stop = PlanMoment(host_raw_ns, options_.read_host_instant());
  SchedulePoll();
}

bool AnnotationSource::IsFinished(const CaptureId& capture_id) const {
  const auto found = captures_.find(capture_id);
  if (found == captures_.end()) return true;
  const auto& streams = found->second.streams;
  return found->second.ended && std::all_of(streams.begin(), streams.end(), [](const auto& entry) {
           return entry.second->finished();
         });
}

void AnnotationSource::Forget(const CaptureId& capture_id) {
  captures_.erase(capture_id);
  for (auto& [worker, process] : processes_) SwitchRecording(worker, process);
  if (captures_.empty()) RemoveEnded();
}

void AnnotationSource::Flush() {
  for (auto& [id, capture] : captures_) {
    for (auto& [worker, stream] : capture.streams) stream->Flush();
  }
}

// --- Connections ---------------------------------------------------------------------------------

absl::Status AnnotationSource::OnAnnotator(TapSession& session, TapGreeting greeting) {
  ASSIGN_OR_RETURN(std::unique_ptr<AnnotationReader> reader,
                   AnnotationReader::Open(greeting.buffer.get()));
  const PeerIdentity peer =
      IdentifyPeer(proc_, static_cast<uint32_t>(session.peer().pid), greeting.claimed_pid,
                   greeting.process_start_ticks, reader->inode());
  const WorkerIdentity worker{.instance_id = options_.instance_id,
                              .boot_id = boot_id_,
                              .pid = peer.pid,
                              .start_time_ticks = peer.start_time_ticks,
                              .container_id = peer.container_id};
  const auto known = processes_.find(worker);
  if (known != processes_.end() && known->second.session != nullptr) {
    return FailedPrecondition("process {} already has an annotation library", peer.pid);
  }
  if (known == processes_.end() && processes_.size() >= limits::kAnnotatedProcessesMax) {
    return ResourceExhausted("{} processes with annotation libraries are connected",
                             processes_.size());
  }
  Process& process = processes_[worker];
  // Another buffer is that of another program, which exec has started; its ranges are others.
  const bool is_same = process.reader != nullptr && process.reader->inode() == reader->inode();
  if (!is_same) process.pairing.Reset();
  process.session = &session;
  process.reader = std::move(reader);
  process.is_claimed = peer.claimed;
  // After a lost connection the library may still record, so it gets an order either way.
  process.last_order.reset();
  AgentSourceMetrics::Add(metrics_.annotators_connected);
  SwitchRecording(worker, process);
  refreshed_ns_ = 0;
  SchedulePoll();
  return absl::OkStatus();
}

void AnnotationSource::OnAnnotatorGone(TapSession& session) {
  for (auto& [worker, process] : processes_) {
    if (process.session != &session) continue;
    process.session = nullptr;
    process.gone_ns = clock_.MonotonicNs();
  }
  if (captures_.empty()) return RemoveEnded();
  SchedulePoll();
}

bool AnnotationSource::HasReturnTime(const WorkerIdentity& worker, const Process& process) const {
  if (captures_.empty() || process.is_claimed || process.reader == nullptr) return false;
  if (clock_.MonotonicNs() - process.gone_ns >= limits::kAnnotationReturnNs) return false;
  return proc_.StartTimeTicks(worker.pid) == worker.start_time_ticks;
}

void AnnotationSource::RemoveEnded() {
  for (auto it = processes_.begin(); it != processes_.end();) {
    auto& [worker, process] = *it;
    if (process.session != nullptr || process.is_behind || HasReturnTime(worker, process)) {
      ++it;
      continue;
    }
    for (auto& [id, capture] : captures_) {
      const auto stream = capture.streams.find(worker);
      if (stream != capture.streams.end()) stream->second->End();
    }
    it = processes_.erase(it);
  }
}

// --- Reading -------------------------------------------------------------------------------------

void AnnotationSource::SchedulePoll() {
  if (captures_.empty() || std::exchange(poll_scheduled_, true)) return;
  runner_.PostDelayedTask(weak_tasks_.Wrap([this] {
    poll_scheduled_ = false;
    Poll();
  }),
                          kPollNs);
}

void AnnotationSource::Poll() {
  const uint64_t now_ns = clock_.MonotonicNs();
  if (refreshed_ns_ == 0 || now_ns - refreshed_ns_ >= kRefreshNs) {
    refreshed_ns_ = now_ns;
    RefreshWorkers();
  }
  for (auto& [worker, process] : processes_) Read(worker, process);
  RemoveEnded();
  const bool is_behind = std::any_of(processes_.begin(), processes_.end(),
                                     [](const auto& entry) { return entry.second.is_behind; });
  for (auto& [id, capture] : captures_) {
    const bool is_over =
        capture.stop && now_ns >= capture.stop->monotonic_ns + limits::kAnnotationLateNs;
    if (is_over && !is_behind && !capture.ended) EndCapture(id, capture);
    for (auto& [worker, stream] : capture.streams) stream->Tick();
  }
  first_ring_ = (first_ring_ + 1) % kAnnotationRings;
  const bool has_work = std::any_of(captures_.begin(), captures_.end(),
                                    [](const auto& entry) { return !entry.second.ended; });
  if (has_work) SchedulePoll();
}

void AnnotationSource::RefreshWorkers() {
  for (auto& [id, capture] : captures_) {
    if (!capture.selected || capture.ended) continue;
    const std::vector<WorkerIdentity> workers = participants_.WorkersOf(id);
    capture.workers.insert(workers.begin(), workers.end());
  }
  for (auto& [worker, process] : processes_) SwitchRecording(worker, process);
}

void AnnotationSource::SwitchRecording(const WorkerIdentity& worker, Process& process) {
  bool wanted = false;
  for (auto& [id, capture] : captures_) {
    if (!Wants(capture, worker)) continue;
    wanted = true;
    // Ranges up to here began before the capture knew this process.
    capture.ranges_before.try_emplace(worker, process.pairing.last_number());
  }
  wanted = wanted && process.reader != nullptr;
  if (process.session == nullptr || process.last_order == wanted) return;
  const absl::Status sent = process.session->SendAnnotate(wanted);
  if (!sent.ok()) {
    spdlog::warn("annotations of {}: {}", ToString(worker), std::string(sent.message()));
    return;
  }
  process.last_order = wanted;
}

bool AnnotationSource::HasRoom(const WorkerIdentity& worker) const {
  return std::all_of(captures_.begin(), captures_.end(), [&](const auto& entry) {
    return !Wants(entry.second, worker) || sink_.HasRoom(entry.first);
  });
}

// Back-pressure: without room everything stays in the process, which drops and counts what does not
// fit there.
void AnnotationSource::Read(const WorkerIdentity& worker, Process& process) {
  if (process.reader == nullptr) return;
  process.is_behind = !HasRoom(worker);
  if (process.is_behind) return AgentSourceMetrics::Add(metrics_.reads_waiting);
  std::vector<ReadAnnotation> reads;
  absl::Status status;
  // A ring that is not valid ends the reading only after the others were read.
  for (uint32_t i = 0; i < kAnnotationRings; ++i) {
    const uint32_t ring = (first_ring_ + i) % kAnnotationRings;
    while (reads.size() < limits::kAnnotationRecordsPerPollMax) {
      ReadAnnotation read;
      const absl::StatusOr<bool> found = process.reader->Next(ring, read);
      status.Update(found.status());
      if (!found.ok() || !*found) break;
      reads.push_back(std::move(read));
    }
  }
  process.is_behind = reads.size() >= limits::kAnnotationRecordsPerPollMax;
  // Those of one thread are ordered; a timeline wants those of all threads so.
  std::stable_sort(reads.begin(), reads.end(), [](const auto& a, const auto& b) {
    return a.record.realtime_ns < b.record.realtime_ns;
  });
  Distribute(worker, process, reads);
  const absl::StatusOr<uint64_t> dropped =
      status.ok() ? process.reader->TakeDropped() : absl::StatusOr<uint64_t>(status);
  if (!dropped.ok()) return Break(worker, process, dropped.status());
  if (*dropped == 0) return;
  AgentSourceMetrics::Add(metrics_.annotations_dropped, *dropped);
  ForStreams(worker, clock_.RealtimeNs(),
             [&](AnnotationStream& stream) { stream.AddDropped(*dropped); });
}

void AnnotationSource::Distribute(const WorkerIdentity& worker, Process& process,
                                  const std::vector<ReadAnnotation>& reads) {
  for (const ReadAnnotation& read : reads) {
    const uint64_t at_ns = read.record.realtime_ns;
    switch (static_cast<AnnotationType>(read.record.type)) {
      case AnnotationType::kPush:
      case AnnotationType::kStart: {
        const AnnotatedRange range = process.pairing.Begin(read);
        // A capture without this range must not have its end.
        for (auto& [id, capture] : captures_) {
          if (!capture.begin || at_ns < capture.begin->realtime_ns) {
            capture.ranges_before[worker] = range.number;
          }
        }
        ForStreams(worker, at_ns, [&](AnnotationStream& stream) { stream.AddBegin(read, range); });
        break;
      }
      case AnnotationType::kPop:
      case AnnotationType::kEnd: {
        const std::optional<AnnotatedRange> range = process.pairing.End(read);
        ForStreams(worker, at_ns, [&](AnnotationStream& stream) { stream.AddEnd(read, range); });
        break;
      }
      case AnnotationType::kMark:
        ForStreams(worker, at_ns, [&](AnnotationStream& stream) { stream.AddMark(read); });
        break;
      default:
        AgentSourceMetrics::Add(metrics_.records_unknown);
    }
  }
}

void AnnotationSource::Break(const WorkerIdentity& worker, Process& process,
                             const absl::Status& why) {
  AgentSourceMetrics::Add(metrics_.taps_misbehaved);
  spdlog::warn("annotations of {} are not read any more: {}", ToString(worker),
               std::string(why.message()));
  ForStreams(worker, clock_.RealtimeNs(), [&](AnnotationStream& stream) {
    stream.AddLoss(LossPlace::kTapBuffer, LossReason::kMalformed, std::string(why.message()));
  });
  process.reader.reset();
  process.is_behind = false;
  SwitchRecording(worker, process);
}

StreamIdentity AnnotationSource::IdentityOf(const WorkerIdentity& worker) const {
  return {.agent_id = options_.agent_id,
          .worker = worker,
          .kind = StreamKind::kAnnotation,
          .nc_idx = limits::kNoNcIdx,
          .name = kStreamName};
}

AnnotationStream& AnnotationSource::StreamOf(const CaptureId& capture_id, Capture& capture,
                                             const WorkerIdentity& worker) {
  std::unique_ptr<AnnotationStream>& stream = capture.streams[worker];
  if (stream != nullptr) return *stream;
  stream = std::make_unique<AnnotationStream>(
      capture_id, IdentityOf(worker), capture.ranges_before[worker], clock_, sink_, metrics_);
  const auto cursor = capture.cursors.find(worker);
  if (cursor != capture.cursors.end()) {
    stream->Resume(cursor->second);
    capture.cursors.erase(cursor);
  }
  return *stream;
}

void AnnotationSource::ForStreams(const WorkerIdentity& worker, uint64_t realtime_ns,
                                  const std::function<void(AnnotationStream&)>& act) {
  for (auto& [id, capture] : captures_) {
    if (Wants(capture, worker) && capture.Includes(realtime_ns)) act(StreamOf(id, capture, worker));
  }
}

void AnnotationSource::EndCapture(const CaptureId& capture_id, Capture& capture) {
  // Streams of an earlier run of the agent that nothing was added to.
  std::vector<WorkerIdentity> orphans;
  for (const auto& [worker, cursor] : capture.cursors) orphans.push_back(worker);
  for (const WorkerIdentity& worker : orphans) StreamOf(capture_id, capture, worker);
  for (auto& [worker, stream] : capture.streams) stream->End();
  capture.ended = true;
  for (auto& [worker, process] : processes_) SwitchRecording(worker, process);
}

}  // namespace neurontrace
