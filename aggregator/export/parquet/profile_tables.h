// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/output_files.h"

namespace neurontrace {

// Where tables go, and about how long their files get.
struct TableTarget {
  OutputFiles& files;
  uint64_t file_bytes_max = 0;
  uint64_t& bytes_written;
};

// CpuUsage and HostMemUsage. Samples without what such a row must have are left out; what cannot be
// read is in the summary.
absl::Status WriteHostTables(const TimelineHeader& header, const TableTarget& target,
                             ExportSummary& summary);
absl::Status WriteDeviceProfileTable(const TimelineHeader& header, const TableTarget& target);
// SystemProfileMetadata. Both times 0: there is no event.
absl::Status WriteMetadataTable(const TimelineHeader& header, uint64_t first_ns, uint64_t last_ns,
                                const TableTarget& target);
absl::Status WriteWarningTable(const TimelineHeader& header,
                               const std::vector<std::string>& warnings, const TableTarget& target);
absl::Status WriteLossTable(const TimelineHeader& header, const TableTarget& target);
absl::Status WriteClockTable(const TimelineHeader& header, const TableTarget& target);
// SchemaFields: every column of every table that there can be.
absl::Status WriteSchemaTable(const TableTarget& target);

}  // namespace neurontrace
