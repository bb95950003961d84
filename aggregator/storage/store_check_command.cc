// SPDX-License-Identifier: Apache-2.0
#include "aggregator/storage/store_check_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "aggregator/ingest/chunk_admission.h"
#include "lib/base/json_writer.h"
#include "lib/base/standard_streams.h"

namespace neurontrace {
namespace {

constexpr int kExitSound = 0;
constexpr int kExitDamaged = 1;
constexpr int kExitWrongFlags = 2;
constexpr int kBarWidth = 40;

// One line on a terminal, drawn again and again, and erased at the end so that the report starts
// clean. Does nothing if `err` is no terminal, so that logs contain no control characters.
class CheckProgress {
 public:
  explicit CheckProgress(FILE* err) : err_(err), enabled_(isatty(fileno(err)) == 1) {}
  ~CheckProgress() {
    if (drawn_) Print(err_, "\r\033[K");
  }
  CheckProgress(const CheckProgress&) = delete;
  CheckProgress& operator=(const CheckProgress&) = delete;

  // Draws nothing if `total` is 0.
  void Draw(uint64_t done, uint64_t total) {
    if (!enabled_ || total == 0) return;
    const uint64_t filled = std::min(done, total) * kBarWidth / total;
    Print(err_, "\r[{:#>{}}{:->{}}] {} of {} chunks\033[K", "", filled, "", kBarWidth - filled,
          done, total);
    std::fflush(err_);
    drawn_ = true;
  }

 private:
  FILE* const err_;
  const bool enabled_;
  bool drawn_ = false;
};

}  // namespace

std::string FormatReport(const StoreCheckReport& report, const std::string& store) {
  std::string text;
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  for (const StoreFault& fault : report.faults)
    text += fmt::format("DAMAGED: {}\n", fault.ToString());
  if (report.faults_total > report.faults.size()) {
    text += fmt::format("and {} more\n", report.faults_total - report.faults.size());
  }
  text += fmt::format(
      "{}: {} captures, {} streams, {} chunks, {} events, {} bytes of chunks, {} artifacts of {} "
      "bytes: {}\n",
      store, report.captures, report.streams, report.chunks, report.events, report.bytes,
      report.artifacts, report.artifact_bytes,
      report.faults_total == 0 ? "sound" : fmt::format("{} faults", report.faults_total));
  return text;
}

std::string FormatReportJson(const StoreCheckReport& report, const std::string& store) {
  JsonWriter out;
  out.Open('{').Member("store", store).Member("sound", report.faults_total == 0);
  out.Member("captures", report.captures).Member("streams", report.streams);
  out.Member("chunks", report.chunks).Member("events", report.events);
  out.Member("bytes", report.bytes).Member("artifacts", report.artifacts);
  out.Member("artifact_bytes", report.artifact_bytes).Member("files", report.files);
  out.Member("faults_total", report.faults_total).Key("faults").Open('[');
  for (const StoreFault& fault : report.faults) {
    out.Open('{');
    if (fault.capture) out.Member("capture_id", fault.capture->ToString());
    if (fault.stream) out.Member("stream", *fault.stream);
    if (fault.sequence) out.Member("sequence", *fault.sequence);
    out.Member("what", fault.what).Close('}');
  }
  return out.Close(']').Member("notes", report.notes).Close('}').Take() + "\n";
}

// The bar is removed before the report is printed, because both may go to the same terminal.
int RunStoreCheck(const StoreCheckCommandOptions& options, FILE* out, FILE* err) {
  ChunkAdmission door;
  absl::StatusOr<StoreCheckReport> report;
  {
    CheckProgress progress(err);
    report = CheckStore(
        options.store, nullptr,
        {.examine = ExamineThrough(door),
         .progress = [&progress](uint64_t done, uint64_t total) { progress.Draw(done, total); }});
  }
  if (!report.ok()) {
    Print(err, "neurontrace-aggregator: {}\n", std::string(report.status().message()));
    return kExitWrongFlags;
  }
  Print(out, "{}",
        options.json ? FormatReportJson(*report, options.store)
                     : FormatReport(*report, options.store));
  if (report->faults_total == 0) return kExitSound;
  // The exit code stays the same if this fails: the damage was found in any case.
  const absl::Status remembered = RememberFaults(options.store, nullptr, *report);
  if (!remembered.ok()) {
    fmt::print(err,
               "neurontrace-aggregator: the captures' certificates will not include this: {}\n",
               std::string(remembered.message()));
  }
  return kExitDamaged;
}

}  // namespace neurontrace
