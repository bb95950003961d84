// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/delivery.h"

#include <utility>
#include <vector>

#include "aggregator/deliver/manifest.h"
#include "lib/base/status.h"
#include "lib/trace/delivery_limits.h"

namespace neurontrace {
namespace {

constexpr std::string_view kManifest = "manifest.json";
constexpr std::string_view kPartialManifest = "manifest.partial.json";
constexpr std::string_view kChecksums = "SHA256SUMS";
// After at least this many bytes or nanoseconds the end of a step is saved: enough that an
// interruption costs little, and seldom enough for deliveries of thousands of small steps, as
// saving costs a write of the whole manifest.
constexpr uint64_t kSaveBytes = 64u << 20;
constexpr uint64_t kSaveNs = 2'000'000'000;

// Returns the path of a file in a directory of the volume; "" is the volume itself.
std::string Below(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
}

}  // namespace

// The files of one step until it ends. Entries are collected in now_, which replaces the step of
// the manifest only when the step ends.
class Delivery::Step : public OutputFiles {
 public:
  // `others` is the number of files of the other steps.
  Step(Delivery& delivery, std::string directory, v1::DeliveredStep now, size_t others)
      : delivery_(delivery),
        directory_(std::move(directory)),
        others_(others),
        now_(std::move(now)) {}
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view name) override;

  v1::DeliveredStep& now() { return now_; }
  bool has_open() const { return open_ != 0; }

 private:
  // Files report their result here when they are closed.
  friend class Delivery::StepFile;
  Delivery& delivery_;
  const std::string directory_;
  const size_t others_;
  v1::DeliveredStep now_;
  absl::flat_hash_set<std::string> names_;
  size_t open_ = 0;
};

// Hashes what it writes. The claim is asked before each operation, as Claim demands.
class Delivery::StepFile : public OutputFile {
 public:
  StepFile(Step& step, std::string name, std::unique_ptr<Volume::File> file)
      : step_(step), name_(std::move(name)), file_(std::move(file)) {
    ++step_.open_;
  }
  ~StepFile() override { --step_.open_; }

  absl::Status Write(std::string_view bytes) override {
    RETURN_IF_ERROR(step_.delivery_.Keep());
    RETURN_IF_ERROR(file_->Write(bytes));
    hash_.Update(bytes);
    bytes_ += bytes.size();
    step_.delivery_.bytes_written_ += bytes.size();
    return absl::OkStatus();
  }

  // Makes the content durable first, then commits the file under its name and adds it to the step.
  absl::Status Close() override {
    RETURN_IF_ERROR(step_.delivery_.Keep());
    RETURN_IF_ERROR(file_->Sync());
    RETURN_IF_ERROR(step_.delivery_.Keep());
    RETURN_IF_ERROR(file_->Commit());
    step_.delivery_.tokens_.erase(name_);
    ++step_.delivery_.files_written_;
    v1::DeliveredFile& file = *step_.now_.add_files();
    file.set_name(name_);
    file.set_bytes(bytes_);
    file.set_sha256(HexOf(hash_.Finish()));
    return absl::OkStatus();
  }

 private:
  Step& step_;
  const std::string name_;
  const std::unique_ptr<Volume::File> file_;
  Sha256 hash_;
  uint64_t bytes_ = 0;
};

// Checks the name and the limits before anything changes on the volume.
absl::StatusOr<std::unique_ptr<OutputFile>> Delivery::Step::Open(std::string_view name) {
  if (!IsVolumeName(name)) return InvalidArgument("delivery: '{}' is not a valid file name", name);
  if (names_.size() >= limits::kExportFilesMax) {
    return ResourceExhausted("delivery: more than {} files", limits::kExportFilesMax);
  }
  if (others_ + names_.size() >= limits::kDeliveredFilesMax) {
    return ResourceExhausted(
        "delivery: more than {} files of one capture; choose another destination",
        limits::kDeliveredFilesMax);
  }
  if (!names_.emplace(name).second)
    return InvalidArgument("delivery: two files have the name {}", name);
  const std::string path = Below(directory_, name);
  RETURN_IF_ERROR(delivery_.Keep());
  // Saved before the file exists, so that a successor knows where temporary files may be.
  delivery_.AddDirectoryOf(path);
  if (!delivery_.are_directories_saved_) RETURN_IF_ERROR(delivery_.Save());
  // An interrupted delivery may have sent parts of this file already.
  Volume::Resumption resumption;
  const auto known = delivery_.tokens_.find(path);
  if (known != delivery_.tokens_.end()) resumption.token = known->second;
  resumption.remember = [&delivery = delivery_, path](const std::string& token) {
    return delivery.Remember(path, token);
  };
  ASSIGN_OR_RETURN(std::unique_ptr<Volume::File> file,
                   delivery_.volume_.Create(path, std::move(resumption)));
  return std::make_unique<StepFile>(*this, path, std::move(file));
}

