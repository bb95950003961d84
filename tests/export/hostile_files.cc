// SPDX-License-Identifier: Apache-2.0
// What hostile captures have besides cores: files of frameworks, and hosts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tests/export/hostile_capture.h"
#include "trace/host_samples.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr uint32_t kArrowsPerFile = 20;
constexpr uint64_t kArrowPid = 9'000;
constexpr uint32_t kSamplesPerHost = 20;

EventScript::Attribute Top(std::string name, EventScript::Value value) {
  return {std::move(name), std::move(value), KeyScope::kTop};
}

const std::array<std::string, 6> kCategories = {"cpu_op",           "kernel", "user_annotation",
                                                "caf\xc3\xa9 \"\\", "\xff",   "cc_running"};
// Framework names that are none of a runtime.
const std::array<std::string, 5> kNames = {"aten::mm", "", "\xe6\x97\xa5\xe6\x9c\xac \"\\\n",
                                           "\xff\xfe", "ProfilerStep#7"};

}  // namespace

// Of a thread that is no number the events say so themselves.
void HostileCapture::AddFileEvent(uint32_t number, Events& events) {
  static const std::array<std::string, 3> kPidTexts = {"GPU 0", "\xe6\x97\xa5\xe6\x9c\xac", "\xff"};
  static const std::array<std::string, 3> kTidTexts = {"stream 7", "\xe6\x97\xa5", "a\xff"};
  const std::string& name = kNames[Below(kNames.size())];
  EventScript::Event like{kCategories[Below(kCategories.size())], Phase::kComplete};
  SeenEvent seen;
  seen.id = NewId();
  seen.name = ValidUtf8(name);
  seen.category = ValidUtf8(like.type);
  seen.instance_id = fmt::format("i-{}", number % 2);
  like.attributes = {Top("name", name)};
  if (Below(2) == 0) {
    const uint64_t pid = Below(2) == 0 ? 4'242 : INT64_MAX;
    seen.process_id = fmt::format("{}", pid);
    like.attributes.push_back(Top("pid", pid));
  } else {
    const std::string& pid = kPidTexts[Below(kPidTexts.size())];
    seen.process_id = ValidUtf8(pid);
    like.attributes.push_back(Top("pid", pid));
  }
  like.has_thread = Below(2) == 0;
  if (like.has_thread) {
    like.thread_id = Below(2) == 0 ? 1 + Below(shape_.threads) : UINT64_MAX;
    seen.thread_id = fmt::format("{}", like.thread_id);
  } else {
    const std::string& tid = kTidTexts[Below(kTidTexts.size())];
    seen.thread_id = ValidUtf8(tid);
    like.attributes.push_back(Top("tid", tid));
  }
  seen.start_ns = seen.end_ns = Time();
  if (Below(6) == 0) {
    like.phase = Phase::kInstant;
    seen.is_instant = true;
  } else {
    seen.end_ns += Length();
  }
  AddFileSpan(std::move(seen), like, events);
}

// A framework's events have no ids: they are told apart by an attribute.
uint64_t HostileCapture::AddFileSpan(SeenEvent seen, const EventScript::Event& like,
                                     Events& events) {
  EventScript::Event event = like;
  event.timestamp_ns = seen.start_ns;
  if (event.phase == Phase::kComplete) {
    event.attributes.push_back(Top("dur_ns", seen.end_ns - seen.start_ns));
  }
  const uint64_t id = seen.id;
  event.attributes.push_back({"p.id", id});
  TakeAttribute("p.id", fmt::format("{}", id), seen);
  for (EventScript::Attribute& attribute : Attributes("p.", seen)) {
    event.attributes.push_back(std::move(attribute));
  }
  events.push_back(std::move(event));
  truth_.events.emplace(id, std::move(seen));
  return id;
}

