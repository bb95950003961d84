// SPDX-License-Identifier: Apache-2.0
#include "agent/upload/artifact_uploader.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "lib/base/sha256.h"
#include "lib/base/stall_watch.h"
#include "lib/base/status.h"
#include "lib/trace/artifact_limits.h"

namespace neurontrace {
namespace {

using Fate = ArtifactSink::Fate;

// For calls that carry no content. An aggregator that does not answer within it is tried again
// later.
constexpr std::chrono::seconds kOfferPatience{20};

// The outcome for a file that is not, or no longer, the one that was found.
ArtifactSink::Outcome Changed() { return {Fate::kChanged, "it changed while it was read"}; }

// The meaning of a call that returned no answer.
ArtifactSink::Outcome OutcomeOf(const grpc::Status& status) {
  switch (status.error_code()) {
    // Trying again would not help, so the file is reported as refused.
    case grpc::StatusCode::UNIMPLEMENTED:
      return {Fate::kRefused, "the aggregator is an older version that does not store artifacts"};
    case grpc::StatusCode::INVALID_ARGUMENT:
      return {Fate::kRefused, status.error_message()};
    default:
      return {Fate::kAway, status.error_message()};
  }
}

// The meaning of the aggregator's answer. An outcome that this version does not know counts as
// refused, since trying again would give the same.
ArtifactSink::Outcome OutcomeOf(const v1::ArtifactAnswer& answer) {
  switch (answer.outcome()) {
    case v1::ARTIFACT_OUTCOME_KEPT:
      return {Fate::kKept, ""};
    case v1::ARTIFACT_OUTCOME_SEND:  // of a Put: what came is gone again
    case v1::ARTIFACT_OUTCOME_BUSY:
      return {Fate::kAway, answer.detail()};
    case v1::ARTIFACT_OUTCOME_DIFFERENT:
      return {Fate::kChanged, answer.detail()};
    default:
      return {Fate::kRefused,
              fmt::format("{} {}", v1::ArtifactOutcome_Name(answer.outcome()), answer.detail())};
  }
}

}  // namespace

ArtifactUploader::ArtifactUploader(std::shared_ptr<grpc::Channel> channel, std::string agent_id,
                                   TaskRunner& runner)
    : stub_(v1::ArtifactGateway::NewStub(channel)),
      agent_id_(std::move(agent_id)),
      runner_(runner),
      thread_([this] { loop_.Run(); }) {}

ArtifactUploader::~ArtifactUploader() {
  // The order matters: NewContext either sees `ending_` or has registered its call here.
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    if (const auto context = in_progress_.lock()) context->TryCancel();
  }
  loop_.PostTask([this] { loop_.Quit(); });
  thread_.join();
}

std::shared_ptr<grpc::ClientContext> ArtifactUploader::NewContext() {
  auto context = std::make_shared<grpc::ClientContext>();
  const MutexLock lock(mutex_);
  if (ending_) return nullptr;
  in_progress_ = context;
  return context;
}

void ArtifactUploader::Find(const std::vector<std::string>& roots, const std::string& instance_id,
                            Found done) {
  loop_.PostTask([this, roots, instance_id, done = std::move(done)] {
    bool truncated = false;
    std::vector<FoundArtifact> all;
    for (const std::string& root : roots) {
      std::vector<FoundArtifact> found = FindArtifacts(root, instance_id, truncated);
      std::move(found.begin(), found.end(), std::back_inserter(all));
    }
    // Results always return to the agent's sequence; nothing else crosses.
    runner_.PostTask([done, all = std::move(all), truncated] { done(all, truncated); });
  });
}

void ArtifactUploader::Submit(const CaptureId& capture_id, const FoundArtifact& artifact,
                              Done done) {
  loop_.PostTask([this, capture_id, artifact, done = std::move(done)] {
    const Outcome outcome = Send(capture_id, artifact);
    if (outcome.fate == Fate::kRefused) {
      SPDLOG_WARN("artifact {} of capture {} is not stored: {}", artifact.place.path(),
                  capture_id.ToString(), outcome.why);
    }
    runner_.PostTask([done, outcome] { done(outcome); });
  });
}

