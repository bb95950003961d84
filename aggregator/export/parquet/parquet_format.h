// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/output_files.h"

namespace neurontrace {

// Returns whether this program was built with Apache Arrow C++.
bool HasParquet();

// Returns an exporter that writes a directory of tables, see docs/formats/parquet.md. Fails with
// INVALID_ARGUMENT for a compression, a grouping or a division by worker, which tables do not have,
// and with UNIMPLEMENTED without Arrow. The table of exporter.cc has it as this format's entry.
// `files` must outlive the result. Any thread may call; the result is used by one thread at a time.
absl::StatusOr<std::unique_ptr<Exporter>> MakeParquet(const ExportRequest& request,
                                                      OutputFiles& files);

}  // namespace neurontrace
