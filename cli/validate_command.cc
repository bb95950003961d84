// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/standard_streams.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "cli/command.h"
#include "cli/progress_line.h"
#include "cli/text.h"
#include "cli/validate_view.h"
#include "validate/trace_validator.h"
#include "validate/track_tree.h"

namespace neurontrace::cli {
namespace {

constexpr uint64_t kBytesBetweenDrawings = uint64_t{16} << 20;

struct ValidateOptions {
  std::string path;
  bool strict = false;
  bool tree = false;
  bool json = false;
};

absl::StatusOr<UniqueFd> OpenTrace(const std::string& path) {
  UniqueFd file(path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                            : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Unavailable("{}: {}", path, std::strerror(errno));
  return file;
}

// A file as the validator reads it, with a bar where somebody looks on.
class ShownFile {
 public:
  ShownFile(const std::string& path, UniqueFd file, bool has_progress)
      : path_(path), file_(std::move(file)), line_(has_progress) {
    struct stat about = {};
    if (fstat(file_.get(), &about) == 0) size_ = static_cast<uint64_t>(about.st_size);
  }

  absl::StatusOr<size_t> Read(char* out, size_t bytes_max) {
    ssize_t count = -1;
    do {
      count = read(file_.get(), out, bytes_max);
    } while (count < 0 && errno == EINTR);
    if (count < 0) return Unavailable("{}: {}", path_, std::strerror(errno));
    const uint64_t before = bytes_;
    bytes_ += static_cast<uint64_t>(count);
    if (before / kBytesBetweenDrawings != bytes_ / kBytesBetweenDrawings) Draw();
    return static_cast<size_t>(count);
  }

 private:
  void Draw() {
    const double fraction =
        size_ == 0 ? -1.0 : static_cast<double>(bytes_) / static_cast<double>(size_);
    line_.Draw(fraction, fmt::format("reading: {}", FormatBytes(bytes_)));
  }

  const std::string path_;
  const UniqueFd file_;
  ProgressLine line_;
  uint64_t size_ = 0;
  uint64_t bytes_ = 0;
};

absl::StatusOr<TraceReport> ReadTrace(const Context& context, const std::string& path) {
  ASSIGN_OR_RETURN(UniqueFd opened, OpenTrace(path));
  ShownFile file(path, std::move(opened), context.progress);
  return ValidateTrace([&file](char* out, size_t bytes) { return file.Read(out, bytes); });
}

int Validate(const Context& context, const ValidateOptions& options) {
  const auto report = ReadTrace(context, options.path);
  if (!report.ok()) return Fail(report.status());
  if (context.json || options.json) {
    Print("{}", FormatTraceReportJson(options.path, *report, options.tree));
  } else {
    if (options.tree) Print("{}\n", TrackTree(*report));
    Print("{}", FormatTraceReport(options.path, *report));
  }
  const bool is_good =
      report->findings.errors() == 0 && (!options.strict || report->findings.warnings() == 0);
  return is_good ? kExitDone : kExitFailed;
}

}  // namespace

void AddValidateCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command =
      app.add_subcommand("validate", "Check a Perfetto trace for what Perfetto would not show");
  command->footer(
      "Examples:\n"
      "  neurontrace validate system_profile.pftrace\n"
      "  neurontrace validate --tree trace.pftrace.gz\n\n"
      "Checks what `neurontrace export` writes, and the format's rules for track events in any "
      "trace; a warning names what is not checked. The file may be plain, gzipped or have packets "
      "compressed by zlib. No aggregator is asked.\n\n"
      "Exit codes: 0 nothing is wrong, 1 something is, or the file cannot be read.");
  command->add_option("FILE", options->path, "The trace; - for standard input")->required();
  command->add_flag("--strict", options->strict, "Fail on warnings, too");
  command->add_flag("--tree", options->tree,
                    "Print the tracks as they stand, with what is on them");
  command->add_flag("--json", options->json, "The same as --output json");
  command->callback([&context, &run, options] {
    run = [&context, options] { return Validate(context, *options); };
  });
}

}  // namespace neurontrace::cli
