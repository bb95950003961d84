// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/export/export_insight.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/output_files.h"

namespace neurontrace {

// Where tables are written, and the approximate size of their files. All of it must outlive the
// call. The functions below write one table each on the exporter's thread, and fail with errors of
// the files.
struct TableTarget {
  OutputFiles& files;
  uint64_t file_bytes_max = 0;
  uint64_t& bytes_written;
};

// Writes CpuUsage and HostMemUsage. Samples that lack a required value are omitted; unreadable
// chunks are reported in the summary.
absl::Status WriteHostTables(const TimelineHeader& header, const TableTarget& target,
                             ExportSummary& summary);
// Writes DeviceProfileList.
absl::Status WriteDeviceProfileTable(const TimelineHeader& header, const TableTarget& target);
// Writes SystemProfileMetadata. Both times are 0 if there is no event. `judged` is the text of the
// export's CaptureAnswer.
absl::Status WriteMetadataTable(const TimelineHeader& header, uint64_t first_ns, uint64_t last_ns,
                                std::string_view judged, const TableTarget& target);
// Writes Warning, with everything that ForEachWarning lists.
absl::Status WriteWarningTable(const TimelineHeader& header,
                               const std::vector<std::string>& warnings, const TableTarget& target);
// Writes NtLosses: the sums of each stream.
absl::Status WriteLossTable(const TimelineHeader& header, const TableTarget& target);
// Writes NtClocks: one row for each boot of an instance.
absl::Status WriteClockTable(const TimelineHeader& header, const TableTarget& target);
// Writes NtVerdicts: one row for each verdict, then one for each refusal.
absl::Status WriteVerdictTable(const TimelineHeader& header, const CaptureAnswer& answer,
                               const TableTarget& target);
// Writes SchemaFields: every column of every table that can exist.
absl::Status WriteSchemaTable(const TableTarget& target);

}  // namespace neurontrace
