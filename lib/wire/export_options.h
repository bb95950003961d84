// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "lib/trace/export_traits.h"
#include "neurontrace/v1/operator_service.pb.h"

// The formats of the service and what they take (lib/trace/export_traits.h), for both sides of it.
// Pure functions.
namespace neurontrace {

// The beginning of ExportDone's warning that the selection has no event although the capture has
// some. The CLI recognises it.
inline constexpr std::string_view kNothingSelected = "nothing is selected: ";

// Returns the traits of a format, or null if it is unknown.
const ExportTraits* TraitsOf(v1::ExportFormat format);

// Fails with INVALID_ARGUMENT if a format of the request does not accept an option or is unknown,
// or a list is longer than any sensible one; the message suggests what to do. The aggregator checks
// every request by it, the CLI before it sends one.
absl::Status CheckExportOptions(const v1::ExportRequest& request);

// Returns whether the request makes several files.
bool MakesManyFiles(const v1::ExportRequest& request);

}  // namespace neurontrace
