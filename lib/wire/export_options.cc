// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/export_options.h"

#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/trace/export_limits.h"
#include "lib/trace/limits.h"
#include "lib/wire/field_checks.h"

namespace neurontrace {
namespace {

// Returns the options that the request sets and that not every format accepts.
std::vector<ExportOption> OptionsOf(const v1::ExportRequest& request) {
  std::vector<ExportOption> options;
  const auto take = [&options](bool is_asked, ExportOption option) {
    if (is_asked) options.push_back(option);
  };
  take(request.compression() == v1::EXPORT_COMPRESSION_GZIP, ExportOption::kGzip);
  take(request.compression() == v1::EXPORT_COMPRESSION_PACKETS, ExportOption::kPackets);
  take(request.max_file_bytes() != 0, ExportOption::kMaxSize);
  take(request.split_by_worker(), ExportOption::kSplitByWorker);
  take(request.primary_group_size() != 0, ExportOption::kPrimaryGroup);
  take(request.secondary_group_size() != 0, ExportOption::kSecondaryGroup);
  take(request.no_flows(), ExportOption::kNoFlows);
  take(request.clock_arguments(), ExportOption::kClockArguments);
  return options;
}

// Checks the lengths of all lists before anything else reads them.
absl::Status CheckCounts(const v1::ExportRequest& request) {
  // A sensible request has no format twice.
  RETURN_IF_ERROR(
      CheckCount("more_formats", request.more_formats_size(), v1::ExportFormat_ARRAYSIZE));
  const std::pair<std::string_view, int> lists[] = {
      {"instance_ids", request.instance_ids_size()},
      {"neuron_cores", request.neuron_cores_size()},
      {"event_types", request.event_types_size()},
      {"worker_gids", request.worker_gids_size()},
      {"streams", request.streams_size()},
      {"primary_group", request.primary_group_size()},
      {"secondary_group", request.secondary_group_size()}};
  for (const auto& [name, size] : lists) {
    RETURN_IF_ERROR(CheckCount(name, size, limits::kSelectionItemsMax));
  }
  return absl::OkStatus();
}

}  // namespace

// Names rather than numbers link the two lists, so that lib/trace needs no protobuf.
const ExportTraits* TraitsOf(v1::ExportFormat format) {
  switch (format) {
    case v1::EXPORT_FORMAT_PERFETTO:
      return FindExportTraits("perfetto");
    case v1::EXPORT_FORMAT_JSON:
      return FindExportTraits("json");
    case v1::EXPORT_FORMAT_EVENTS:
      return FindExportTraits("events");
    case v1::EXPORT_FORMAT_SUMMARY_JSON:
      return FindExportTraits("summary-json");
    case v1::EXPORT_FORMAT_SUMMARY_TEXT:
      return FindExportTraits("summary-text");
    case v1::EXPORT_FORMAT_CHROME_JSON:
      return FindExportTraits("chrome-json");
    case v1::EXPORT_FORMAT_XSPACE:
      return FindExportTraits("xspace");
    case v1::EXPORT_FORMAT_PARQUET:
      return FindExportTraits("parquet");
    default:
      return nullptr;
  }
}

// One request makes all of its formats, so every option must suit each of them.
absl::Status CheckExportOptions(const v1::ExportRequest& request) {
  RETURN_IF_ERROR(CheckCounts(request));
  std::vector<v1::ExportFormat> formats = {request.format()};
  for (const int format : request.more_formats()) {
    formats.push_back(static_cast<v1::ExportFormat>(format));
  }
  const std::vector<ExportOption> options = OptionsOf(request);
  for (const v1::ExportFormat format : formats) {
    const ExportTraits* const traits = TraitsOf(format);
    if (traits == nullptr) {
      return InvalidArgument("format {} is unknown to this version", static_cast<int>(format));
    }
    for (const ExportOption option : options) RETURN_IF_ERROR(traits->Check(option));
    if (format == v1::EXPORT_FORMAT_PERFETTO && request.max_file_bytes() != 0 &&
        request.max_file_bytes() < limits::kTracePartBytesMin) {
      return InvalidArgument("--max-size must be at least 1MiB");
    }
  }
  return absl::OkStatus();
}

bool MakesManyFiles(const v1::ExportRequest& request) {
  const ExportTraits* const traits = TraitsOf(request.format());
  return request.max_file_bytes() != 0 || (traits != nullptr && traits->is_directory());
}

}  // namespace neurontrace