// On rows where nothing overlaps, so that it is certain which slice an end touches.
void HostileCapture::AddArrow(uint32_t number, uint32_t row, Events& events) {
  const uint64_t step_ns = shape_.length_ns / kArrowsPerFile;
  const uint64_t begin_ns = kBase + row * step_ns;
  const uint64_t pid = kArrowPid + number;
  std::array<uint64_t, 2> ids = {};
  for (uint32_t end = 0; end < 2; ++end) {
    SeenEvent seen;
    seen.id = NewId();
    seen.name = "aten::mm";
    seen.category = "cpu_op";
    seen.instance_id = fmt::format("i-{}", number % 2);
    seen.process_id = fmt::format("{}", pid);
    seen.thread_id = fmt::format("{}", 11 + end);
    seen.start_ns = begin_ns + end * step_ns / 2;
    seen.end_ns = seen.start_ns + step_ns / 4;
    EventScript::Event like{"cpu_op", Phase::kComplete};
    like.thread_id = 11 + end;
    like.attributes = {Top("name", std::string("aten::mm")), Top("pid", pid)};
    ids[end] = AddFileSpan(std::move(seen), like, events);
  }
  const bool has_start = row % 7 != 5;
  const bool has_end = row % 7 != 6;
  for (uint32_t end = 0; end < 2; ++end) {
    if (!(end == 0 ? has_start : has_end)) continue;
    EventScript::Event point{"ac2g", end == 0 ? Phase::kFlowStart : Phase::kFlowEnd};
    point.thread_id = 11 + end;
    point.timestamp_ns = begin_ns + end * step_ns / 2 + Below(step_ns / 4);
    point.attributes = {Top("pid", pid), Top("flow_id", UINT64_MAX - row)};
    events.push_back(std::move(point));
  }
  if (has_start && has_end) truth_.arrows.emplace(ids[0], ids[1]);
}

void HostileCapture::AddFile(uint32_t number, FakeChunkSource& source) {
  Events events;
  for (uint32_t i = 0; i < shape_.events; ++i) AddFileEvent(number, events);
  for (uint32_t i = 0; i < kArrowsPerFile; ++i) AddArrow(number, i, events);
  const StreamIdentity identity{.agent_id = "agent",
                                .worker = {fmt::format("i-{}", number % 2), "boot", 0, 0, ""},
                                .kind = StreamKind::kFramework,
                                .nc_idx = limits::kNoNcIdx,
                                .name = fmt::format("worker{}.pt.trace.json", number)};
  AddChunks(std::move(events), source.AddStream(identity), source);
}

void HostileCapture::AddHost(uint32_t number, FakeChunkSource& source) {
  Events events;
  const std::string instance = fmt::format("i-{}", number);
  const uint64_t interval_ns = shape_.length_ns / kSamplesPerHost;
  for (uint32_t i = 0; i < kSamplesPerHost; ++i) {
    const uint64_t at_ns = kBase + i * interval_ns;
    for (const char* cpu : {"0", "17", "average"}) {
      const double percent = static_cast<double>(Below(801)) / 8;  // exact in a float
      EventScript::Event event{std::string(kHostCpuEventType), Phase::kCounter, at_ns};
      event.has_thread = false;
      event.attributes = {{std::string(kHostCpuIdKey), std::string(cpu)},
                          {std::string(kHostUtilPercentKey), percent},
                          {std::string(kHostDurationNsKey), interval_ns}};
      events.push_back(std::move(event));
      truth_.samples.insert({instance, fmt::format("cpu {}", cpu), at_ns, percent});
    }
    const uint64_t bytes = Below(uint64_t{1} << 50);
    EventScript::Event event{std::string(kHostMemoryEventType), Phase::kCounter, at_ns};
    event.has_thread = false;
    event.attributes = {{std::string(kHostUsedBytesKey), bytes},
                        {std::string(kHostUsedPercentKey), 50.0},
                        {std::string(kHostTotalBytesKey), 2 * bytes}};
    events.push_back(std::move(event));
    truth_.samples.insert({instance, "memory", at_ns, static_cast<double>(bytes)});
  }
  const StreamIdentity identity{.agent_id = "agent",
                                .worker = {instance, "boot", 0, 0, ""},
                                .kind = StreamKind::kHost,
                                .nc_idx = limits::kNoNcIdx};
  AddChunks(std::move(events), source.AddStream(identity), source);
}

}  // namespace neurontrace
