// SPDX-License-Identifier: Apache-2.0
// In the place of parquet_format.cc where Apache Arrow C++ was not found.
#include "aggregator/export/parquet/parquet_format.h"

namespace neurontrace {

bool HasParquet() { return false; }

absl::StatusOr<std::unique_ptr<Exporter>> MakeParquet(const ExportRequest&, OutputFiles&) {
  return absl::UnimplementedError(
      "parquet: this aggregator was built without Apache Arrow C++; choose another --format, or "
      "run scripts/setup and rebuild (see docs/developer/dependencies.md)");
}

}  // namespace neurontrace
