// SPDX-License-Identifier: Apache-2.0
#include "tests/export/hostile_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "lib/trace/host_samples.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// No two runtimes agree on what a name may be.
const std::array<std::string, 16> kTexts = {
    "nrt_execute",
    "nc_exec_running",
    "cc_running",
    "kbl_exec_pre",
    "nrt_load",
    "enc_barrier",
    "timestamp_sync_point",
    "",
    "caf\xc3\xa9 \"quoted\" \\ back\x01slash\n\t",
    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x94\xa5",
    "\xff\xfe\xc3",    // no UTF-8
    "a\xed\xa0\x80z",  // half of a pair
    "</script>{}[],:'",
    std::string(3'000, 'x'),
    std::string("nul\0inside", 10),
    "\xe2\x80\xae right to left",
};

// What a chunk calls JSON, and need not be: the members of objects within are none of the event's.
const std::array<std::string, 5> kJsonTexts = {R"({"a":1,"p.stop0":[1,{"b":null}],"id":"2"})",
                                               R"([])",
                                               R"({"c":"caf)"
                                               "\xc3\xa9"
                                               R"("})",
                                               R"([[],{}])", R"({"broken)"};

// What formats write of an event themselves: an attribute of the same name must not be taken for
// it.
const std::array<std::string, 16> kReservedNames = {
    "flow",      "open",        "clock",    "squeezed_duration_ns",

    "id",        "name",        "duration", "timestamp",
    "thread_id", "process_id",  "squeezed", "category",
    "phase",     "nrta_seq_id", "derived",  "trace_event_source"};

// Few, so that events have them in common.
const std::array<uint64_t, 8> kExecutionIds = {
    0, 1, 7, INT64_MAX, uint64_t{INT64_MAX} + 1, uint64_t{1} << 32, UINT64_MAX - 1, UINT64_MAX};

// A chunk holds no others than finite ones.
const std::array<double, 6> kDoubles = {0.1, -2.5, 5e-324, std::numeric_limits<double>::max(),
                                        3.0, 1e-7};

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

uint64_t HostileCapture::Time() {
  return kBase + Below(shape_.length_ns / shape_.grid_ns + 1) * shape_.grid_ns;
}

