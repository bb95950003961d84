// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/chunk_admission.h"

#include <utility>

#include "aggregator/store/foreign_stops.h"
#include "lib/base/status.h"
#include "lib/wire/chunk_envelope.h"
#include "lib/wire/conversions.h"

namespace neurontrace {

// The buffers of one validation. Reused, because a validator grows to the size of the largest
// decoded chunk, and allocating that for every chunk would dominate its cost.
struct ChunkAdmission::Workspace {
  ChunkValidator validator;
  ForeignStopFinder stops;
};

// Holds a workspace and returns it at its end.
class ChunkAdmission::Lease {
 public:
  // Takes an idle workspace or makes one. The number of workspaces equals the highest number of
  // concurrent calls so far.
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
  // Held until the end of the function: the chunk that `stops` reads is owned by the validator.
  Lease workspace(*this);
  ReceivedChunk chunk;
  ASSIGN_OR_RETURN(chunk.header, workspace->validator.Validate(envelope));
  // Otherwise an agent could store chunks in another agent's stream. The real ones would then be
  // acknowledged as duplicates without being stored.
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

// One envelope is reused for all chunks, which is why only one thread at a time may call the
// function. Examine moves its strings out.
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
