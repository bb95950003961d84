// SPDX-License-Identifier: Apache-2.0
#include "agent/source/host/host_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "trace/host_samples.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// How often it is asked whether anything records, until it does.
constexpr uint64_t kAskNs = 100'000'000;

}  // namespace

HostSource::HostSource(Options options, const Clock& clock, TaskRunner& runner, ChunkSink& sink,
                       AgentSourceMetrics& metrics, IsRecording is_recording)
    : options_(std::move(options)),
      clock_(clock),
      runner_(runner),
      sink_(sink),
      metrics_(metrics),
      is_recording_(std::move(is_recording)) {}

HostSource::~HostSource() = default;

bool HostSource::Selects(const CaptureSpec& spec) const {
  if (!options_.enabled) return false;
  if (spec.mode != CaptureMode::kStream && spec.mode != CaptureMode::kContinuous) return false;
  const auto& instances = spec.instance_ids;
  return instances.empty() ||
         std::find(instances.begin(), instances.end(), options_.instance_id) != instances.end();
}

HostSource::Capture* HostSource::Know(const CaptureId& capture_id, const CaptureSpec& spec,
                                      std::span<const StreamCursor> cursors) {
  const auto known = captures_.find(capture_id);
  if (known != captures_.end()) return &known->second;
  const auto cursor = std::find_if(cursors.begin(), cursors.end(), [this](const auto& stored) {
    return stored.stream.kind == StreamKind::kHost && stored.stream.agent_id == options_.agent_id &&
           stored.stream.worker.boot_id == options_.boot_id;
  });
  const bool has_stream = cursor != cursors.end();
  if (!Selects(spec) && !has_stream) return nullptr;
  Capture& capture = captures_[capture_id];
  if (has_stream) capture.cursor = *cursor;
  return &capture;
}

void HostSource::Begin(Capture& capture) {
  capture.begun = true;
  WakeAt(clock_.MonotonicNs());
}

void HostSource::StartCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                              std::span<const StreamCursor> cursors) {
  if (Capture* const capture = Know(capture_id, spec, cursors)) Begin(*capture);
}

void HostSource::ArmCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                            std::span<const StreamCursor> cursors) {
  Know(capture_id, spec, cursors);
}

void HostSource::BeginCapture(const CaptureId& capture_id, const CaptureBegin&) {
  const auto it = captures_.find(capture_id);
  if (it != captures_.end()) Begin(it->second);
}

void HostSource::JoinCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                             std::span<const StreamCursor> cursors, const CaptureBegin&) {
  StartCapture(capture_id, spec, cursors);
}

void HostSource::GoOn(const CaptureId& capture_id, const CaptureSpec& spec,
                      std::span<const StreamCursor> cursors) {
  StartCapture(capture_id, spec, cursors);
}

// What was begun is ended below; nothing new begins.
void HostSource::ResumeStopping(const CaptureId& capture_id, const CaptureSpec& spec,
                                std::span<const StreamCursor> cursors,
                                const std::optional<CaptureBegin>&) {
  Know(capture_id, spec, cursors);
}

void HostSource::StopCapture(const CaptureId& capture_id) {
  const auto it = captures_.find(capture_id);
  if (it == captures_.end() || it->second.stopped) return;
  Capture& capture = it->second;
  capture.stopped = true;
  const bool has_stream = capture.stream != nullptr || (capture.cursor && !capture.cursor->ended);
  if (!has_stream) return;
  std::optional<HostReading> reading = Read();
  if (capture.stream == nullptr) {
    // Without counters there is still the time, at which the stream ends.
    if (!reading) {
      reading =
          HostReading{.realtime_ns = clock_.RealtimeNs(), .monotonic_ns = clock_.MonotonicNs()};
    }
    Open(capture_id, capture, *reading);
  } else if (reading) {
    capture.stream->Take(*std::move(reading));
  }
  capture.stream->End();
}

bool HostSource::CaptureFinished(const CaptureId& capture_id) const {
  const auto it = captures_.find(capture_id);
  if (it == captures_.end()) return true;
  return it->second.stopped && (it->second.stream == nullptr || it->second.stream->finished());
}

void HostSource::Flush() {
  for (const auto& [capture_id, capture] : captures_) {
    if (capture.stream != nullptr) capture.stream->Flush();
  }
}

void HostSource::ForgetCapture(const CaptureId& capture_id) { captures_.erase(capture_id); }

std::optional<HostReading> HostSource::Read() {
  auto reading = ReadHost(options_.proc_root, clock_);
  if (reading.ok()) return *std::move(reading);
  // The next interval is the longer for it.
  AgentSourceMetrics::Add(metrics_.host_readings_failed);
  return std::nullopt;
}

void HostSource::Open(const CaptureId& capture_id, Capture& capture, const HostReading& reading) {
  StreamIdentity identity;
  identity.agent_id = options_.agent_id;
  identity.worker.instance_id = options_.instance_id;
  identity.worker.boot_id = options_.boot_id;
  identity.kind = StreamKind::kHost;
  identity.nc_idx = limits::kNoNcIdx;
  capture.stream = std::make_unique<HostStream>(capture_id, std::move(identity), clock_, sink_,
                                                metrics_, reading);
  if (capture.cursor) capture.stream->Resume(*capture.cursor);
}

void HostSource::Work() {
  const uint64_t now = clock_.MonotonicNs();
  bool samples = false;
  std::vector<std::pair<const CaptureId*, Capture*>> to_open;
  bool waits = false;
  for (auto& [capture_id, capture] : captures_) {
    const bool is_stored = capture.cursor && capture.cursor->ended;
    if (!capture.begun || capture.stopped || is_stored) continue;
    if (capture.stream != nullptr) {
      samples = true;
    } else if (is_recording_(capture_id)) {
      to_open.emplace_back(&capture_id, &capture);
    } else {
      waits = true;
    }
  }
  if (!samples) sample_due_ns_ = now + kHostSampleIntervalNs;
  const bool is_due = samples && now >= sample_due_ns_;
  if (is_due || !to_open.empty()) {
    const std::optional<HostReading> reading = Read();
    for (auto& [capture_id, capture] : captures_) {
      if (is_due && reading && capture.stream != nullptr && !capture.stopped) {
        capture.stream->Take(*reading);
      }
    }
    for (const auto& [capture_id, capture] : to_open) {
      if (reading) Open(*capture_id, *capture, *reading);
      samples = samples || reading;
      waits = waits || !reading;
    }
  }
  if (is_due) {
    sample_due_ns_ += ((now - sample_due_ns_) / kHostSampleIntervalNs + 1) * kHostSampleIntervalNs;
  }
  for (auto& [capture_id, capture] : captures_) {
    if (capture.stream != nullptr && !capture.stopped) capture.stream->Tick();
  }
  if (samples) WakeAt(sample_due_ns_);
  if (waits) WakeAt(now + kAskNs);
}

void HostSource::WakeAt(uint64_t monotonic_ns) {
  if (wake_ns_ != 0 && wake_ns_ <= monotonic_ns) return;
  wake_ns_ = monotonic_ns;
  const uint64_t now = clock_.MonotonicNs();
  runner_.PostDelayedTask(
      [this, monotonic_ns, alive = std::weak_ptr<bool>(alive_)] {
        if (alive.expired() || wake_ns_ != monotonic_ns) return;
        wake_ns_ = 0;
        Work();
      },
      monotonic_ns > now ? monotonic_ns - now : 0);
}

}  // namespace neurontrace
