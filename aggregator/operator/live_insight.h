// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "neurontrace/v1/insight.pb.h"

namespace neurontrace {

// Says which ranks are slow or hung at this moment, from the fleet's running watch. Any thread. An
// interface because what implements it depends on folders that depend on this one.
class LiveInsightSource {
 public:
  virtual ~LiveInsightSource() = default;

  // Returns the answer for the workers of this job, or of all jobs if it is empty. Does not wait.
  // Fails with FAILED_PRECONDITION if no watch is on, and with NOT_FOUND if the watch has no worker
  // of the job.
  virtual absl::StatusOr<v1::InsightReport> Now(const std::string& job) = 0;
};

}  // namespace neurontrace
