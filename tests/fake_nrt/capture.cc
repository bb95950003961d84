// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/capture.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fake_nrt/event_json.h"

namespace neurontrace {
namespace {

constexpr uint32_t kPhysicalCores = 128;

std::optional<uint32_t> Number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Reads "0", "4-7" or "0,2,4-5" into the lowest core, the highest one and the count.
bool ReadCoreList(std::string_view list, uint32_t& first, uint32_t& last, uint32_t& count) {
  count = 0;
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    const size_t dash = item.find('-');
    const auto low = Number(item.substr(0, dash));
    const auto high = dash == std::string_view::npos ? low : Number(item.substr(dash + 1));
    if (!low || !high || *high < *low || *high >= kPhysicalCores) return false;
    if (count > 0 && *low <= last) return false;
    if (count == 0) first = *low;
    last = *high;
    count += *high - *low + 1;
    if (comma == std::string_view::npos) return true;
    list.remove_prefix(comma + 1);
  }
}

constexpr uint64_t kCapacityFloor = 1024;
// Events copied out under one lock of a ring: 56 KiB, some microseconds.
constexpr size_t kBatchEvents = 512;

bool Wanted(const FetchBounds& bounds, uint32_t nc_idx) {
  return !bounds.nc_idx || *bounds.nc_idx == nc_idx;
}

}  // namespace

std::optional<Topology> Topology::FromEnvironment() {
  Topology topology;
  std::string_view size = Variable("NEURON_RT_VIRTUAL_CORE_SIZE");
  if (size.empty()) size = Variable("NEURON_LOGICAL_NC_CONFIG");
  if (!size.empty()) {
    const auto value = Number(size);
    if (!value || *value < 1 || *value > 2) return std::nullopt;
    topology.physical_per_logical = *value;
  }
  topology.total = kPhysicalCores / topology.physical_per_logical;
  topology.visible = topology.total;
  const std::string_view visible = Variable("NEURON_RT_VISIBLE_CORES");
  const std::string_view count = Variable("NEURON_RT_NUM_CORES");
  if (!visible.empty()) {
    uint32_t last = 0;
    if (!ReadCoreList(visible, topology.first, last, topology.visible)) return std::nullopt;
    if (last >= topology.total) return std::nullopt;
  } else if (!count.empty()) {
    const auto value = Number(count);
    if (!value) return std::nullopt;
    if (*value != 0) topology.visible = *value;
  }
  if (topology.first + topology.visible > topology.total) return std::nullopt;
  return topology;
}

bool Capture::Start(CaptureOwner owner, const CaptureSettings& settings, uint32_t cores) {
  const std::lock_guard lock(change_mutex_);
  if (owner_.load() != CaptureOwner::kNone) return false;
  const uint64_t capacity = std::max(settings.max_events_per_nc, kCapacityFloor);
  ++captures_;
  captured_.reset();
  for (uint32_t nc = 0; nc < cores; ++nc) {
    if (!settings.cores.test(nc)) continue;
    captured_.set(nc);
    if (rings_[nc].Open(captures_, capacity, settings.types)) continue;
    for (CoreRing& ring : rings_) ring.Close();
    return false;
  }
  owner_.store(owner);
  return true;
}

CaptureOwner Capture::Stop() {
  const std::lock_guard lock(change_mutex_);
  for (CoreRing& ring : rings_) ring.Close();
  const CaptureOwner owner = owner_.exchange(CaptureOwner::kNone);
  if (owner != CaptureOwner::kNone) Log();
  return owner;
}

void Capture::Log() const {
  const char* path = std::getenv("FAKE_NRT_CAPTURE_LOG");
  if (path == nullptr) return;
  std::string lines;
  for (uint32_t nc = 0; nc < kCoresMax; ++nc) {
    if (!captured_.test(nc)) continue;
    const RingTotals totals = rings_[nc].totals();
    for (const uint64_t number :
         {static_cast<uint64_t>(getpid()), captures_, static_cast<uint64_t>(nc), totals.accepted,
          totals.overwritten, totals.fetched}) {
      lines += std::to_string(number) + '\t';
    }
    lines += std::to_string(totals.accepted - totals.overwritten - totals.fetched) + '\n';
  }
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, lines.data(), lines.size()) < 0) {
    std::fprintf(stderr, "fake_nrt: note: cannot write %s\n", path);
  }
  if (fd >= 0) close(fd);
}

bool Capture::Fetch(const FetchBounds& bounds, uint32_t cores, const GlobalIds& gids,
                    FetchBuffer& out) {
  const std::lock_guard lock(fetch_mutex_);
  std::vector<RingEvent> batch(kBatchEvents);
  bool first_event = true;
  if (!out.Reserve(64)) return false;
  out.Text("{\"events\":[");
  for (uint32_t nc = 0; nc < cores; ++nc) {
    if (!Wanted(bounds, nc)) continue;
    // What is emitted from here on waits for the next fetch, else a fast producer would hold us.
    const uint64_t end = rings_[nc].end_seq();
    uint64_t left = bounds.max_events_per_nc;
    while (left > 0) {
      uint64_t seq = 0;
      const size_t count =
          rings_[nc].Take(end, {batch.data(), std::min<uint64_t>(left, batch.size())}, seq);
      if (count == 0) break;
      left -= count;
      for (size_t i = 0; i < count; ++i) {
        if (!first_event) out.Text(",");
        first_event = false;
        if (!AppendEventJson(out, batch[i], nc, seq + i, gids[nc].load())) return false;
        if (!out.Reserve(64)) return false;
      }
    }
  }
  out.Text("],\"data_version\":2}");
  return true;
}

size_t Capture::ExpectBytes(const FetchBounds& bounds, uint32_t cores) const {
  uint64_t events = 0;
  for (uint32_t nc = 0; nc < cores; ++nc) {
    if (Wanted(bounds, nc)) events += std::min(rings_[nc].size(), bounds.max_events_per_nc);
  }
  return events * kJsonBytesPerEvent + 4096;
}

RingTotals Capture::totals() const {
  RingTotals sum;
  for (const CoreRing& ring : rings_) {
    const RingTotals one = ring.totals();
    sum.accepted += one.accepted;
    sum.overwritten += one.overwritten;
    sum.fetched += one.fetched;
  }
  return sum;
}

}  // namespace neurontrace