Delivery::Delivery(Volume& volume, const Spec& spec, const Clock& clock)
    : volume_(volume),
      spec_(spec),
      clock_(clock),
      directory_(fmt::format("neurontrace_{}", spec.capture.ToString())) {}

Delivery::~Delivery() = default;

absl::StatusOr<std::unique_ptr<Delivery>> Delivery::Begin(Volume& volume, const Spec& spec,
                                                          const Clock& clock) {
  std::unique_ptr<Delivery> delivery(new Delivery(volume, spec, clock));
  ASSIGN_OR_RETURN(delivery->claim_, Claim::Take(volume, delivery->directory_, spec.owner, clock));
  RETURN_IF_ERROR(delivery->Resume());
  return delivery;
}

// The partial manifest takes precedence: if both exist, the whole one is older.
absl::Status Delivery::Resume() {
  for (const std::string_view name : {kPartialManifest, kManifest}) {
    const auto text = volume_.Read(Below(directory_, name), limits::kManifestBytesMax);
    if (absl::IsNotFound(text.status())) continue;
    RETURN_IF_ERROR(text.status());
    // Even if nothing of it can be read: Finish must remove it.
    is_open_ = is_open_ || name == kPartialManifest;
    auto parsed = ParseManifest(*text);
    // Half written, on a volume without rename: what it would have listed is written again.
    if (!parsed.ok() || parsed->capture_id() != spec_.capture.ToString()) continue;
    manifest_ = *std::move(parsed);
    break;
  }
  // The indexes over the manifest: tokens by file, steps by name, and the number of files.
  for (const v1::UnfinishedFile& file : manifest_.unfinished()) {
    tokens_[file.name()] = file.token();
  }
  for (v1::DeliveredStep& step : *manifest_.mutable_steps()) {
    steps_.emplace(step.name(), &step);
    files_ += static_cast<size_t>(step.files_size());
  }
  // Earlier deliveries of this capture are over, as this one has the claim: their temporary files
  // can go.
  for (const std::string& directory : manifest_.directories()) {
    RETURN_IF_ERROR(Keep());
    volume_.Sweep(directory);
  }
  if (is_open_) volume_.Sweep(directory_);
  manifest_.clear_directories();
  manifest_.set_format_version(kManifestVersion);
  manifest_.set_producer(spec_.producer);
  manifest_.set_capture_id(spec_.capture.ToString());
  return absl::OkStatus();
}

// Everything that a successor needs is in this one file.
absl::Status Delivery::Save() {
  manifest_.clear_unfinished();
  for (const auto& [name, token] : tokens_) {
    v1::UnfinishedFile& file = *manifest_.add_unfinished();
    file.set_name(name);
    file.set_token(token);
  }
  manifest_.set_complete(false);
  saved_bytes_ = bytes_written_;
  saved_monotonic_ns_ = clock_.MonotonicNs();
  are_directories_saved_ = true;
  return WriteManifest(kPartialManifest);
}

absl::Status Delivery::WriteManifest(std::string_view name) {
  if (const char* const list = OverfullList(manifest_); list != nullptr) {
    return ResourceExhausted("delivery: {} has more than {} {}; choose another destination", name,
                             limits::kManifestEntriesMax, list);
  }
  return Write(name, FormatManifest(manifest_));
}

// Writes a file about the delivery, next to the capture's own files.
absl::Status Delivery::Write(std::string_view name, const std::string& text) {
  if (text.size() > spec_.manifest_bytes_max) {
    return ResourceExhausted("delivery: {} has more than {} bytes; choose another destination",
                             name, spec_.manifest_bytes_max);
  }
  return WriteWhole(volume_, Below(directory_, name), text, [this] { return Keep(); });
}

absl::Status Delivery::Remove(const std::string& name) {
  RETURN_IF_ERROR(Keep());
  return volume_.Remove(name);
}

// The partial manifest is written before the manifest is removed: a crash in between leaves both,
// and Resume prefers the partial one.
absl::Status Delivery::Open() {
  RETURN_IF_ERROR(Save());
  is_open_ = true;
  // Removes the manifest even if an earlier delivery had opened the directory: that one may have
  // died before it came to this.
  if (is_manifest_gone_) return absl::OkStatus();
  RETURN_IF_ERROR(Remove(Below(directory_, kManifest)));
  RETURN_IF_ERROR(Remove(Below(directory_, kChecksums)));
  is_manifest_gone_ = true;
  return absl::OkStatus();
}

void Delivery::AddDirectoryOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string::npos || !directories_.insert(name.substr(0, slash)).second) return;
  manifest_.add_directories(name.substr(0, slash));
  are_directories_saved_ = false;
}

void Delivery::Expect(const std::vector<std::string>& names) {
  for (const std::string& name : names) AddDirectoryOf(name);
}

