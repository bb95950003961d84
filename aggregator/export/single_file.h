// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/output_files.h"

namespace neurontrace {

// An exporter of one file, made by `make` on the file's bytes: closed when the exporter finishes.
// OpenCompressed says what `name` and `compression` become; bytes_written() is what the file has.
absl::StatusOr<std::unique_ptr<Exporter>> MakeSingleFile(
    OutputFiles& files, std::string_view name, ExportCompression compression,
    const std::function<absl::StatusOr<std::unique_ptr<Exporter>>(ByteSink&)>& make);

}  // namespace neurontrace
