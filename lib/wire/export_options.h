// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "lib/trace/export_traits.h"
#include "neurontrace/v1/operator_service.pb.h"

// The formats of the service and what they take (lib/trace/export_traits.h), for both sides of it.
// Pure functions.
namespace neurontrace {

// How a warning of ExportDone begins where the selection has no event of a capture that has some.
inline constexpr std::string_view kNothingSelected = "nothing is selected: ";

// Null for a format that is none.
const ExportTraits* TraitsOf(v1::ExportFormat format);

// INVALID_ARGUMENT where a format of the request has not what is asked of it, or is none, with what
// to do, and where a list is longer than any that means something. The aggregator refuses by it
// whoever asks, the CLI before it asks.
absl::Status CheckExportOptions(const v1::ExportRequest& request);

// Whether the request makes several files.
bool MakesManyFiles(const v1::ExportRequest& request);

}  // namespace neurontrace