void ArtifactUploader::Forgo(const CaptureId& capture_id, const FoundArtifact& artifact,
                             const std::string& why, Done done) {
  v1::ArtifactForgone forgone;
  forgone.set_capture_id(std::string(capture_id.bytes()));
  forgone.set_agent_id(agent_id_);
  forgone.set_root(ArtifactRootOf(artifact.root));
  forgone.set_directory(artifact.place.directory);
  forgone.set_session(artifact.place.session);
  forgone.set_name(artifact.place.name);
  forgone.set_bytes(artifact.state.bytes);
  forgone.set_reason(why);
  loop_.PostTask([this, forgone = std::move(forgone), done = std::move(done)] {
    runner_.PostTask([done, outcome = SendSkipped(forgone)] { done(outcome); });
  });
}

void ArtifactUploader::SubmitContent(const CaptureId& capture_id, const ArtifactPlace& place,
                                     uint64_t made_realtime_ns, std::string content, Done done) {
  assert(content.size() <= limits::kArtifactPartBytesMax);
  v1::ArtifactOffer offer;
  offer.set_capture_id(std::string(capture_id.bytes()));
  offer.set_agent_id(agent_id_);
  offer.set_directory(place.directory);
  offer.set_session(place.session);
  offer.set_name(place.name);
  offer.set_bytes(content.size());
  offer.set_modified_realtime_ns(made_realtime_ns);
  loop_.PostTask(
      [this, offer = std::move(offer), content = std::move(content), done = std::move(done)] {
        runner_.PostTask([done, outcome = SendContent(offer, content)] { done(outcome); });
      });
}

ArtifactSink::Outcome ArtifactUploader::SendContent(v1::ArtifactOffer offer,
                                                    const std::string& content) {
  Sha256 sha;
  sha.Update(content);
  offer.set_sha256(sha.Finish());
  auto context = NewContext();
  if (context == nullptr) return {Fate::kAway, "the agent is shutting down"};
  context->set_deadline(std::chrono::system_clock::now() + kOfferPatience);
  v1::ArtifactAnswer answer;
  grpc::Status status = stub_->Offer(context.get(), offer, &answer);
  if (!status.ok()) return OutcomeOf(status);
  if (answer.outcome() != v1::ARTIFACT_OUTCOME_SEND) return OutcomeOf(answer);
  context = NewContext();
  if (context == nullptr) return {Fate::kAway, "the agent is shutting down"};
  context->set_deadline(std::chrono::system_clock::now() + kOfferPatience);
  const auto writer = stub_->Put(context.get(), &answer);
  v1::ArtifactPart part;
  const uint64_t offset = std::min<uint64_t>(answer.offset(), content.size());
  part.set_offset(offset);
  part.set_content(content.substr(offset));
  *part.mutable_offer() = std::move(offer);
  writer->Write(part);  // Finish has its result
  writer->WritesDone();
  status = writer->Finish();
  return status.ok() ? OutcomeOf(answer) : OutcomeOf(status);
}

ArtifactSink::Outcome ArtifactUploader::SendSkipped(const v1::ArtifactForgone& forgone) {
  const auto context = NewContext();
  if (context == nullptr) return {Fate::kAway, "the agent is shutting down"};
  context->set_deadline(std::chrono::system_clock::now() + kOfferPatience);
  v1::ArtifactAnswer answer;
  const grpc::Status status = stub_->Forgo(context.get(), forgone, &answer);
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return OutcomeOf(answer);
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:  // more calls than it takes, just now
      return {Fate::kAway, status.error_message()};
    default:  // another attempt would fail in the same way
      return {Fate::kRefused, status.error_message()};
  }
}

absl::StatusOr<std::string> ArtifactUploader::HashOf(const ArtifactFile& file,
                                                     const FoundArtifact& artifact) {
  const std::string path = artifact.root + "/" + artifact.place.path();
  // Size and time of change must agree, or the remembered hash is of older content.
  const auto known = hashes_.find(path);
  if (known != hashes_.end() && known->second.first == artifact.state) return known->second.second;
  Sha256 sha;
  for (uint64_t offset = 0; offset < artifact.state.bytes;) {
    ASSIGN_OR_RETURN(const std::string piece, file.Read(offset, limits::kArtifactPartBytes));
    if (piece.empty()) break;
    sha.Update(piece);
    offset += piece.size();
    const MutexLock lock(mutex_);
    if (ending_) return absl::CancelledError("the agent is shutting down");
  }
  // Only a cache: a lost hash costs one more reading.
  if (hashes_.size() >= kHashesKept) hashes_.clear();
  std::string digest = sha.Finish();
  hashes_[path] = {artifact.state, digest};
  return digest;
}

