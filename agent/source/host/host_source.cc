// SPDX-License-Identifier: Apache-2.0
#include "agent/source/host/host_source.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "lib/trace/host_samples.h"
#include "lib/trace/limits.h"

// Work is the only task: it runs once a second while a stream is open, and whenever PollAgain asks
// for it. It decides for all captures, reads /proc at most once, and schedules itself.
namespace neurontrace {
HostSource::HostSource(Options options, const Clock& clock, TaskRunner& runner, ChunkSink& sink,
                       AgentSourceMetrics& metrics, const CaptureParticipants& participants)
    : options_(std::move(options)),
      clock_(clock),
      runner_(runner),
      sink_(sink),
      metrics_(metrics),
      participants_(participants) {}

HostSource::~HostSource() = default;

// Recorders and previews do not include host samples; see the class comment.
bool HostSource::Selects(const CaptureSpec& spec) const {
  if (!options_.enabled) return false;
  if (spec.mode != CaptureMode::kStream && spec.mode != CaptureMode::kContinuous) return false;
  const auto& instances = spec.selection.instance_ids;
  return instances.empty() ||
         std::find(instances.begin(), instances.end(), options_.instance_id) != instances.end();
}

// A capture that does not select this host is known all the same if streams of it exist, as those
// have to be ended. Cursors are kept by boot: only the stream of this boot can be continued.
HostSource::Capture* HostSource::Know(const SourceOrder& order) {
  const auto is_own = [this](const StreamCursor& cursor) {
    return cursor.stream.kind == StreamKind::kHost && cursor.stream.agent_id == options_.agent_id &&
           cursor.next_sequence > 0;
  };
  // The first order decides whether the capture selects this host; later ones only add cursors.
  auto known = captures_.find(order.capture_id);
  if (known == captures_.end()) {
    if (!Selects(order.spec) && std::none_of(order.cursors.begin(), order.cursors.end(), is_own))
      return nullptr;
    known = captures_.try_emplace(order.capture_id).first;
    known->second.selected = Selects(order.spec);
  }
  Capture& capture = known->second;
  for (const StreamCursor& cursor : order.cursors) {
    if (is_own(cursor)) capture.cursors[cursor.stream.worker.boot_id] = cursor;
  }
  return &capture;
}

const StreamCursor* HostSource::OwnCursor(const Capture& capture) const {
  const auto it = capture.cursors.find(options_.boot_id);
  return it == capture.cursors.end() ? nullptr : &it->second;
}

bool HostSource::IsOn(const Capture& capture) const {
  if (!capture.selected || !capture.begun || capture.stopped) return false;
  const StreamCursor* const cursor = OwnCursor(capture);
  return capture.stream != nullptr || cursor == nullptr || !cursor->ended;
}

void HostSource::ApplyOrder(const SourceOrder& order) {
  using Kind = SourceOrder::Kind;
  Capture* capture = nullptr;
  if (order.kind == Kind::kBegin) {
    const auto it = captures_.find(order.capture_id);
    if (it != captures_.end()) capture = &it->second;
  } else {
    capture = Know(order);
  }
  // What was begun of a capture that is to finish is ended by Stop, which follows.
  if (capture == nullptr || order.kind == Kind::kArm || order.kind == Kind::kFinish) return;
  if (order.kind != Kind::kContinue) {
    capture->confirmed = true;
    // kContinue begins nothing: a stream must exist already.
  } else if (OwnCursor(*capture) == nullptr) {
    return;
  }
  capture->begun = true;
  PollAgain();
}

void HostSource::Stop(const CaptureId& capture_id, uint64_t) {
  const auto it = captures_.find(capture_id);
  // Repeating Stop has no effect.
  if (it == captures_.end() || it->second.stopped) return;
  Capture& capture = it->second;
  capture.stopped = true;
  // One last sample, so that the stream reaches up to the end of the capture.
  if (capture.samples()) {
    if (std::optional<HostReading> reading = Read()) capture.stream->Take(*std::move(reading));
  }
  if (capture.stream != nullptr) capture.stream->End();
  EndOrphans(capture_id, capture);
}

// The losses have no times: the capture may have stopped long before anybody could end its streams.
void HostSource::EndOrphans(const CaptureId& capture_id, Capture& capture) {
  for (const auto& [boot_id, cursor] : capture.cursors) {
    const bool is_of_this_boot = boot_id == options_.boot_id;
    if (cursor.ended || (is_of_this_boot && capture.stream != nullptr)) continue;
    auto writer =
        std::make_unique<StreamWriter>(capture_id, cursor.stream, clock_, sink_, metrics_);
    writer->Resume(cursor);
    writer->AddLoss(
        cursor.source_position,
        {.place = LossPlace::kAgentQueue,
         .reason = LossReason::kUnknown,
         .detail = is_of_this_boot ? "no host samples from here on: the agent ended"
                                   : "no host samples from here on: the host was rebooted"});
    writer->End(cursor.source_position);
    capture.orphans.push_back(std::move(writer));
  }
}

bool HostSource::IsFinished(const CaptureId& capture_id) const {
  const auto it = captures_.find(capture_id);
  if (it == captures_.end()) return true;
  const Capture& capture = it->second;
  return capture.stopped && (capture.stream == nullptr || capture.stream->finished()) &&
         std::all_of(capture.orphans.begin(), capture.orphans.end(),
                     [](const auto& orphan) { return orphan->finished(); });
}

void HostSource::Flush() {
  for (const auto& [capture_id, capture] : captures_) {
    if (capture.stream != nullptr) capture.stream->Flush();
  }
}

void HostSource::Forget(const CaptureId& capture_id) { captures_.erase(capture_id); }

void HostSource::PollAgain() { WakeAt(clock_.MonotonicNs()); }

std::optional<HostReading> HostSource::Read() {
  auto reading = ReadHost(options_.proc_root, clock_);
  // Logged on changes only, as this runs every second.
  std::string problem = reading.ok() ? "" : std::string(reading.status().message());
  if (problem != problem_) {
    problem_ = std::move(problem);
    if (problem_.empty()) {
      spdlog::info("host: processors and memory are sampled again");
    } else {
      spdlog::warn("host: cannot sample processors and memory: {}", problem_);
    }
  }
  if (reading.ok()) return *std::move(reading);
  // The next interval is the longer for it.
  AgentSourceMetrics::Add(metrics_.host_readings_failed);
  return std::nullopt;
}

void HostSource::Sample(const CaptureId& capture_id, Capture& capture, bool is_due,
                        const HostReading& reading) {
  if (capture.samples()) {
    if (is_due || !capture.records) capture.stream->Take(reading);
    return;
  }
  if (!capture.records) return;
  // A pause ends with the reading that the next interval begins with.
  if (capture.stream != nullptr) return capture.stream->Continue(reading);
  StreamIdentity identity;
  identity.agent_id = options_.agent_id;
  identity.worker.instance_id = options_.instance_id;
  identity.worker.boot_id = options_.boot_id;
  identity.kind = StreamKind::kHost;
  identity.nc_idx = limits::kNoNcIdx;
  capture.stream = std::make_unique<HostStream>(capture_id, std::move(identity), clock_, sink_,
                                                metrics_, reading);
  const StreamCursor* const cursor = OwnCursor(capture);
  if (cursor != nullptr) capture.stream->Resume(*cursor, capture.confirmed);
}

void HostSource::Work() {
  const uint64_t now = clock_.MonotonicNs();
  bool has_streams = false;
  bool changes = false;
  bool samples = false;
  for (auto& [capture_id, capture] : captures_) {
    if (!IsOn(capture)) continue;
    capture.records = participants_.Records(capture_id);
    has_streams = has_streams || capture.stream != nullptr;
    // When recording starts or ends, a sample is taken at once.
    changes = changes || capture.records != capture.samples();
    samples = samples || capture.samples();
  }
  // Seconds are counted from the first stream on.
  if (!has_streams && now >= sample_due_ns_) sample_due_ns_ = now;
  const bool is_due = now >= sample_due_ns_;
  // One reading serves all captures, so their samples agree.
  std::optional<HostReading> reading;
  if (changes || (is_due && samples)) reading = Read();
  for (auto& [capture_id, capture] : captures_) {
    if (!IsOn(capture)) continue;
    if (reading) Sample(capture_id, capture, is_due, *reading);
    if (capture.stream == nullptr) continue;
    if (!capture.records) capture.stream->Pause();
    if (is_due) capture.stream->Tick();
  }
  if (is_due) {
    sample_due_ns_ += ((now - sample_due_ns_) / kHostSampleIntervalNs + 1) * kHostSampleIntervalNs;
  }
  // If nothing records and no stream is open, PollAgain wakes this up.
  if (has_streams || changes) WakeAt(sample_due_ns_);
}

void HostSource::WakeAt(uint64_t monotonic_ns) {
  if (wake_ns_ != 0 && wake_ns_ <= monotonic_ns) return;
  wake_ns_ = monotonic_ns;
  const uint64_t now = clock_.MonotonicNs();
  runner_.PostDelayedTask(weak_tasks_.Wrap([this, monotonic_ns] {
    // An earlier wakeup has replaced this one; tasks cannot be cancelled.
    if (wake_ns_ != monotonic_ns) return;
    wake_ns_ = 0;
    Work();
  }),
                          monotonic_ns > now ? monotonic_ns - now : 0);
}

}  // namespace neurontrace
