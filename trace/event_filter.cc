// SPDX-License-Identifier: Apache-2.0
#include "trace/event_filter.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr size_t kItemsMax = 1'024;
constexpr std::string_view kHardware = "hardware";
constexpr std::string_view kSoftware = "software";

// Both of the vendor's lists of hardware events, which differ in one name (nrt_model_switch in one,
// nc_model_switch in the other).
constexpr std::array<std::string_view, 8> kHardwareTypes = {
    "nc_exec_running",  "cc_running",           "cc_exec_barrier", "numerical_err",
    "nrt_model_switch", "timestamp_sync_point", "hw_notify",       "nc_model_switch"};

struct Alias {
  std::string_view name;
  std::string_view real;
};
// Names of the documentation and of older releases, and what the runtime emits.
constexpr std::array<Alias, 8> kAliases = {{{"device_exec", "nc_exec_running"},
                                            {"cc_exec", "cc_running"},
                                            {"model_load", "nrt_load"},
                                            {"runtime_execute", "kmgr_exec_core"},
                                            {"tensor_read", "nrt_tensor_read"},
                                            {"tensor_write", "nrt_tensor_write"},
                                            {"dlr_infer", "kmgr_exec_core"},
                                            {"kbl_infer_exec_wait", "kbl_exec_wait"}}};

std::string_view RealName(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.real;
  }
  return name;
}

bool Matches(std::string_view item, std::string_view event_type) {
  if (item == kHardware) return IsHardwareEventType(event_type);
  if (item == kSoftware) return !IsHardwareEventType(event_type);
  return item == event_type;
}

absl::Status CheckName(std::string_view item, std::string_view name) {
  if (name.empty()) return InvalidArgument("event type filter '{}': a name is missing", item);
  if (name.size() > limits::kIdentityStringBytesMax) {
    return InvalidArgument("event type filter: a name of {} bytes; the limit is {}", name.size(),
                           limits::kIdentityStringBytesMax);
  }
  // Types of framework traces have spaces and colons; a comma or a second ^ is a slip.
  const auto wrong = std::find_if(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == ',' || c == '^';
  });
  if (wrong != name.end()) {
    return InvalidArgument(
        "event type filter '{}': unexpected '{}'; write names, hardware, software or ^name", item,
        *wrong);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EventFilter> EventFilter::Parse(const std::vector<std::string>& items) {
  if (items.size() > kItemsMax) {
    return InvalidArgument("event type filter: {} items; the limit is {}", items.size(), kItemsMax);
  }
  EventFilter filter;
  for (const std::string& item : items) {
    const bool exclude = item.starts_with('^');
    const std::string_view name = std::string_view(item).substr(exclude ? 1 : 0);
    RETURN_IF_ERROR(CheckName(item, name));
    (exclude ? filter.exclude_ : filter.include_).emplace_back(RealName(name));
  }
  return filter;
}

bool EventFilter::Selects(std::string_view event_type) const {
  const std::string_view real = RealName(event_type);  // an older runtime emits the older name
  const auto matches = [real](const std::string& item) { return Matches(item, real); };
  return (include_.empty() || std::any_of(include_.begin(), include_.end(), matches)) &&
         std::none_of(exclude_.begin(), exclude_.end(), matches);
}

bool IsHardwareEventType(std::string_view event_type) {
  return std::find(kHardwareTypes.begin(), kHardwareTypes.end(), RealName(event_type)) !=
         kHardwareTypes.end();
}

absl::StatusOr<std::vector<uint32_t>> ParseCoreList(std::string_view text) {
  const auto refuse = [text](std::string_view item) {
    return InvalidArgument("core list '{}': '{}' is not a core from 0 to {} or a range like 0-3",
                           text, item, limits::kCoresPerWorkerMax - 1);
  };
  std::vector<uint32_t> cores;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const std::string_view item = text.substr(from, comma - from);
    from = comma + 1;
    const char* const end = item.data() + item.size();
    uint32_t first = 0;
    auto parsed = std::from_chars(item.data(), end, first);
    if (parsed.ec != std::errc()) return refuse(item);
    uint32_t last = first;
    if (parsed.ptr != end) {
      if (*parsed.ptr != '-') return refuse(item);
      parsed = std::from_chars(parsed.ptr + 1, end, last);
      if (parsed.ec != std::errc() || parsed.ptr != end) return refuse(item);
    }
    if (last < first || last >= limits::kCoresPerWorkerMax) return refuse(item);
    for (uint32_t core = first; core <= last; ++core) cores.push_back(core);
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

}  // namespace neurontrace
