// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/chunk_admission.h"

#include <utility>

#include "aggregator/store/foreign_stops.h"
#include "lib/base/status.h"
#include "lib/wire/chunk_envelope.h"
#include "lib/wire/conversions.h"

namespace neurontrace {

struct ChunkAdmission::Workspace {
  ChunkValidator validator;
  ForeignStopFinder stops;
};

// Holds a workspace and returns it at its end.
class ChunkAdmission::Lease {
 public:
  explicit Lease(ChunkAdmission& door) : door_(door) {
    const MutexLock lock(door_.mutex_);
    if (!door_.idle_.empty()) {
      workspace_ = std::move(door_.idle_.back());
      door_.idle_.pop_back();
    }
    if (workspace_ == nullptr) workspace_ = std::make_unique<Workspace>();
  }
  ~Lease() {
    const MutexLock lock(door_.mutex_);
    door_.idle_.push_back(std::move(workspace_));
  }
  Workspace* operator->() { return workspace_.get(); }

 private:
  ChunkAdmission& door_;
  std::unique_ptr<Workspace> workspace_;
};

ChunkAdmission::ChunkAdmission() = default;
ChunkAdmission::~ChunkAdmission() = default;

absl::StatusOr<ReceivedChunk> ChunkAdmission::Admit(v1::ChunkEnvelope& envelope,
                                                    const std::string& agent_id) {
  return Take(envelope, &agent_id);
}

absl::StatusOr<ReceivedChunk> ChunkAdmission::Examine(v1::ChunkEnvelope& envelope) {
  return Take(envelope, nullptr);
}

absl::StatusOr<ReceivedChunk> ChunkAdmission::Take(v1::ChunkEnvelope& envelope,
                                                   const std::string* agent_id) {
  Lease workspace(*this);
  ReceivedChunk chunk;
  ASSIGN_OR_RETURN(chunk.header, workspace->validator.Validate(envelope));
  if (agent_id != nullptr && chunk.header.stream.agent_id != *agent_id) {
    return InvalidArgument("a chunk of agent {}'s stream {} was sent by agent {}",
                           chunk.header.stream.agent_id, ToString(chunk.header.stream), *agent_id);
  }
  if (envelope.has_gone_before()) {
    ASSIGN_OR_RETURN(chunk.gone_before, FromProto(envelope.gone_before()));
  }
  if (chunk.header.event_count > 0) {
    chunk.foreign_stops = workspace->stops.Find(workspace->validator.chunk());
  }
  // Only now, as a refusal must leave the envelope readable.
  chunk.crc32c = envelope.crc32c();
  chunk.header_bytes = std::move(*envelope.mutable_header());
  chunk.columns = std::move(*envelope.mutable_columns());
  return chunk;
}

ExamineChunk ExamineThrough(ChunkAdmission& door) {
  const auto envelope = std::make_shared<v1::ChunkEnvelope>();
  return [&door, envelope](std::string_view header, std::string_view columns, uint32_t crc32c) {
    envelope->set_header(header.data(), header.size());
    envelope->set_columns(columns.data(), columns.size());
    envelope->set_crc32c(crc32c);
    return door.Examine(*envelope);
  };
}

}  // namespace neurontrace
