// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// A format as people name it, and what it makes where they name no file.
struct ExportFormatWords {
  v1::ExportFormat format;
  std::string_view name;          // as in `--format`
  std::string_view default_path;  // the first two are the vendor's names
  std::string_view ending;        // of a path that means this format; "": none does
};
const ExportFormatWords& WordsOf(v1::ExportFormat format);

// Of the name of a file that is compressed as a whole.
inline constexpr std::string_view kGzipEnding = ".gz";
bool NamesGzip(std::string_view path);

// By name, or by the file's ending, before that of gzip, when the name is empty. INVALID_ARGUMENT
// lists the names.
absl::StatusOr<v1::ExportFormat> ExportFormatOf(const std::string& name, const std::string& path);

std::vector<std::string> ExportFormatNames();

// What a file's name asks for, and a format's where one is named: the format, and gzip where the
// file's name ends so. Without a capture. INVALID_ARGUMENT also where the format has no gzip.
absl::StatusOr<v1::ExportRequest> RequestNamedBy(const std::string& format,
                                                 const std::string& path);

}  // namespace neurontrace::cli
