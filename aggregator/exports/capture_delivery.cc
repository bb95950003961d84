// SPDX-License-Identifier: Apache-2.0
#include "aggregator/exports/capture_delivery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/deliver/artifact_paths.h"
#include "aggregator/deliver/delivery.h"
#include "aggregator/exports/capture_export.h"
#include "lib/base/json_writer.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/wire/export_options.h"

namespace neurontrace {
namespace {

// Between pieces the claim on the destination is renewed and the client is asked whether to
// continue.
constexpr size_t kArtifactPieceBytes = 1u << 20;
// HOST_NAME_MAX of Linux is 64, so that no name is cut.
constexpr size_t kHostNameBytes = 256;

// Returns the name of the format's step and, if the format makes several files, of its directory:
// "perfetto", "summary-json". The names are part of the format of the shared volume.
std::string StepNameOf(v1::ExportFormat format) {
  std::string name = v1::ExportFormat_Name(format);
  constexpr std::string_view kPrefix = "EXPORT_FORMAT_";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(c));
  return name;
}

// The files of one step of a delivery. Counts what was written since the step began.
class DeliveredFiles : public ExportFiles {
 public:
  DeliveredFiles(OutputFiles& files, const Delivery& delivery)
      : files_(files), delivery_(delivery), before_(delivery.bytes_written()) {}
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view name) override {
    return files_.Open(name);
  }
  uint64_t bytes_sent() const override { return delivery_.bytes_written() - before_; }

 private:
  OutputFiles& files_;
  const Delivery& delivery_;
  const uint64_t before_;
};

// One request on its way through a delivery. Used once, by the thread of the export.
class DeliveryRun {
 public:
  DeliveryRun(const DeliveryDeps& deps, const CaptureRecord& record,
              const v1::ExportRequest& request, const CaptureClocks& clocks,
              const ExportWriter& write)
      : deps_(deps), record_(record), request_(request), clocks_(clocks), write_(write) {}

  // Steps in this order: claim, artifacts, formats, workers, manifest. Each step that an earlier
  // delivery finished is skipped. After an error, finished steps stay, so that the next attempt
  // continues there.
  absl::Status Run() {
    // Distinguishes this attempt from earlier ones of the same aggregator, whose temporary files
    // and claims may still exist.
    const std::string nonce = fmt::format("{:016x}", deps_.random.Next64());
    ASSIGN_OR_RETURN(volume_, deps_.roots.Open(request_.destination(),
                                               {.mark = record_.id.ToString(), .nonce = nonce}));
    char host[kHostNameBytes] = {};
    gethostname(host, sizeof(host) - 1);
    const Delivery::Spec spec{
        .capture = record_.id,
        .owner = {.name = fmt::format("export {} of aggregator {} on {}", nonce,
                                      deps_.store.aggregator_id(), static_cast<const char*>(host)),
                  .lock = deps_.run.lock,
                  .run = deps_.run.run},
        .producer = "neurontrace " NEURONTRACE_VERSION};
    ASSIGN_OR_RETURN(delivery_, Delivery::Begin(*volume_, spec, deps_.clock));
    RETURN_IF_ERROR(PutArtifacts());
    RETURN_IF_ERROR(PutFormat(request_.format()));
    for (const int format : request_.more_formats()) {
      RETURN_IF_ERROR(PutFormat(static_cast<v1::ExportFormat>(format)));
    }
    // Last, because each worker's file lists the files of all formats.
    RETURN_IF_ERROR(PutWorkers());
    RETURN_IF_ERROR(delivery_->Finish());
    // What was delivered is whole; what the disk has lost is reported as missing from the capture.
    for (const std::string& what : damaged_) done_.add_warnings(what);
    if (!damaged_.empty()) {
      done_.set_capture_incomplete(true);
      done_.set_verdict(
          fmt::format("incomplete: {}; the capture itself: {}", damaged_.front(), done_.verdict()));
    }
    done_.mutable_total()->set_bytes_written(delivery_->bytes_written());
    done_.set_written_to(delivery_->manifest_path());
    done_.set_files_written(delivery_->files_written());
    done_.set_files_there(delivery_->files_there());
    v1::ExportReply reply;
    *reply.mutable_done() = done_;
    write_(reply);
    return absl::OkStatus();
  }

