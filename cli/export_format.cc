// SPDX-License-Identifier: Apache-2.0
#include "cli/export_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "lib/base/status.h"
#include "lib/wire/export_options.h"

namespace neurontrace::cli {
namespace {

// The formats in the order of `--help`. For an ending that is part of another one the longer is
// first: summary.json and .trace.json precede .json.
constexpr std::array<ExportFormatInfo, 8> kFormats = {{
    {v1::EXPORT_FORMAT_PERFETTO, "perfetto", "system_profile.pftrace", ".pftrace"},
    {v1::EXPORT_FORMAT_EVENTS, "events", "events.jsonl", ".jsonl"},
    {v1::EXPORT_FORMAT_SUMMARY_JSON, "summary-json", "summary.json", "summary.json"},
    {v1::EXPORT_FORMAT_SUMMARY_TEXT, "summary-text", "summary.txt", ".txt"},
    {v1::EXPORT_FORMAT_CHROME_JSON, "chrome-json", "system_profile.trace.json", ".trace.json"},
    {v1::EXPORT_FORMAT_PARQUET, "parquet", "system_profile.parquet", ".parquet"},
    {v1::EXPORT_FORMAT_XSPACE, "xspace", "xspace", ""},
    {v1::EXPORT_FORMAT_JSON, "json", "system_profile.json", ".json"},
}};

}  // namespace

const ExportFormatInfo& ExportFormatInfoOf(v1::ExportFormat format) {
  for (const ExportFormatInfo& words : kFormats) {
    if (words.format == format) return words;
  }
  return kFormats.front();
}

absl::StatusOr<v1::ExportFormat> ExportFormatOf(const std::string& name, const std::string& path) {
  for (const ExportFormatInfo& words : kFormats) {
    if (words.name == name) return words.format;
  }
  // A given name that is wrong is an error; it is not replaced by the ending of the path.
  if (!name.empty()) {
    return InvalidArgument("unknown format '{}'; the formats are {}", name,
                           fmt::join(ExportFormatNames(), ", "));
  }
  std::string_view plain = path;
  if (NamesGzip(plain)) plain.remove_suffix(kGzipEnding.size());
  for (const ExportFormatInfo& words : kFormats) {
    if (!words.ending.empty() && plain.ends_with(words.ending)) return words.format;
  }
  // Without a known ending the file is a trace for Perfetto.
  return v1::EXPORT_FORMAT_PERFETTO;
}

bool NamesGzip(std::string_view path) { return path.ends_with(kGzipEnding); }

std::vector<std::string> ExportFormatNames() {
  std::vector<std::string> names;
  for (const ExportFormatInfo& words : kFormats) names.emplace_back(words.name);
  return names;
}

absl::StatusOr<v1::ExportRequest> RequestNamedBy(const std::string& format,
                                                 const std::string& path) {
  v1::ExportRequest request;
  ASSIGN_OR_RETURN(const v1::ExportFormat named, ExportFormatOf(format, path));
  request.set_format(named);
  if (NamesGzip(path)) request.set_compression(v1::EXPORT_COMPRESSION_GZIP);
  RETURN_IF_ERROR(CheckExportOptions(request));
  return request;
}

}  // namespace neurontrace::cli