absl::Status Delivery::Remember(const std::string& name, const std::string& token) {
  tokens_[name] = token;
  return Save();
}

v1::DeliveredStep* Delivery::Find(const std::string& step) {
  const auto found = steps_.find(step);
  return found == steps_.end() ? nullptr : found->second;
}

absl::StatusOr<const v1::DeliveredStep*> Delivery::FindDone(
    const std::string& step, const std::string& request,
    const ContinuationCheck& check_continuation) {
  const v1::DeliveredStep* const known = Find(step);
  if (known == nullptr || !known->done() || known->request() != request) return nullptr;
  // Sizes are compared instead of hashes: reading everything again would cost as much as writing
  // it.
  for (const v1::DeliveredFile& file : known->files()) {
    RETURN_IF_ERROR(check_continuation());
    const auto size = volume_.Size(file.name());
    if (!size.ok() || *size != file.bytes()) return nullptr;
  }
  files_there_ += static_cast<uint64_t>(known->files_size());
  return known;
}

absl::StatusOr<OutputFiles*> Delivery::BeginStep(const std::string& step,
                                                 const std::string& request,
                                                 const std::string& directory) {
  v1::DeliveredStep* known = Find(step);
  if (known == nullptr) {
    known = manifest_.add_steps();
    known->set_name(step);
    steps_.emplace(step, known);
  }
  // No manifest that exists may claim any longer that this step is whole.
  const bool is_reported = known->done() || !is_manifest_gone_;
  // Before Open saves the manifest.
  known->set_done(false);
  if (is_reported) RETURN_IF_ERROR(Open());
  v1::DeliveredStep now;
  now.set_name(step);
  now.set_request(request);
  step_ = std::make_unique<Step>(*this, directory, std::move(now),
                                 files_ - static_cast<size_t>(known->files_size()));
  return step_.get();
}

absl::Status Delivery::EndStep(const StepEnd& end) {
  if (step_->has_open())
    return Internal("delivery: a file of {} is still open", step_->now().name());
  // The new entry replaces the old one at once, and what only the old one lists is removed.
  v1::DeliveredStep& now = step_->now();
  now.set_done(true);
  now.set_verdict(end.verdict);
  now.set_capture_incomplete(end.capture_incomplete);
  v1::DeliveredStep* const known = Find(now.name());
  absl::flat_hash_set<std::string> names;
  for (const v1::DeliveredFile& file : now.files()) names.insert(file.name());
  std::vector<std::string> gone;
  for (const v1::DeliveredFile& file : known->files()) {
    // An earlier delivery of this step wrote it, for instance one with more parts.
    if (!names.contains(file.name())) gone.push_back(file.name());
  }
  files_ = files_ - static_cast<size_t>(known->files_size()) + names.size();
  *known = std::move(now);
  step_.reset();
  // Not after each of many small steps: those since the last manifest are written again after an
  // interruption.
  const bool is_worth_it = bytes_written_ >= saved_bytes_ + kSaveBytes ||
                           clock_.MonotonicNs() >= saved_monotonic_ns_ + kSaveNs;
  if (gone.empty() && !is_worth_it) return absl::OkStatus();
  // Before the removals: a manifest must not list files that are gone.
  RETURN_IF_ERROR(Save());
  for (const std::string& name : gone) RETURN_IF_ERROR(Remove(name));
  return absl::OkStatus();
}

absl::Status Delivery::Finish() {
  // Nothing was written, because everything was there.
  if (!is_open_) return absl::OkStatus();
  RETURN_IF_ERROR(Keep());
  for (const auto& [name, token] : tokens_) {
    RETURN_IF_ERROR(Keep());
    volume_.Abandon(name, token);
  }
  tokens_.clear();
  // Steps that an earlier delivery began and this one was not asked for are removed with their
  // files. steps_ is cleared first, because its pointers do not survive the following.
  steps_.clear();
  int done = 0;
  for (int i = 0; i < manifest_.steps_size(); ++i) {
    if (manifest_.steps(i).done()) {
      manifest_.mutable_steps()->SwapElements(done++, i);
      continue;
    }
    for (const v1::DeliveredFile& file : manifest_.steps(i).files()) {
      RETURN_IF_ERROR(Remove(file.name()));
    }
  }
  manifest_.mutable_steps()->DeleteSubrange(done, manifest_.steps_size() - done);
  manifest_.clear_unfinished();
  manifest_.clear_directories();
  manifest_.set_complete(true);
  // The manifest comes last among the files that readers look for, as its existence promises all
  // others.
  RETURN_IF_ERROR(Write(kChecksums, FormatChecksums(manifest_)));
  RETURN_IF_ERROR(WriteManifest(kManifest));
  return Remove(Below(directory_, kPartialManifest));
}

std::string Delivery::manifest_path() const { return volume_.Where(Below(directory_, kManifest)); }

}  // namespace neurontrace
