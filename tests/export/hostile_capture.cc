// SPDX-License-Identifier: Apache-2.0
#include "tests/export/hostile_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <utility>

#include "base/clean_text.h"

namespace neurontrace {
namespace {

// No two runtimes agree on what a name may be.
const std::array<std::string, 12> kTexts = {
    "nrt_execute",
    "nc_exec_running",
    "cc_running",
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

}  // namespace

void PrintTo(const SeenEvent& event, std::ostream* out) {
  *out << "id " << event.id << " \"" << event.name.substr(0, 60) << "\" " << event.instance_id
       << " pid " << event.pid << " nc " << event.nc_idx << " tid " << event.thread_id << " ["
       << event.start_ns << ", " << event.end_ns << "]" << (event.is_instant ? " instant" : "")
       << (event.is_open ? " open" : "") << (event.is_start_lost ? " start lost" : "");
  for (const auto& [key, value] : event.attributes)
    *out << " " << key << "=" << value.substr(0, 40);
}

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t bytes = Utf8SequenceBytes(text);
    if (bytes == 0) {
      valid += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      valid += text.substr(0, bytes);
      text.remove_prefix(bytes);
    }
  }
  return valid;
}

uint64_t HostileCapture::Time() {
  return kBase + Below(shape_.length_ns / shape_.grid_ns + 1) * shape_.grid_ns;
}

std::string HostileCapture::Text() { return kTexts[Below(kTexts.size())]; }

// The last ids there are, downwards: doubles cannot tell them apart.
SeenEvent HostileCapture::NewEvent(uint32_t stream) {
  const uint64_t number = next_id_++;
  SeenEvent seen;
  seen.id = number % 2 == 0 ? UINT64_MAX - number : number;
  seen.instance_id = fmt::format("i-{}", stream % 3);
  seen.pid = 100 + stream / 3;
  seen.nc_idx = stream;
  const uint64_t thread = Below(shape_.threads);
  seen.thread_id = thread % 4 == 3 ? UINT64_MAX - thread : thread + 1;
  seen.start_ns = seen.end_ns = Time();
  return seen;
}

EventScript::Attributes HostileCapture::Attributes(std::string_view prefix, SeenEvent& seen) {
  EventScript::Attributes attributes;
  const uint64_t count = Below(4);
  for (uint64_t i = 0; i < count; ++i) {
    const std::string key = fmt::format("{}{}{}", kAttributePrefix, prefix, i);
    switch (Below(4)) {
      case 0: {
        const uint64_t number = Below(2) == 0 ? UINT64_MAX - Below(3) : Below(100);
        attributes.push_back({key, number});
        seen.attributes[key] = fmt::format("{}", number);
        break;
      }
      case 1: {
        const int64_t number = INT64_MIN + static_cast<int64_t>(Below(3));
        attributes.push_back({key, number});
        seen.attributes[key] = fmt::format("{}", number);
        break;
      }
      case 2: {
        const bool is_true = Below(2) == 0;
        attributes.push_back({key, is_true});
        seen.attributes[key] = is_true ? "true" : "false";
        break;
      }
      default: {
        const std::string text = Text();
        attributes.push_back({key, text});
        seen.attributes[key] = ValidUtf8(text);
      }
    }
  }
  return attributes;
}

// Most have both ends; of the others one is missing.
void HostileCapture::AddSpan(SeenEvent seen, std::vector<Raw>& raw) {
  const std::string name = Text();
  seen.name = ValidUtf8(name);
  const uint64_t kind = Below(20);
  const uint64_t tracking_id = seen.id ^ 0x5555;  // alone of its kind
  seen.is_open = kind == 0;
  seen.is_start_lost = kind == 1;
  static constexpr std::array<uint64_t, 6> kLengths = {0, 0, 1, 10, 1'000, 100'000};
  const uint64_t length_ns = kLengths[Below(kLengths.size())] / shape_.grid_ns * shape_.grid_ns;
  if (seen.is_start_lost) {
    raw.push_back({{name, Phase::kStop, seen.start_ns, tracking_id, seen.thread_id,
                    Attributes("stop", seen), seen.id}});
  } else {
    raw.push_back({{name, Phase::kStart, seen.start_ns, tracking_id, seen.thread_id,
                    Attributes("start", seen), seen.id}});
  }
  if (!seen.is_open && !seen.is_start_lost) {
    seen.end_ns += length_ns;
    raw.push_back(
        {{name, Phase::kStop, seen.end_ns, tracking_id, seen.thread_id, Attributes("stop", seen)}});
  }
  truth_.emplace(seen.id, std::move(seen));
}

void HostileCapture::AddStream(uint32_t number, FakeChunkSource& source) {
  std::vector<Raw> raw;
  const uint64_t first_id = next_id_;
  for (uint32_t i = 0; i < shape_.events; ++i) {
    SeenEvent seen = NewEvent(number);
    if (Below(8) != 0) {
      AddSpan(std::move(seen), raw);
      continue;
    }
    const std::string name = Text();
    seen.name = ValidUtf8(name);
    seen.is_instant = true;
    raw.push_back({{name, Phase::kInstant, seen.start_ns, 0, seen.thread_id,
                    Attributes("start", seen), seen.id}});
    truth_.emplace(seen.id, std::move(seen));
  }
  std::stable_sort(raw.begin(), raw.end(), [](const Raw& a, const Raw& b) {
    return a.event.timestamp_ns < b.event.timestamp_ns;
  });
  const uint64_t last_ns = raw.empty() ? 0 : raw.back().event.timestamp_ns;
  for (auto& [id, seen] : truth_) {
    const uint64_t made = id > UINT64_MAX / 2 ? UINT64_MAX - id : id;
    if (seen.is_open && made >= first_id) seen.end_ns = last_ns;
  }
  const StreamIdentity identity{
      .agent_id = "agent",
      .worker = {fmt::format("i-{}", number % 3), "boot", 100 + number / 3, 1, ""},
      .kind = StreamKind::kNeuronCore,
      .nc_idx = number};
  const uint32_t stream = source.AddStream(
      identity, {{RankSource::kCommunicator, static_cast<int64_t>(number), 0, "test"}});
  EventChunkBuilder builder;
  EventScript script(builder);
  for (const Raw& one : raw) {
    script.Add(one.event);
    if (Below(40) == 0) source.AddChunk(stream, builder);
  }
  if (builder.event_count() > 0) source.AddChunk(stream, builder);
}

std::map<uint64_t, SeenEvent> HostileCapture::Make(uint64_t seed, const Shape& shape,
                                                   FakeChunkSource& source) {
  HostileCapture capture(seed, shape);
  // An id of 0 is none.
  capture.next_id_ = 2;
  for (uint32_t i = 0; i < shape.streams; ++i) capture.AddStream(i, source);
  return std::move(capture.truth_);
}

}  // namespace neurontrace