 private:
  // Returns false if the export must end: the client no longer reads, or another export writes
  // there by now. Renews the claim on the way, because it is called often enough.
  bool ReportProgress(v1::ExportProgress progress, const std::string& step) {
    if (kept_.ok()) kept_ = delivery_->Keep();
    v1::ExportReply reply;
    progress.set_step(step);
    progress.set_bytes_written(delivery_->bytes_written());
    *reply.mutable_progress() = std::move(progress);
    return write_(reply) && kept_.ok();
  }

  // A lost claim is the more useful error: the client learns why the export ends.
  absl::Status CheckStillOwned(const std::string& step) {
    if (ReportProgress({}, step)) return absl::OkStatus();
    return kept_.ok() ? absl::CancelledError("the client stopped reading the export") : kept_;
  }

  // Looks for a finished step. Asks the client before each check, because checks of many files take
  // long.
  absl::StatusOr<const v1::DeliveredStep*> FindDone(const std::string& step,
                                                    const std::string& request) {
    return delivery_->FindDone(step, request, [&] { return CheckStillOwned(step); });
  }

  // Writes each artifact as a step of its own, so that an interrupted delivery resumes at the
  // artifact that it was writing. Fills artifacts_, paths_ and damaged_.
  absl::Status PutArtifacts() {
    ASSIGN_OR_RETURN(artifacts_, deps_.store.artifacts().List(record_.id));
    paths_ = ArtifactPaths(artifacts_);
    std::vector<std::string> expected = paths_;
    std::erase(expected, "");
    // Announced together, so that the manifest is not saved again for each new directory.
    delivery_->Expect(expected);
    for (size_t i = 0; i < artifacts_.size(); ++i) {
      if (paths_[i].empty()) continue;
      const absl::Status status = PutArtifact(artifacts_[i], paths_[i]);
      // A file that the disk has lost is no reason to withhold the others.
      if (!absl::IsDataLoss(status)) {
        RETURN_IF_ERROR(status);
        continue;
      }
      // Its step is never ended, so that Finish removes it.
      damaged_.emplace_back(status.message());
      paths_[i].clear();
    }
    return absl::OkStatus();
  }

  // Copies one artifact in pieces and verifies its hash. Fails with DATA_LOSS if the stored file is
  // damaged or gone, and with errors of the volume.
  absl::Status PutArtifact(const ArtifactReference& artifact, const std::string& path) {
    const std::string step = "artifact " + path;
    const std::string request = HexOf(artifact.sha256);
    ASSIGN_OR_RETURN(const v1::DeliveredStep* const there, FindDone(step, request));
    if (there != nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(OutputFiles* const files, delivery_->BeginStep(step, request, ""));
    {
      ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, files->Open(path));
      Sha256 hash;
      for (uint64_t offset = 0; offset < artifact.bytes;) {
        RETURN_IF_ERROR(CheckStillOwned(step));
        const auto piece =
            deps_.store.artifacts().files().Read(artifact.sha256, offset, kArtifactPieceBytes);
        // Falls through to the comparison of hashes, which reports every kind of damage the same
        // way.
        if (absl::IsNotFound(piece.status()) || absl::IsDataLoss(piece.status())) break;
        RETURN_IF_ERROR(piece.status());
        if (piece->empty()) break;
        hash.Update(*piece);
        RETURN_IF_ERROR(file->Write(*piece));
        offset += piece->size();
      }
      if (hash.Finish() != artifact.sha256) {
        return DataLoss("artifact {} is damaged on the aggregator's disk and is omitted", path);
      }
      RETURN_IF_ERROR(file->Close());
    }
    return delivery_->EndStep({});
  }

