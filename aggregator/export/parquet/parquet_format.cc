// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/parquet_format.h"

#include "aggregator/export/parquet/parquet_exporter.h"
#include "base/status.h"

namespace neurontrace {

bool HasParquet() { return true; }

absl::StatusOr<std::unique_ptr<Exporter>> MakeParquet(const ExportRequest& request,
                                                      OutputFiles& files) {
  if (request.compression != ExportCompression::kNone) {
    return InvalidArgument(
        "parquet: the tables are compressed as they are; leave out --compress and .gz");
  }
  if (!request.primary_group.empty() || !request.secondary_group.empty()) {
    return InvalidArgument("parquet: tables have no groups; group their rows in SQL");
  }
  if (request.split_by_worker) {
    return InvalidArgument("parquet: tables are split by size alone; leave out --split");
  }
  return std::make_unique<ParquetExporter>(
      ParquetExporter::Options{.file_bytes_max = request.max_file_bytes,
                               .has_flows = !request.no_flows},
      files);
}

}  // namespace neurontrace
