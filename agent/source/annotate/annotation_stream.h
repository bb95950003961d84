// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/annotate/annotation_reader.h"
#include "agent/source/annotate/range_pairing.h"
#include "agent/source/chunk_sink.h"
#include "agent/source/shape_cache.h"
#include "agent/source/source_metrics.h"
#include "agent/source/stream_writer.h"
#include "lib/base/clock.h"
#include "lib/trace/ids.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// The annotations of one process in one capture, as a stream of kind kAnnotation: a begin and an
// end for each range, an instant for each mark. docs/formats/annotation_buffer.md has the
// attributes. On the agent's sequence.
//
// Records leave the process's rings when they are read, and nothing else keeps them until they are
// durable. An agent that restarts therefore records a loss of unknown size.
class AnnotationStream {
 public:
  // References outlive the stream. Only ranges with a higher number than `ranges_before` began in
  // this capture.
  AnnotationStream(const CaptureId& capture_id, StreamIdentity identity, uint64_t ranges_before,
                   const Clock& clock, ChunkSink& sink, AgentSourceMetrics& metrics);

  // Continues behind what the store holds of an earlier run of the agent, with a loss if that had
  // not ended the stream. To be called before any other function.
  void Resume(const StreamCursor& cursor);

  // Record one annotation. An end whose begin is not in this capture becomes a remark.
  void AddBegin(const ReadAnnotation& read, const AnnotatedRange& range);
  void AddEnd(const ReadAnnotation& read, const std::optional<AnnotatedRange>& range);
  void AddMark(const ReadAnnotation& read);
  // Records that so many annotations were dropped in the process.
  void AddDropped(uint64_t records);
  // Records that an unknown number is missing, for this reason.
  void AddLoss(LossPlace place, LossReason reason, std::string detail);

  void Tick();
  void Flush();
  void End();
  bool ended() const { return writer_.ended(); }
  bool finished() const { return writer_.finished(); }

 private:
  // Adds a row with the attributes of `read`.
  void Append(const ReadAnnotation& read, Phase phase, std::string_view event_type,
              uint64_t number);
  // Returns the position of the next record.
  uint64_t NextPosition() { return next_position_++; }

  const uint64_t ranges_before_;
  AgentSourceMetrics& metrics_;
  ShapeCache shapes_;
  StreamWriter writer_;
  uint64_t next_position_ = 1;
  // Reused; with the padding that ShapeCache needs.
  std::string event_type_;
  std::vector<ShapeKey> keys_;
  std::vector<AttributeValue> values_;
};

}  // namespace neurontrace