  // Exports one format as one step, and merges its result into done_. A format that is there
  // already contributes its verdict only.
  absl::Status PutFormat(v1::ExportFormat format) {
    v1::ExportRequest request = request_;
    request.set_format(format);
    request.clear_more_formats();
    request.clear_destination();
    const std::string step = StepNameOf(format);
    // Everything that the bytes depend on. A step with the same hash need not be written again;
    // models of clocks that became final make another file.
    const std::string wanted = Sha256HexOf(
        fmt::format("{}\n{}\n{}\n{}\n{}", NEURONTRACE_VERSION, clocks_.version, clocks_.is_final,
                    record_.ended_realtime_ns, request.SerializeAsString()));
    names_.push_back(step);
    ASSIGN_OR_RETURN(const v1::DeliveredStep* const there, FindDone(step, wanted));
    if (there != nullptr) {
      Judge(there->capture_incomplete(), there->verdict());
      return absl::OkStatus();
    }
    std::string directory = delivery_->capture_directory();
    if (MakesManyFiles(request)) directory += "/" + step;
    ASSIGN_OR_RETURN(OutputFiles* const files, delivery_->BeginStep(step, wanted, directory));
    v1::ExportDone done;
    const ExportWriter write = [&](const v1::ExportReply& reply) {
      if (reply.has_done()) done = reply.done();
      return !reply.has_progress() || ReportProgress(reply.progress(), step);
    };
    DeliveredFiles delivered(*files, *delivery_);
    const absl::Status status = ExportStoredCapture(deps_.store, record_, request, clocks_,
                                                    deps_.store_problem, delivered, write);
    // A lost claim made `write` return false, which the export reports as CANCELLED.
    if (!kept_.ok()) return kept_;
    RETURN_IF_ERROR(status);
    Take(done);
    return delivery_->EndStep(
        {.verdict = done.verdict(), .capture_incomplete = done.capture_incomplete()});
  }

  // Merges the result of one format into that of all: counts are those of the first format that has
  // any, warnings are united, and the first verdict of an incomplete format remains.
  void Take(const v1::ExportDone& done) {
    const bool is_first = done_.total().spans() == 0 && done_.events() == 0;
    std::set<std::string> warnings(done_.warnings().begin(), done_.warnings().end());
    v1::ExportDone before = done_;
    if (is_first) done_ = done;
    done_.clear_warnings();
    warnings.insert(done.warnings().begin(), done.warnings().end());
    for (const std::string& warning : warnings) done_.add_warnings(warning);
    done_.set_capture_incomplete(before.capture_incomplete());
    done_.set_verdict(before.verdict());
    Judge(done.capture_incomplete(), done.verdict());
  }

  // Keeps the first verdict, unless a later one is the first of an incomplete format.
  void Judge(bool incomplete, const std::string& verdict) {
    if (done_.verdict().empty() || (incomplete && !done_.capture_incomplete())) {
      done_.set_verdict(verdict);
    }
    done_.set_capture_incomplete(done_.capture_incomplete() || incomplete);
  }

