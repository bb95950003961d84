// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// A format as people name it, with its default file name and ending.
struct ExportFormatInfo {
  v1::ExportFormat format;
  std::string_view name;          // as in `--format`
  std::string_view default_path;  // the first two are the vendor's names
  std::string_view ending;        // of a path that implies this format; "": none does
};
// Returns the names of a format; those of Perfetto for an unknown one.
const ExportFormatInfo& ExportFormatInfoOf(v1::ExportFormat format);

// The ending of a file that is compressed as a whole.
inline constexpr std::string_view kGzipEnding = ".gz";
// Returns whether the path asks for compression by its ending.
bool NamesGzip(std::string_view path);

// Returns the format by its name, or if that is empty by the file's ending, without that of gzip.
// Fails with INVALID_ARGUMENT and a list of names.
absl::StatusOr<v1::ExportFormat> ExportFormatOf(const std::string& name, const std::string& path);

// Returns the values of --format, in the order of their table.
std::vector<std::string> ExportFormatNames();

// Returns a request, without a capture, for the named format or else that of the file's name, with
// gzip if the name ends so. Fails with INVALID_ARGUMENT also if the format cannot be compressed.
absl::StatusOr<v1::ExportRequest> RequestNamedBy(const std::string& format,
                                                 const std::string& path);

}  // namespace neurontrace::cli