ArtifactSink::Outcome ArtifactUploader::Send(const CaptureId& capture_id,
                                             const FoundArtifact& artifact) {
  // Checked here so that a huge file is not read for nothing; the aggregator checks it too.
  if (artifact.state.bytes > limits::kArtifactBytesMax) {
    return {Fate::kRefused, fmt::format("it has {} bytes; the limit is {}", artifact.state.bytes,
                                        limits::kArtifactBytesMax)};
  }
  const auto file = ArtifactFile::Open(artifact.root, artifact.place);
  if (!file.ok()) return {Fate::kChanged, std::string(file.status().message())};
  // The state that was found, before the hash: a remembered hash must belong to this content.
  auto state = file->State();
  if (!state.ok() || *state != artifact.state) return Changed();
  const auto hash = HashOf(*file, artifact);
  if (!hash.ok()) return {Fate::kAway, std::string(hash.status().message())};
  state = file->State();
  if (!state.ok() || *state != artifact.state) return Changed();

  // The name, the hash and the size are enough for the aggregator to decide whether it needs the
  // content.
  v1::ArtifactOffer offer;
  offer.set_capture_id(std::string(capture_id.bytes()));
  offer.set_agent_id(agent_id_);
  offer.set_root(ArtifactRootOf(artifact.root));
  offer.set_directory(artifact.place.directory);
  offer.set_session(artifact.place.session);
  offer.set_name(artifact.place.name);
  offer.set_sha256(*hash);
  offer.set_bytes(artifact.state.bytes);
  offer.set_modified_realtime_ns(artifact.state.modified_ns);
  const auto context = NewContext();
  if (context == nullptr) return {Fate::kAway, "the agent is shutting down"};
  context->set_deadline(std::chrono::system_clock::now() + kOfferPatience);
  v1::ArtifactAnswer answer;
  const grpc::Status status = stub_->Offer(context.get(), offer, &answer);
  if (!status.ok()) return OutcomeOf(status);
  // The aggregator has the content already, or refuses it.
  if (answer.outcome() != v1::ARTIFACT_OUTCOME_SEND) return OutcomeOf(answer);
  return Put(*file, artifact, offer, std::min(answer.offset(), offer.bytes()));
}

ArtifactSink::Outcome ArtifactUploader::Put(const ArtifactFile& file, const FoundArtifact& artifact,
                                            const v1::ArtifactOffer& offer, uint64_t offset) {
  const auto context = NewContext();
  if (context == nullptr) return {Fate::kAway, "the agent is shutting down"};
  v1::ArtifactAnswer answer;
  // The aggregator compares the hash of all parts with the offer, so a file that changes during
  // this second reading is never stored.
  const auto writer = stub_->Put(context.get(), &answer);
  // No deadline for the whole transfer, whose size varies by orders of magnitude; only for
  // progress.
  StallWatch watch(runner_, {.period_ns = limits::kArtifactAnswerNs},
                   [&context] { context->TryCancel(); });
  v1::ArtifactPart part;
  *part.mutable_offer() = offer;
  bool is_whole = true;
  do {
    const auto piece = file.Read(offset, limits::kArtifactPartBytes);
    // A file that became shorter ends early; an empty file is sent as one empty part.
    is_whole = piece.ok() && (!piece->empty() || offset == offer.bytes());
    if (!is_whole) break;
    part.set_offset(offset);
    part.set_content(piece->substr(0, std::min<uint64_t>(piece->size(), offer.bytes() - offset)));
    offset += part.content().size();
    watch.Progress(1);
    if (!writer->Write(part)) break;  // Finish says why
    part.clear_offer();
  } while (offset < offer.bytes());
  const auto state = file.State();
  is_whole = is_whole && state.ok() && *state == artifact.state;
  // So that the aggregator discards the parts instead of waiting for the rest.
  if (!is_whole) context->TryCancel();
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!is_whole) return Changed();
  return status.ok() ? OutcomeOf(answer) : OutcomeOf(status);
}

}  // namespace neurontrace