  // Describes each worker in its directory of the vendor's layout, whether or not it has artifacts.
  absl::Status PutWorkers() {
    std::vector<WorkerIdentity> workers;
    for (const CaptureWorkerStatus& status : record_.workers) {
      if (!status.framework) workers.push_back(status.worker);
    }
    const std::vector<std::string> directories = WorkerDirectories(workers);
    const std::string session = SessionDirectory(record_.started_realtime_ns);
    const std::vector<std::string> files_of_formats = FilesOfFormats();
    std::vector<std::string> texts;
    for (const auto& paths : ArtifactPathsOfWorkers(workers, artifacts_, paths_)) {
      texts.push_back(WorkerJson(workers[texts.size()], paths, files_of_formats));
    }
    const std::string request =
        Sha256HexOf(fmt::format("{}{}", record_.ended_realtime_ns, fmt::join(texts, "")));
    ASSIGN_OR_RETURN(const v1::DeliveredStep* const there, FindDone("workers", request));
    if (there != nullptr) return absl::OkStatus();
    std::vector<std::string> names;
    for (const std::string& directory : directories) {
      names.push_back(fmt::format("{}/{}/neurontrace.json", directory, session));
    }
    delivery_->Expect(names);
    ASSIGN_OR_RETURN(OutputFiles* const files, delivery_->BeginStep("workers", request, ""));
    for (size_t i = 0; i < workers.size(); ++i) {
      RETURN_IF_ERROR(CheckStillOwned("workers"));
      ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, files->Open(names[i]));
      RETURN_IF_ERROR(file->Write(texts[i]));
      RETURN_IF_ERROR(file->Close());
    }
    return delivery_->EndStep({});
  }

  // Returns the content of neurontrace.json, as docs/formats/shared_volume.md defines it.
  std::string WorkerJson(const WorkerIdentity& worker, const std::vector<std::string>& artifacts,
                         const std::vector<std::string>& files) const {
    JsonWriter out;
    out.Open('{').Member("format_version", 1);
    out.Space("\n").Member("capture_id", record_.id.ToString());
    out.Space("\n").Member("instance_id", worker.instance_id);
    out.Space("\n").Member("boot_id", worker.boot_id);
    out.Space("\n").Member("container_id", worker.container_id);
    out.Space("\n").Member("process_id", worker.pid);
    WritePaths(artifacts, out.Space("\n").Key("artifacts"));
    WritePaths(files, out.Space("\n").Key("files"));
    return out.Close('}').Take() + "\n";
  }

  // Returns the files of all formats of this request, whether this delivery or an earlier one wrote
  // them.
  std::vector<std::string> FilesOfFormats() const {
    std::vector<std::string> files;
    for (const v1::DeliveredStep& step : delivery_->manifest().steps()) {
      if (std::find(names_.begin(), names_.end(), step.name()) == names_.end()) continue;
      for (const v1::DeliveredFile& file : step.files()) files.push_back(file.name());
    }
    return files;
  }

  // Paths are relative to the directory of the file that lists them.
  static void WritePaths(const std::vector<std::string>& paths, JsonWriter& out) {
    out.Open('[');
    for (size_t i = 0; i < paths.size(); ++i) {
      if (i > 0) out.Space("\n");
      out.Value("../../" + paths[i]);
    }
    out.Close(']');
  }

  const DeliveryDeps& deps_;
  const CaptureRecord& record_;
  const v1::ExportRequest& request_;
  const CaptureClocks& clocks_;
  const ExportWriter& write_;
  std::unique_ptr<Volume> volume_;
  std::unique_ptr<Delivery> delivery_;
  // The first error of Keep; once it is set, nothing may be written any more.
  absl::Status kept_;
  std::vector<ArtifactReference> artifacts_;
  // The path of each artifact; empty if it is not delivered.
  std::vector<std::string> paths_;
  // The steps of the formats.
  std::vector<std::string> names_;
  // Texts about damaged artifacts.
  std::vector<std::string> damaged_;
  // The reply to the client, which grows with each format.
  v1::ExportDone done_;
};

}  // namespace

absl::Status DeliverStoredCapture(const DeliveryDeps& deps, const CaptureRecord& record,
                                  const v1::ExportRequest& request, const CaptureClocks& clocks,
                                  const ExportWriter& write) {
  if (!HasEnded(record.state)) {
    return FailedPrecondition(
        "capture {} is still recording, and a destination accepts only captures that have ended; "
        "stop it, or export it to a file with -o",
        record.id.ToString());
  }
  return DeliveryRun(deps, record, request, clocks, write).Run();
}

}  // namespace neurontrace
