// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/progress_line.h"
#include "cli/text.h"
#include "lib/base/json_writer.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/base/unique_fd.h"
#include "lib/validate/trace_report.h"
#include "lib/validate/trace_validator.h"

namespace neurontrace::cli {
namespace {

// Returns one line of the summary: a name, then parts separated by commas.
std::string Line(std::string_view name, const std::vector<std::string>& parts) {
  return fmt::format("{:<10} {}\n", name, fmt::join(parts, ", "));
}

// Returns the file's size, with the uncompressed one if it differs.
std::string FormatTraceSize(const TraceSummary& summary) {
  std::string words = FormatBytes(summary.file_bytes);
  if (summary.uncompressed_bytes == summary.file_bytes) return words;
  return words + fmt::format(" ({} uncompressed)", FormatBytes(summary.uncompressed_bytes));
}

// Returns the period of the events. Times of clocks other than UTC are shown in ns.
std::string FormatTracePeriod(const TraceSummary& summary) {
  if (summary.first_ns > summary.last_ns) return "no events";
  const std::string length = FormatDuration(summary.last_ns - summary.first_ns);
  if (!summary.is_realtime) {
    return fmt::format("{} to {} ns, {}", summary.first_ns, summary.last_ns, length);
  }
  return fmt::format("{} to {}, {}", FormatTime(summary.first_ns), FormatTime(summary.last_ns),
                     length);
}

// Returns the lines about the trace's contents.
std::string FormatTraceSummary(const std::string& path, const TraceSummary& summary) {
  std::vector<std::string> packets = {FormatCounted(summary.packets, "packet")};
  if (summary.compressed_packets > 0) {
    packets.push_back(FormatCounted(summary.compressed_packets, "packet") + " of packets");
  }
  packets.push_back(FormatCounted(summary.sequences, "sequence"));
  packets.push_back(FormatCounted(summary.sequence_headers, "sequence header"));
  std::vector<std::string> events = {FormatCounted(summary.slices, "slice")};
  if (summary.open_slices > 0) events.back() += fmt::format(" ({} open)", summary.open_slices);
  events.push_back(FormatCounted(summary.instants, "instant"));
  events.push_back(FormatCounted(summary.counter_values, "counter value"));
  if (summary.other_events > 0)
    events.push_back(FormatCounted(summary.other_events, "other event"));
  std::vector<std::string> losses;
  if (summary.packet_losses > 0)
    losses.push_back(FormatCounted(summary.packet_losses, "gap of packets"));
  if (summary.loss_instants > 0) {
    losses.push_back(fmt::format("{} in {}", FormatCounted(summary.lost_events, "event"),
                                 FormatCounted(summary.loss_instants, "place")));
  }
  if (losses.empty()) losses.push_back("none reported");
  std::string text = Line("file", {path, FormatTraceSize(summary)});
  text += Line("packets", packets);
  text += Line("time", {FormatTracePeriod(summary)});
  text += Line("tracks", {FormatCounted(summary.processes, "process", "processes"),
                          FormatCounted(summary.threads, "thread"),
                          FormatCounted(summary.counter_tracks, "counter"),
                          FormatCounted(summary.other_tracks, "other track")});
  text += Line("events", events);
  text += Line("arguments", {FormatCount(summary.arguments)});
  text += Line("interned", {FormatCounted(summary.interned_texts, "text")});
  std::vector<std::string> flows = {FormatCounted(summary.flow_arrows, "arrow")};
  if (summary.lone_flow_points > 0) {
    flows.push_back(
        fmt::format("{} with a repeated end", FormatCounted(summary.lone_flow_points, "end")));
  }
  text += Line("flows", flows);
  return text + Line("losses", losses);
}

// Returns a severity as text, also for JSON.
const char* NameOf(TraceSeverity severity) {
  return severity == TraceSeverity::kError ? "error" : "warning";
}

// Returns the findings, errors first, those of one check together. The log keeps only the first
// findings of each check, so the rest is counted.
std::string FormatTraceFindings(const TraceFindingLog& log) {
  std::string text;
  for (const TraceSeverity severity : {TraceSeverity::kError, TraceSeverity::kWarning}) {
    for (size_t i = 0; i < static_cast<size_t>(TraceCheck::kCount); ++i) {
      const TraceCheckInfo& check = InfoOf(static_cast<TraceCheck>(i));
      const uint64_t count = log.count(check.check);
      if (check.severity != severity || count == 0) continue;
      text += fmt::format("\n{} {}", NameOf(severity), check.name);
      if (count > 1) text += fmt::format(", {} times", FormatCount(count));
      if (!check.statistic.empty()) text += fmt::format(" (Perfetto's {})", check.statistic);
      text += '\n';
      uint64_t told = 0;
      for (const TraceFinding& finding : log.findings()) {
        if (finding.check != check.check) continue;
        text += fmt::format("  packet {} at byte {}: {}\n", finding.at.packet, finding.at.offset,
                            finding.words);
        ++told;
      }
      if (told < count) text += fmt::format("  and {} more\n", FormatCount(count - told));
    }
  }
  return text;
}

// The following functions write a part of the JSON each. Numbers are strings, as in the JSON of the
// other commands.
void WriteSummary(const TraceSummary& summary, JsonWriter& out) {
  const auto write = [&out](std::string_view name, const auto& value) {
    out.Space("\n    ").Member(name, value);
  };
  const auto number = [&write](std::string_view name, uint64_t value) {
    write(name, fmt::to_string(value));
  };
  // Without events both times have the initial values of the summary.
  const bool has_events = summary.first_ns <= summary.last_ns;
  out.Open('{');
  number("file_bytes", summary.file_bytes);
  number("uncompressed_bytes", summary.uncompressed_bytes);
  write("gzip", summary.is_gzip);
  number("packets", summary.packets);
  number("compressed_packets", summary.compressed_packets);
  number("sequences", summary.sequences);
  number("sequence_headers", summary.sequence_headers);
  number("processes", summary.processes);
  number("threads", summary.threads);
  number("counter_tracks", summary.counter_tracks);
  number("other_tracks", summary.other_tracks);
  number("slices", summary.slices);
  number("open_slices", summary.open_slices);
  number("instants", summary.instants);
  number("counter_values", summary.counter_values);
  number("other_events", summary.other_events);
  number("arguments", summary.arguments);
  number("interned_texts", summary.interned_texts);
  number("flow_points", summary.flow_points);
  number("flow_arrows", summary.flow_arrows);
  number("lone_flow_points", summary.lone_flow_points);
  number("packet_losses", summary.packet_losses);
  number("loss_instants", summary.loss_instants);
  number("lost_events", summary.lost_events);
  write("realtime", summary.is_realtime);
  number("first_ns", has_events ? summary.first_ns : 0);
  number("last_ns", has_events ? summary.last_ns : 0);
  out.Space("\n  ").Close('}');
}

void WriteFinding(const TraceFinding& finding, JsonWriter& out) {
  const TraceCheckInfo& check = InfoOf(finding.check);
  out.Space("\n    ").Open('{');
  out.Member("check", check.name).Member("severity", NameOf(check.severity));
  out.Member("statistic", check.statistic);
  out.Member("packet", fmt::to_string(finding.at.packet));
  out.Member("offset", fmt::to_string(finding.at.offset));
  out.Member("words", finding.words).Close('}');
}

void WriteTrack(const TraceReport& report, const TraceTrack& track, JsonWriter& out) {
  constexpr const char* kKinds[] = {"plain", "process", "thread", "counter"};
  const uint64_t parent =
      track.parent == TraceTrack::kNoTrack ? 0 : report.tracks[track.parent].uuid;
  out.Space("\n    ").Open('{');
  out.Member("uuid", fmt::to_string(track.uuid)).Member("parent", fmt::to_string(parent));
  out.Member("kind", kKinds[static_cast<size_t>(track.kind)]).Member("name", track.name);
  out.Member("pid", fmt::to_string(track.pid)).Member("tid", fmt::to_string(track.tid));
  out.Member("slices", fmt::to_string(track.slices));
  out.Member("open_slices", fmt::to_string(track.open_slices));
  out.Member("instants", fmt::to_string(track.instants));
  out.Member("counter_values", fmt::to_string(track.counter_values));
  out.Member("described", track.is_described).Close('}');
}

// Only checks with findings are listed.
void WriteCounts(const TraceFindingLog& findings, JsonWriter& out) {
  out.Open('{');
  for (size_t i = 0; i < static_cast<size_t>(TraceCheck::kCount); ++i) {
    const TraceCheckInfo& check = InfoOf(static_cast<TraceCheck>(i));
    const uint64_t count = findings.count(check.check);
    if (count > 0) out.Member(check.name, fmt::to_string(count));
  }
  out.Close('}');
}

// Returns the contents of a trace and what is wrong with it as text for a terminal. Pure.
std::string FormatTraceReport(const std::string& path, const TraceReport& report) {
  std::string text =
      FormatTraceSummary(path, report.summary) + FormatTraceFindings(report.findings);
  const uint64_t errors = report.findings.errors();
  const uint64_t warnings = report.findings.warnings();
  if (errors + warnings == 0) return text + "\nno problems\n";
  return text + fmt::format("\n{}, {}\n", FormatCounted(errors, "error"),
                            FormatCounted(warnings, "warning"));
}

// Returns the same as JSON for scripts; `with_tracks` adds each track. Pure.
std::string FormatTraceReportJson(const std::string& path, const TraceReport& report,
                                  bool with_tracks) {
  JsonWriter out(JsonWriter::Style::kSpaced);
  out.Open('{').Space("\n  ").Member("file", path);
  out.Space("\n  ").Member("errors", fmt::to_string(report.findings.errors()));
  out.Space("\n  ").Member("warnings", fmt::to_string(report.findings.warnings()));
  WriteSummary(report.summary, out.Space("\n  ").Key("summary"));
  WriteCounts(report.findings, out.Space("\n  ").Key("counts"));
  out.Space("\n  ").Key("findings").Open('[');
  for (const TraceFinding& finding : report.findings.findings()) WriteFinding(finding, out);
  out.Close(']').Space("\n  ").Key("attributes").Open('[');
  for (const auto& [key, value] : report.attributes) {
    out.Space("\n    ").Open('{').Member("key", key).Member("value", value).Close('}');
  }
  out.Close(']');
  if (with_tracks) {
    out.Space("\n  ").Key("tracks").Open('[');
    for (const TraceTrack& track : report.tracks) WriteTrack(report, track, out);
    out.Close(']');
  }
  return out.Space("\n").Close('}').Take() + "\n";
}

// The bar is drawn again after this many bytes, so that drawing costs nothing next to reading.
constexpr uint64_t kBytesBetweenDrawings = uint64_t{16} << 20;

// Values of the options.
struct ValidateOptions {
  std::string path;
  bool strict = false;
  bool tree = false;
  bool json = false;
};

// Opens the file, or duplicates standard input for "-". Fails with UNAVAILABLE.
absl::StatusOr<UniqueFd> OpenTrace(const std::string& path) {
  UniqueFd file(path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                            : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Unavailable("{}: {}", path, std::strerror(errno));
  return file;
}

// A file as the validator reads it, with a progress bar on a terminal. A pipe has no size, so the
// bar is omitted.
class ShownFile {
 public:
  ShownFile(const std::string& path, UniqueFd file, bool has_progress)
      : path_(path), file_(std::move(file)), line_(has_progress) {
    struct stat about = {};
    if (fstat(file_.get(), &about) == 0) size_ = static_cast<uint64_t>(about.st_size);
  }

  // Reads up to `bytes_max` bytes; 0 at the end. Fails with UNAVAILABLE.
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

// Reads and validates a whole trace. Fails if the file cannot be read; an invalid trace is a
// report.
absl::StatusOr<TraceReport> ReadTrace(const Context& context, const std::string& path) {
  ASSIGN_OR_RETURN(UniqueFd opened, OpenTrace(path));
  ShownFile file(path, std::move(opened), context.progress);
  return ValidateTrace([&file](char* out, size_t bytes) { return file.Read(out, bytes); });
}

// Prints the report and returns kExitFailed if the trace has errors, or with --strict warnings.
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
  CLI::App* command = app.add_subcommand(
      "validate", "Check a Perfetto trace for errors that Perfetto does not show");
  command->footer(
      "Examples:\n"
      "  neurontrace validate system_profile.pftrace\n"
      "  neurontrace validate --tree trace.pftrace.gz\n\n"
      "Checks traces of `neurontrace export`, and the format's rules for track events in any "
      "trace; a warning names what is not checked. The file may be plain, gzipped or have packets "
      "compressed by zlib. No aggregator is needed.\n\n"
      "Exit codes: 0 no errors, 1 errors, or the file cannot be read.");
  command->add_option("FILE", options->path, "Trace file; - for standard input")->required();
  command->add_flag("--strict", options->strict, "Also fail on warnings");
  command->add_flag("--tree", options->tree, "Print the tree of tracks with their contents");
  command->add_flag("--json", options->json, "Same as --output json");
  command->callback([&context, &run, options] {
    run = [&context, options] { return Validate(context, *options); };
  });
}

}  // namespace neurontrace::cli
