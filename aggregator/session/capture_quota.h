// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/trace/capture_spec.h"

namespace neurontrace {

// How much may be stored; 0: as much as there is room for.
struct CaptureQuotas {
  uint64_t capture_bytes = 0;  // of one capture
  uint64_t job_bytes = 0;      // of one job, over all captures
  uint64_t store_bytes = 0;    // of all

  bool any() const { return capture_bytes > 0 || job_bytes > 0 || store_bytes > 0; }
};

// What is stored already.
struct StoreUse {
  uint64_t store_bytes = 0;
  std::string job;         // that has the most of those that the capture selects
  uint64_t job_bytes = 0;  // of it
  // Of the capture itself, which are among the others; nothing: it has yet to begin.
  std::optional<uint64_t> own_bytes;
};

// How much a capture may store before it is stopped.
struct CaptureAllowance {
  static constexpr uint64_t kNoLimit = UINT64_MAX;
  // Others store as well: for so long it is believed.
  static constexpr uint64_t kAgeMaxNs = 5'000'000'000;

  uint64_t bytes = kNoLimit;  // in all
  std::string words;          // whose limit it is: "its quota of 5.0 GB (--quota-capture-bytes)"
};

// By the smallest quota that applies, and by what the capture itself asks for.
// RESOURCE_EXHAUSTED, with the numbers, where a quota is used up or the capture asks for more than
// is left; one that goes on was asked when it began, and may have what others leave. What stores
// nothing always may. Pure.
absl::StatusOr<CaptureAllowance> Admit(const CaptureSpec& spec, const CaptureQuotas& quotas,
                                       const StoreUse& use);

// "5.0 GB": for people, with a unit that leaves few digits.
std::string BytesText(uint64_t bytes);

}  // namespace neurontrace
