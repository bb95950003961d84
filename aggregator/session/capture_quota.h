// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/trace/capture_spec.h"

namespace neurontrace {

// Limits on what may be stored, in bytes; 0: only the disk limits it. A plain value.
struct CaptureQuotas {
  uint64_t capture_bytes = 0;  // of one capture
  uint64_t job_bytes = 0;      // of one job, over all captures
  uint64_t store_bytes = 0;    // of the whole store

  bool any() const { return capture_bytes > 0 || job_bytes > 0 || store_bytes > 0; }
};

// What is stored already, in bytes.
struct StoreUse {
  uint64_t store_bytes = 0;
  std::string job;         // of the jobs that the capture selects, the one with the most stored
  uint64_t job_bytes = 0;  // of that job
  // Of the capture itself, included in the sums above; nullopt: it has not begun.
  std::optional<uint64_t> own_bytes;
};

// How much a capture may store before it is stopped.
struct CaptureAllowance {
  static constexpr uint64_t kNoLimit = UINT64_MAX;
  // How long an allowance is used before it is computed again, as other captures store as well.
  static constexpr uint64_t kAgeMaxNs = 5'000'000'000;

  uint64_t bytes = kNoLimit;  // in all, from the capture's start
  std::string words;          // which limit it is: "its limit of 5.0 GB"
};

// Returns the smallest of the quotas that apply and of what the capture itself asks for. Fails with
// RESOURCE_EXHAUSTED, with the numbers in the message, if a quota is used up or the capture asks
// for more than is left. A capture that is running was checked when it began and may use what
// others leave. One that stores nothing, a flight recorder or a preview, is always admitted. Pure.
absl::StatusOr<CaptureAllowance> Admit(const CaptureSpec& spec, const CaptureQuotas& quotas,
                                       const StoreUse& use);

// Formats bytes for people with a decimal unit that leaves few digits: "5.0 GB".
std::string BytesText(uint64_t bytes);

}  // namespace neurontrace
