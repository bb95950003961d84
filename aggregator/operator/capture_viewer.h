// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Answers the page's questions about captures. Any thread. An interface because aggregator/view,
// which implements it, depends on folders that depend on this one.
class CaptureViewer {
 public:
  virtual ~CaptureViewer() = default;

  // Returns the answer `what` of docs/formats/view_api.md, such as "spans". `query` has the
  // parameters as they are in the URL. Blocks until the answer is made; asks `cancelled` now and
  // then and ends early if it returns true. Fails with INVALID_ARGUMENT for an unacceptable
  // question, with CANCELLED, and with errors of the store.
  virtual absl::StatusOr<std::string> View(const CaptureRecord& record, std::string_view what,
                                           std::string_view query,
                                           const std::function<bool()>& cancelled) = 0;
};

}  // namespace neurontrace
