// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// A change of what people decide about a capture after its start: its name, its star, its tags and
// how long it is kept. What is not set stays. Tags are added and removed one by one, so that
// changes that arrive one after the other keep each other's tags. A plain value.
struct CaptureUpdate {
  std::optional<std::string> name;  // empty: the capture loses its name
  std::optional<bool> starred;
  std::vector<std::string> add_tags;
  std::vector<std::string> remove_tags;
  std::optional<uint64_t> retention_ns;  // of CaptureSpec::Retention; 0: no limit

  // Returns whether nothing is to be changed.
  bool empty() const;
  // Fails with INVALID_ARGUMENT, which names the member, if nothing is set, if a text is too long
  // or has a control character or invalid UTF-8, if a tag is empty, begins or ends with a blank, or
  // has a comma or a reserved key (lib/trace/reserved_tags.h), if a tag is both added and removed,
  // or if a list has more than limits::kCaptureTagsMax tags.
  absl::Status Check() const;
  // Changes the record and returns whether that made a difference: adding a tag that is there, and
  // removing one that is not, makes none. Requires Check. Fails with FAILED_PRECONDITION, and
  // leaves the record as it was, if it would have more than limits::kCaptureTagsMax tags, if a tag
  // that is to be removed is one of spec.labels, which stay, or if the retention is that of a
  // continuous capture that has ended, or would leave a running one without any limit.
  absl::StatusOr<bool> ApplyTo(CaptureRecord& record) const;
  // Returns the change for the audit log: "name 'night run', starred, +baseline, -draft,
  // keep for 3600.0 s".
  std::string ToString() const;

  friend bool operator==(const CaptureUpdate&, const CaptureUpdate&) = default;
};

}  // namespace neurontrace
