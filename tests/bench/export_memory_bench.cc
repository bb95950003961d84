// SPDX-License-Identifier: Apache-2.0
// What an export holds in memory, by the length of the capture: x1, x10, x100. The capture is made
// while it is read and the files are thrown away, so that what grows is the export's. Each row is a
// process of its own: what one leaves to its allocator would be counted to the next. Asserts
// nothing.
//
//   export_memory_bench [--streams N] [--seconds N] [--formats perfetto,json,derived]
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "aggregator/derive/capture_summary_builder.h"
#include "aggregator/export/exporter.h"
#include "tests/bench/made_capture.h"
#include "tests/bench/resident_memory.h"

namespace neurontrace {
namespace {

class ThrownAway : public OutputFiles {
 public:
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view) override {
    return std::make_unique<File>();
  }

 private:
  class File : public OutputFile {
   public:
    absl::Status Write(std::string_view) override { return absl::OkStatus(); }
    absl::Status Close() override { return absl::OkStatus(); }
  };
};

[[noreturn]] void Fail(const absl::Status& status) {
  fmt::print(stderr, "export_memory_bench: {}\n", std::string(status.message()));
  std::exit(1);
}

void Export(MadeChunkSource& source, std::string_view name) {
  const auto format = FindExportFormat(name);
  if (!format.ok()) Fail(format.status());
  ThrownAway files;
  const auto summary = ExportCapture(source, **format, {}, files, {});
  if (!summary.ok()) Fail(summary.status());
}

// All that is derived, and no file.
void Derive(MadeChunkSource& source) {
  auto reader = TimelineReader::Open(source, {});
  if (!reader.ok()) Fail(reader.status());
  CaptureSummaryBuilder builder((*reader)->capture(), (*reader)->streams(), {});
  TimelineBatch batch;
  while (true) {
    const auto more = (*reader)->Next(batch);
    if (!more.ok()) Fail(more.status());
    if (!*more) break;
    builder.Take(batch);
  }
  if (builder.Finish().executions.empty()) Fail(absl::InternalError("nothing was derived"));
}

void Measure(std::string_view format, const MadeCapture& capture) {
  MadeChunkSource source(capture);
  const double before = ResidentMib("VmRSS:");
  ResetPeakMemory();
  const auto begin = std::chrono::steady_clock::now();
  if (format == "derived") {
    Derive(source);
  } else {
    Export(source, format);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double events = static_cast<double>(capture.streams) *
                        static_cast<double>(capture.seconds) * capture.events_per_chunk();
  fmt::print("| {} | {} | {:.2f} M | {:.0f} | {:.0f} | {:.2f} M |\n", format, capture.seconds,
             events * 1e-6, ResidentMib("VmHWM:"), ResidentMib("VmHWM:") - before,
             events * 1e-6 / seconds);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  MadeCapture capture{.streams = 32, .seconds = 3};
  std::string formats = "perfetto,json,derived";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--streams") capture.streams = static_cast<uint32_t>(std::atoi(argv[i + 1]));
    if (option == "--seconds") capture.seconds = static_cast<uint64_t>(std::atoi(argv[i + 1]));
    if (option == "--formats") formats = argv[i + 1];
  }
  fmt::print(
      "{} streams\n| format | seconds | events | peak MiB | of the export | events/s |\n"
      "| --- | --- | --- | --- | --- | --- |\n",
      capture.streams);
  std::fflush(stdout);
  for (size_t at = 0; at < formats.size();) {
    const size_t end = std::min(formats.find(',', at), formats.size());
    for (const uint64_t times : {1, 10, 100}) {
      MadeCapture longer = capture;
      longer.seconds *= times;
      const pid_t child = fork();
      if (child == 0) {
        Measure(std::string_view(formats).substr(at, end - at), longer);
        _exit(0);
      }
      int status = 0;
      if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        Fail(absl::InternalError("a measurement broke off"));
      }
    }
    at = end + 1;
  }
  return 0;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return neurontrace::Main(argc, argv); }
