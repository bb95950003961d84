// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/output_files.h"

namespace neurontrace {

// Returns an exporter of one file, which `make` creates on the file's bytes before this returns.
// The file is closed when the exporter finishes. `name` and `compression` are those of
// OpenCompressed; bytes_written() returns the file's size. Fails if the file cannot be opened, and
// with errors of `make`. Used by the formats with one file: pftrace without parts, JSON, Chrome
// JSON and the summaries. `files` must outlive the result. Any thread may call; the result is used
// by one thread at a time.
absl::StatusOr<std::unique_ptr<Exporter>> MakeSingleFile(
    OutputFiles& files, std::string_view name, ExportCompression compression,
    const std::function<absl::StatusOr<std::unique_ptr<Exporter>>(ByteSink&)>& make);

}  // namespace neurontrace
