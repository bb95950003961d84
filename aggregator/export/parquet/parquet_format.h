// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/output_files.h"

namespace neurontrace {

// Whether this program was built with Apache Arrow C++.
bool HasParquet();

// Files of a directory: see docs/formats/parquet.md. INVALID_ARGUMENT for a compression or a
// grouping, which tables have not; UNIMPLEMENTED without Arrow.
absl::StatusOr<std::unique_ptr<Exporter>> MakeParquet(const ExportRequest& request,
                                                      OutputFiles& files);

}  // namespace neurontrace
