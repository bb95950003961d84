// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/event_filter.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Items of one filter; each event type is compared with all of them.
constexpr size_t kItemsMax = 1'024;
constexpr std::string_view kHardware = "hardware";
constexpr std::string_view kSoftware = "software";
constexpr char kAnyEnd = '*';
// Bytes of a name that EditDistance compares.
constexpr size_t kComparedBytesMax = 64;

// Both of the vendor's lists of hardware events, which differ in one name (nrt_model_switch in one,
// nc_model_switch in the other).
constexpr std::array<std::string_view, 8> kHardwareTypes = {
    "nc_exec_running",  "cc_running",           "cc_exec_barrier", "numerical_err",
    "nrt_model_switch", "timestamp_sync_point", "hw_notify",       "nc_model_switch"};

// Another name of an event type.
struct Alias {
  std::string_view name;
  std::string_view real;
};
// Names of the documentation and of older releases, with the names that the runtime emits.
constexpr std::array<Alias, 8> kAliases = {{{"device_exec", "nc_exec_running"},
                                            {"cc_exec", "cc_running"},
                                            {"model_load", "nrt_load"},
                                            {"runtime_execute", "kmgr_exec_core"},
                                            {"tensor_read", "nrt_tensor_read"},
                                            {"tensor_write", "nrt_tensor_write"},
                                            {"dlr_infer", "kmgr_exec_core"},
                                            {"kbl_infer_exec_wait", "kbl_exec_wait"}}};

// Returns the name that the runtime emits for a name of any release.
std::string_view RealName(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.real;
  }
  return name;
}

bool IsGroup(std::string_view item) { return item == kHardware || item == kSoftware; }

// `item` is of a parsed filter, so it has the real name. An older runtime emits the older name of a
// type.
bool Matches(std::string_view item, std::string_view event_type) {
  if (IsGroup(item)) return (item == kHardware) == IsHardwareEventType(event_type);
  const std::string_view real = RealName(event_type);
  if (!item.ends_with(kAnyEnd)) return item == real;
  item.remove_suffix(1);
  return real.starts_with(item) || event_type.starts_with(item);
}

// Fails with INVALID_ARGUMENT, quoting `item`, if its name (without the ^) cannot be one.
absl::Status CheckName(std::string_view item, std::string_view name) {
  if (name.empty()) return InvalidArgument("event type filter '{}': a name is missing", item);
  if (name.size() > limits::kIdentityStringBytesMax) {
    return InvalidArgument("event type filter: a name of {} bytes; the limit is {}", name.size(),
                           limits::kIdentityStringBytesMax);
  }
  // Types of framework traces contain spaces and colons; a comma or a second ^ is a typing error.
  const auto wrong = std::find_if(name.begin(), name.end(),
                                  [](char c) { return IsControl(c) || c == ',' || c == '^'; });
  if (wrong != name.end()) {
    return InvalidArgument(
        "event type filter '{}': unexpected '{}'; write names, hardware, software or ^name", item,
        *wrong);
  }
  if (name.find(kAnyEnd) < name.size() - 1) {
    return InvalidArgument("event type filter '{}': a * can only end a name", item);
  }
  return absl::OkStatus();
}

// One item of a filter after parsing. `name` is the real one of an alias, and may end in *.
struct Item {
  bool exclude = false;
  std::string_view name;
};
// Parses one item; the result refers to `text`. Fails as CheckName does.
absl::StatusOr<Item> ReadItem(std::string_view text) {
  const bool exclude = text.starts_with('^');
  const Item item{exclude, text.substr(exclude ? 1 : 0)};
  RETURN_IF_ERROR(CheckName(text, item.name));
  return Item{exclude, RealName(item.name)};
}

// Returns the Levenshtein distance, by the usual algorithm with one row of the matrix. If `wanted`
// ends in *, it is compared with the beginning of `name` that fits best.
size_t EditDistance(std::string_view wanted, std::string_view name) {
  const bool any_end = wanted.ends_with(kAnyEnd);
  if (any_end) wanted.remove_suffix(1);
  wanted = wanted.substr(0, kComparedBytesMax);
  name = name.substr(0, kComparedBytesMax);
  std::array<size_t, kComparedBytesMax + 1> row;
  const auto row_end = row.begin() + name.size() + 1;
  std::iota(row.begin(), row_end, size_t{0});
  for (size_t i = 0; i < wanted.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < name.size(); ++j) {
      const size_t replaced = diagonal + (wanted[i] == name[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return any_end ? *std::min_element(row.begin(), row_end) : row[name.size()];
}

// Returns the known type, or the group, with the least edit distance. Of equal ones the first wins.
std::string_view Nearest(std::string_view wanted, std::span<const std::string> known) {
  std::optional<size_t> least;
  std::string_view nearest;
  const auto try_name = [&](std::string_view name) {
    const size_t distance = EditDistance(wanted, name);
    if (least && distance >= *least) return;
    least = distance;
    nearest = name;
  };
  for (const std::string& name : known) try_name(name);
  try_name(kHardware);
  try_name(kSoftware);
  return nearest;
}

}  // namespace

absl::StatusOr<EventFilter> EventFilter::Parse(const std::vector<std::string>& items) {
  if (items.size() > kItemsMax) {
    return InvalidArgument("event type filter: {} items; the limit is {}", items.size(), kItemsMax);
  }
  EventFilter filter;
  for (const std::string& text : items) {
    ASSIGN_OR_RETURN(const Item item, ReadItem(text));
    (item.exclude ? filter.exclude_ : filter.include_).emplace_back(item.name);
  }
  return filter;
}

bool EventFilter::Selects(std::string_view event_type) const {
  const auto matches = [event_type](const std::string& item) { return Matches(item, event_type); };
  return (include_.empty() || std::any_of(include_.begin(), include_.end(), matches)) &&
         std::none_of(exclude_.begin(), exclude_.end(), matches);
}

bool EventFilter::selects_only_hardware() const {
  return !include_.empty() &&
         std::all_of(include_.begin(), include_.end(), [](const std::string& item) {
           return item == kHardware || IsHardwareEventType(item);
         });
}

std::vector<UnknownEventType> UnknownEventTypes(std::span<const std::string> items,
                                                std::span<const std::string> known) {
  std::vector<UnknownEventType> unknown;
  if (known.empty()) return unknown;
  for (const std::string& text : items) {
    const absl::StatusOr<Item> item = ReadItem(text);
    if (!item.ok() || IsGroup(item->name)) continue;
    const bool matches = std::any_of(known.begin(), known.end(), [&](const std::string& type) {
      return Matches(item->name, type);
    });
    if (matches) continue;
    if (unknown.size() == kUnknownEventTypesMax) break;
    // The typed name, not the one that it is an alias for, resembles the name that was meant.
    const std::string_view written = std::string_view(text).substr(item->exclude ? 1 : 0);
    unknown.push_back({text, std::string(Nearest(written, known))});
  }
  return unknown;
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
  // Each round takes one item. A comma at the end leaves an empty item, which is refused.
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
    // `last` is limited, so that a range cannot exhaust memory.
    for (uint32_t core = first; core <= last; ++core) cores.push_back(core);
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

}  // namespace neurontrace
