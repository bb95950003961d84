// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/capture_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/capture_limits.h"
#include "lib/trace/limits.h"
#include "lib/trace/reserved_tags.h"

namespace neurontrace {
namespace {

absl::Status CheckUpdateText(std::string_view field, std::string_view text, size_t bytes_max) {
  if (text.size() > bytes_max) {
    return InvalidArgument("{} has {} bytes; the limit is {}", field, text.size(), bytes_max);
  }
  if (std::ranges::any_of(text, IsControl)) {
    return InvalidArgument("{} has a control character", field);
  }
  // Whatever CleanText would change is not fit to be stored and shown.
  if (CleanText(text, bytes_max) != text) {
    return InvalidArgument("{} is not valid UTF-8, or has an invisible character", field);
  }
  return absl::OkStatus();
}

// Lists of tags are written with commas between them.
absl::Status CheckTag(std::string_view field, std::string_view tag) {
  RETURN_IF_ERROR(CheckUpdateText(field, tag, limits::kCaptureTagBytesMax));
  if (tag.empty()) return InvalidArgument("{} is empty", field);
  if (tag.front() == ' ' || tag.back() == ' ') {
    return InvalidArgument("{} begins or ends with a blank: '{}'", field, tag);
  }
  if (tag.find(',') != std::string_view::npos) {
    return InvalidArgument("{} has a comma: '{}'; write each tag by itself", field, tag);
  }
  if (const size_t equals = tag.find('=');
      equals != std::string_view::npos && IsReservedTag(tag.substr(0, equals))) {
    return InvalidArgument("{}: the tag '{}' is reserved for the aggregator; choose another key",
                           field, tag.substr(0, equals));
  }
  return absl::OkStatus();
}

absl::Status CheckTags(std::string_view field, const std::vector<std::string>& tags) {
  if (tags.size() > limits::kCaptureTagsMax) {
    return InvalidArgument("{} has {} entries; the limit is {}", field, tags.size(),
                           limits::kCaptureTagsMax);
  }
  for (size_t i = 0; i < tags.size(); ++i) {
    RETURN_IF_ERROR(CheckTag(fmt::format("{}[{}]", field, i), tags[i]));
  }
  return absl::OkStatus();
}

// Returns whether the tag was given at the start of the capture, as KEY=VALUE.
bool IsLabel(const CaptureSpec& spec, std::string_view tag) {
  return std::ranges::any_of(spec.labels, [tag](const KeyValue& label) {
    return tag.size() == label.key.size() + 1 + label.value.size() && tag.starts_with(label.key) &&
           tag[label.key.size()] == '=' && tag.ends_with(label.value);
  });
}

// Fails with FAILED_PRECONDITION if the retention of the capture cannot be set to this.
absl::Status CheckRetention(const CaptureRecord& record, uint64_t retention_ns) {
  if (record.spec.mode != CaptureMode::kContinuous) return absl::OkStatus();
  if (HasEnded(record.state)) {
    return FailedPrecondition(
        "capture {} is continuous and has ended: it has kept its latest events, and none of them "
        "expires any more; delete the capture when it is not needed",
        record.id.ToString());
  }
  if (retention_ns == 0 && record.spec.retention.bytes == 0) {
    return FailedPrecondition(
        "capture {} is continuous and has no limit in bytes, so it needs a maximum age",
        record.id.ToString());
  }
  return absl::OkStatus();
}

}  // namespace

bool CaptureUpdate::empty() const { return *this == CaptureUpdate(); }

absl::Status CaptureUpdate::Check() const {
  if (empty()) {
    return InvalidArgument(
        "nothing to change; set name, starred, add_tags, remove_tags or retention_ns");
  }
  if (name) RETURN_IF_ERROR(CheckUpdateText("name", *name, limits::kIdentityStringBytesMax));
  RETURN_IF_ERROR(CheckTags("add_tags", add_tags));
  RETURN_IF_ERROR(CheckTags("remove_tags", remove_tags));
  for (const std::string& tag : add_tags) {
    if (std::ranges::find(remove_tags, tag) == remove_tags.end()) continue;
    return InvalidArgument("the tag '{}' is both in add_tags and in remove_tags", tag);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CaptureUpdate::ApplyTo(CaptureRecord& record) const {
  assert(Check().ok());
  std::set<std::string> tags(record.tags.begin(), record.tags.end());
  for (const std::string& tag : remove_tags) {
    if (tags.erase(tag) > 0 || !IsLabel(record.spec, tag)) continue;
    return FailedPrecondition(
        "the tag '{}' of capture {} was set at its start and cannot be removed", tag,
        record.id.ToString());
  }
  for (const std::string& tag : add_tags) {
    if (!IsLabel(record.spec, tag)) tags.insert(tag);
  }
  // A record that a later build has written may hold more; removing tags from it must be possible.
  if (tags.size() > std::max(limits::kCaptureTagsMax, record.tags.size())) {
    return FailedPrecondition(
        "capture {} would have {} tags; the limit is {}; remove some of its tags first",
        record.id.ToString(), tags.size(), limits::kCaptureTagsMax);
  }
  if (retention_ns) RETURN_IF_ERROR(CheckRetention(record, *retention_ns));
  std::vector<std::string> sorted(tags.begin(), tags.end());
  const std::string& new_name = name ? *name : record.spec.name;
  const bool is_starred = starred.value_or(record.starred);
  const uint64_t kept_ns = retention_ns.value_or(record.spec.retention.duration_ns);
  if (new_name == record.spec.name && is_starred == record.starred && sorted == record.tags &&
      kept_ns == record.spec.retention.duration_ns) {
    return false;
  }
  record.spec.retention.duration_ns = kept_ns;
  record.spec.name = new_name;
  record.starred = is_starred;
  record.tags = std::move(sorted);
  return true;
}

std::string CaptureUpdate::ToString() const {
  std::string text;
  const auto add = [&text](std::string part) { text += (text.empty() ? "" : ", ") + part; };
  if (name) add(fmt::format("name '{}'", *name));
  if (starred) add(*starred ? "starred" : "not starred");
  for (const std::string& tag : add_tags) add("+" + tag);
  for (const std::string& tag : remove_tags) add("-" + tag);
  if (retention_ns) add(*retention_ns == 0 ? "keep" : "keep for " + FormatSeconds(*retention_ns));
  return text;
}

}  // namespace neurontrace
