// SPDX-License-Identifier: Apache-2.0
#include "cli/open_instructions.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "cli/exit_code.h"
#include "cli/output_place.h"
#include "lib/base/standard_streams.h"

namespace neurontrace::cli {
namespace {

// Files up to these sizes open in a browser, which needs several times the uncompressed size of a
// trace in memory.
constexpr uint64_t kBrowserBytesMax = 200'000'000;
constexpr uint64_t kCompressedBrowserBytesMax = 20'000'000;

}  // namespace

std::string OpenInstructions(const v1::ExportRequest& request, const std::string& path) {
  // One of several formats may be a trace.
  const auto& more = request.more_formats();
  const bool has_trace =
      request.format() == v1::EXPORT_FORMAT_PERFETTO ||
      std::find(more.begin(), more.end(), v1::EXPORT_FORMAT_PERFETTO) != more.end();
  if (!has_trace) return "";
  // The file is on the aggregator's machine, so its size is unknown here.
  if (path.empty()) {
    return request.max_file_bytes() != 0
               ? "Open a part of its system_profile.pftrace at https://ui.perfetto.dev."
               : "Open its system_profile.pftrace at https://ui.perfetto.dev; if it is larger than "
                 "200 MB, run `trace_processor --httpd FILE` too.";
  }
  if (request.max_file_bytes() != 0) {
    return fmt::format(
        "Open a part at https://ui.perfetto.dev; {}/system_profile.parts.json describes each part.",
        path);
  }
  struct stat about = {};
  const bool is_plain = request.compression() == v1::EXPORT_COMPRESSION_NONE;
  const uint64_t bytes_max = is_plain ? kBrowserBytesMax : kCompressedBrowserBytesMax;
  if (stat(path.c_str(), &about) == 0 && static_cast<uint64_t>(about.st_size) > bytes_max) {
    return fmt::format(
        "The file is large for a browser: run `trace_processor --httpd {}` and open "
        "https://ui.perfetto.dev, or export with --max-size 150MB.",
        path);
  }
  return "Open it at https://ui.perfetto.dev (the file stays on this machine).";
}

void PrintOpenInstructions(const Context& context, int exit_code, const v1::ExportRequest& request,
                           const std::string& path) {
  const bool has_file = exit_code == kExitDone || exit_code == kExitIncomplete;
  if (!has_file || context.json || (!path.empty() && !LeadsToFile(path))) return;
  const std::string words = OpenInstructions(request, path);
  if (!words.empty()) Print(context.results, "{}\n", words);
}

}  // namespace neurontrace::cli
