// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/compare_lttng/replay_runtime.h"

#include <fmt/compile.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "tests/bench/event_mix.h"

namespace neurontrace {
namespace {

constexpr std::string_view kHead = "{\"events\":[";
constexpr std::string_view kTail = "],\"data_version\":2}";
constexpr uint64_t kDocumentBytesMin = uint64_t{4} << 20;
constexpr uint64_t kLeadNs = 20'000'000;  // from the texts' completion to the first event
constexpr uint64_t kIdBits = 50;

uint64_t Now(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

const std::vector<Shape>& Shapes() {
  static const std::vector<Shape> shapes = [] {
    const EventMix mix(0, 0, EventMix::Memory::kDefault);
    return std::vector<Shape>(mix.shapes().begin(), mix.shapes().end());
  }();
  return shapes;
}

const char* PhaseName(Phase phase) {
  return phase == Phase::kStart ? "start" : phase == Phase::kStop ? "stop" : "instant";
}

}  // namespace

ReplayRuntime& ReplayRuntime::Get() {
  static ReplayRuntime runtime;
  return runtime;
}

void ReplayRuntime::Begin(uint64_t seed, uint32_t cores, uint32_t first_gid) {
  pool_ = std::make_unique<EventPool>(seed, cores, first_gid);
  cores_count_ = cores;
}

void ReplayRuntime::StartTrace(uint64_t ring_events) {
  const std::lock_guard lock(mutex_);
  cores_ = std::vector<Core>(cores_count_);
  ring_events_ = ring_events;
}

void ReplayRuntime::StopTrace() {
  const std::lock_guard lock(mutex_);
  ring_events_ = 0;
}

void ReplayRuntime::Write(Core& to, uint32_t nc_idx, const compare_event& event) {
  const Shape& shape = Shapes()[event.shape];
  to.offsets.push_back(to.text.size());
  // The runtime restarts its count in each capture.
  const uint64_t nc_local_id = to.offsets.size() - 1;
  const auto out = std::back_inserter(to.text);
  fmt::format_to(out,
                 FMT_COMPILE("{{\"event_type\":\"{}\",\"phase\":\"{}\",\"id\":{},\"nc_idx\":{},"
                             "\"nc_local_id\":{},\"tracking_id\":{},\"thread_id\":{},"
                             "\"worker_gid\":{},\"data\":{{"),
                 shape.event_type, PhaseName(shape.phase),
                 uint64_t{nc_idx} << kIdBits | nc_local_id, nc_idx, nc_local_id, event.tracking_id,
                 event.thread_id, event.worker_gid);
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    if (i > 0) to.text += ',';
    if (shape.keys[i].type == ValueType::kString) {
      fmt::format_to(out, FMT_COMPILE("\"{}\":\"{}\""), shape.keys[i].name,
                     reinterpret_cast<const char*>(event.values[i]));
    } else {
      fmt::format_to(out, FMT_COMPILE("\"{}\":{}"), shape.keys[i].name, event.values[i]);
    }
  }
  fmt::format_to(out, FMT_COMPILE("}},\"timestamp_ns\":{}}},"), event.timestamp_ns);
}

ReplayRuntime::Sums ReplayRuntime::Run(uint64_t events, double rate) {
  constexpr uint64_t kBytesPerEvent = 320;
  // Without the lock, so that the tap's fetches find nothing and do not wait.
  pool_->Pace(Now(CLOCK_REALTIME), rate);
  std::vector<Core> cores(cores_count_);
  for (Core& core : cores) core.text.reserve(events / cores_count_ * kBytesPerEvent);
  for (uint64_t i = 0; i < events; ++i) {
    const uint32_t nc_idx = static_cast<uint32_t>(i % cores_count_);
    Write(cores[nc_idx], nc_idx, pool_->Next(nc_idx));
  }
  for (Core& core : cores) core.offsets.push_back(core.text.size());
  {
    const std::lock_guard lock(mutex_);
    if (ring_events_ == 0) return {.emitted = events};
    cores_ = std::move(cores);
    begin_ns_ = Now(CLOCK_MONOTONIC) + kLeadNs;
    core_rate_ = rate / 1e9 / cores_count_;
  }
  const uint64_t took_ns = static_cast<uint64_t>(static_cast<double>(events) / rate * 1e9);
  const uint64_t end_ns = begin_ns_ + took_ns;
  const timespec end = {.tv_sec = static_cast<time_t>(end_ns / 1'000'000'000),
                        .tv_nsec = static_cast<long>(end_ns % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr);  // tidy: allow(sleep) the rate
  return {.emitted = events, .taken = events, .seconds = static_cast<double>(took_ns) / 1e9};
}

uint64_t ReplayRuntime::DueOf(const Core& core, uint64_t now_ns) const {
  if (core.offsets.empty() || now_ns < begin_ns_) return 0;
  const double due = static_cast<double>(now_ns - begin_ns_) * core_rate_ + 1;
  return std::min<uint64_t>(core.offsets.size() - 1, static_cast<uint64_t>(due));
}

char* ReplayRuntime::Fetch(uint32_t index, uint64_t events_max, size_t& bytes) {
  const std::lock_guard lock(mutex_);
  if (ring_events_ == 0 || index >= cores_.size()) return nullptr;
  Core& core = cores_[index];
  const uint64_t due = DueOf(core, Now(CLOCK_MONOTONIC));
  if (due - core.next > ring_events_) core.next = due - ring_events_;
  const uint64_t end = core.next + std::min(due - core.next, events_max);
  std::string_view events;
  if (end > core.next) {  // without the last comma
    events = std::string_view(core.text).substr(core.offsets[core.next],
                                                core.offsets[end] - core.offsets[core.next] - 1);
  }
  core.next = end;
  bytes = kHead.size() + events.size() + kTail.size();
  char* document = std::exchange(spare_, nullptr);
  if (document == nullptr || spare_bytes_ <= bytes) {
    std::free(document);
    spare_bytes_ = std::max<size_t>(bytes + 1, kDocumentBytesMin);
    document = static_cast<char*>(std::malloc(spare_bytes_));
  }
  if (document == nullptr) return nullptr;
  char* to = std::copy(kHead.begin(), kHead.end(), document);
  std::memcpy(to, events.data(), events.size());
  *std::copy(kTail.begin(), kTail.end(), to + events.size()) = '\0';
  return document;
}

void ReplayRuntime::ReleaseBuffer(char* document) {
  const std::lock_guard lock(mutex_);
  std::free(std::exchange(spare_, document));
}

}  // namespace neurontrace

// As in the LTTng producer; they live as long as the process.
uint64_t compare_text(const char* text) { return reinterpret_cast<uint64_t>(strdup(text)); }