// A tenth of the capture at most.
uint64_t HostileCapture::Length() {
  const std::array<uint64_t, 6> lengths = {
      0, 0, 1, 10, shape_.length_ns / 1'000, shape_.length_ns / 10};
  return lengths[Below(lengths.size())] / shape_.grid_ns * shape_.grid_ns;
}

const std::string& HostileCapture::Text() { return kTexts[Below(kTexts.size())]; }

// The last ids there are, downwards from the very last: doubles cannot tell them apart.
uint64_t HostileCapture::NewId() {
  const uint64_t number = next_number_++;
  return number % 2 == 0 ? UINT64_MAX - (number - kFirstNumber) : number;
}

EventScript::Value HostileCapture::Value(std::string& text) {
  switch (Below(6)) {
    case 0: {
      const uint64_t number = Below(2) == 0 ? UINT64_MAX - Below(3) : Below(100);
      text = fmt::format("{}", number);
      return number;
    }
    case 1: {
      const int64_t number = INT64_MIN + static_cast<int64_t>(Below(3));
      text = fmt::format("{}", number);
      return number;
    }
    case 2: {
      const bool is_true = Below(2) == 0;
      text = is_true ? "true" : "false";
      return is_true;
    }
    case 3: {
      const double number = kDoubles[Below(kDoubles.size())];
      text = fmt::format("{}", number);
      return number;
    }
    case 4:
      text = kJsonTexts[Below(kJsonTexts.size())];
      return EventScript::Json{text};
    default:
      text = Text();
      return text;
  }
}

void HostileCapture::AddAttribute(std::string name, SeenEvent& seen,
                                  EventScript::Attributes& attributes) {
  std::string text;
  EventScript::Value value = Value(text);
  ReadAttribute(name, text, seen);
  attributes.push_back({std::move(name), std::move(value)});
}

EventScript::Attributes HostileCapture::Attributes(std::string_view prefix, SeenEvent& seen) {
  static const std::array<std::string, 3> kEnds = {"", "\xc3\xa9\"\\", "\xff"};
  EventScript::Attributes attributes;
  const uint64_t count = Below(4);
  for (uint64_t i = 0; i < count; ++i) {
    AddAttribute(fmt::format("{}{}{}", prefix, i, kEnds[Below(kEnds.size())]), seen, attributes);
  }
  if (Below(6) == 0) {
    const std::string value = fmt::format("{}{}", kValuePrefix, Below(1'000));
    const std::string& name = kReservedNames[Below(kReservedNames.size())];
    ReadAttribute(name, value, seen);
    attributes.push_back({name, value});
  }
  // The same name in the event's data and beside it.
  if (Below(10) == 0) {
    AddAttribute("p.twice", seen, attributes);
    AddAttribute("p.twice", seen, attributes);
    attributes.back().scope = KeyScope::kTop;
  }
  // The start has what the stop can have.
  if (Below(4) == 0) AddAttribute("p.stop0", seen, attributes);
  return attributes;
}

void HostileCapture::AddExecution(std::string_view name, SeenEvent& seen,
                                  EventScript::Attributes& attributes) {
  if (name != "nc_exec_running" && name != "cc_running" && name != "kbl_exec_pre") return;
  for (const std::string_view key : kExecutionNames) {
    if (Below(4) == 0) continue;
    const uint64_t id = kExecutionIds[Below(kExecutionIds.size())];
    std::string text = fmt::format("{}", id);
    EventScript::Value value = id;
    if (const uint64_t kind = Below(10); kind == 0) {
      value = text;
    } else if (kind == 1) {
      value = Value(text);
    }
    ReadAttribute(key, text, seen);
    attributes.push_back({std::string(key), std::move(value)});
  }
  if (name == "kbl_exec_pre") attributes.push_back({"model_name", std::string("resnet")});
}

EventScript::Attributes HostileCapture::StopAttributes(SeenEvent& seen) {
  EventScript::Attributes attributes;
  const uint64_t count = Below(3);
  for (uint64_t i = 0; i < count; ++i) {
    AddAttribute(fmt::format("{}{}", kStopAttributePrefix, i), seen, attributes);
  }
  return attributes;
}

std::optional<uint64_t> HostileCapture::SequenceId(SeenEvent& seen) {
  if (Below(8) != 0) return std::nullopt;
  const uint64_t id = Below(2) == 0 ? UINT64_MAX - Below(3) : Below(1'000);
  seen.nrta_seq_id = fmt::format("{}", id);
  return id;
}

SeenEvent HostileCapture::NewEvent(uint32_t stream) {
  SeenEvent seen;
  seen.id = NewId();
  seen.instance_id = fmt::format("i-{}", stream % 2);
  seen.process_id = fmt::format("{}", 100 + stream / 4);
  seen.nc_idx = fmt::format("{}", stream);
  seen.start_ns = seen.end_ns = Time();
  return seen;
}

void HostileCapture::AddInstant(SeenEvent seen, uint64_t thread, Events& events) {
  const std::string& name = Text();
  seen.name = ValidUtf8(name);
  seen.is_instant = true;
  EventScript::Event event{name,   Phase::kInstant,        seen.start_ns, 0,
                           thread, Attributes("p.", seen), seen.id};
  event.nrta_seq_id = SequenceId(seen);
  events.push_back(std::move(event));
  truth_.events.emplace(seen.id, std::move(seen));
}

// Most have both ends; of the others one is missing.
void HostileCapture::AddSpan(SeenEvent seen, uint64_t thread, Events& events) {
  const std::string& name = Text();
  seen.name = ValidUtf8(name);
  // The greatest id is of a whole span, and so is the greatest tracking id.
  const uint64_t kind = seen.id == UINT64_MAX ? 2 : Below(20);
  const uint64_t tracking_id = seen.id == UINT64_MAX ? seen.id : seen.id ^ 0x5555;  // of no other
  seen.is_open = kind == 0;
  seen.is_start_lost = kind == 1;
  if (!seen.is_start_lost) {
    EventScript::Event start{name,   Phase::kStart,          seen.start_ns, tracking_id,
                             thread, Attributes("p.", seen), seen.id};
    start.nrta_seq_id = SequenceId(seen);
    AddExecution(name, seen, start.attributes);
    events.push_back(std::move(start));
  }
  if (!seen.is_open) {
    if (!seen.is_start_lost) seen.end_ns += Length();
    EventScript::Event stop{name,        Phase::kStop, seen.end_ns,
                            tracking_id, thread,       StopAttributes(seen)};
    // Identifies the span: a stop of a whole span has no place for an id.
    if (seen.is_start_lost) stop.id = seen.id;
    events.push_back(std::move(stop));
  }
  truth_.events.emplace(seen.id, std::move(seen));
}

void HostileCapture::AddCore(uint32_t number, FakeChunkSource& source) {
  Events events;
  const uint64_t first_number = next_number_;
  for (uint32_t i = 0; i < shape_.events; ++i) {
    SeenEvent seen = NewEvent(number);
    uint64_t thread = Below(shape_.threads);
    thread = thread % 4 == 3 ? UINT64_MAX - (thread - 3) : thread + 1;
    seen.thread_id = fmt::format("{}", thread);
    if (seen.id != UINT64_MAX && Below(8) == 0) {
      AddInstant(std::move(seen), thread, events);
    } else {
      AddSpan(std::move(seen), thread, events);
    }
  }
  uint64_t last_ns = 0;
  for (const EventScript::Event& event : events) last_ns = std::max(last_ns, event.timestamp_ns);
  for (auto& [id, seen] : truth_.events) {
    const uint64_t made = id > UINT64_MAX / 2 ? UINT64_MAX - id + kFirstNumber : id;
    if (seen.is_open && made >= first_number) seen.end_ns = last_ns;
  }
  const StreamIdentity identity{
      .agent_id = "agent",
      .worker = {fmt::format("i-{}", number % 2), "boot", 100 + number / 4, 1, ""},
      .kind = StreamKind::kNeuronCore,
      .nc_idx = number};
  const uint32_t stream = source.AddStream(
      identity, {{RankSource::kCommunicator, static_cast<int64_t>(number), 0, "test"}});
  AddChunks(std::move(events), stream, source);
}

void HostileCapture::AddChunks(Events events, uint32_t stream, FakeChunkSource& source) {
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.timestamp_ns < b.timestamp_ns; });
  EventChunkBuilder builder;
  EventScript script(builder);
  for (const EventScript::Event& event : events) {
    script.Add(event);
    if (Below(40) == 0) source.AddChunk(stream, builder);
  }
  if (builder.event_count() > 0) source.AddChunk(stream, builder);
}

CaptureTruth HostileCapture::Make(uint64_t seed, const Shape& shape, FakeChunkSource& source) {
  HostileCapture capture(seed, shape);
  for (uint32_t i = 0; i < shape.streams; ++i) capture.AddCore(i, source);
  for (uint32_t i = 0; i < shape.files; ++i) capture.AddFile(i, source);
  for (uint32_t i = 0; i < shape.hosts; ++i) capture.AddHost(i, source);
  return std::move(capture.truth_);
}

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
  ReadAttribute("p.id", fmt::format("{}", id), seen);
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
