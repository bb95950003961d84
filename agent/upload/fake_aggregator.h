// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/upload/upload_stream.h"
#include "lib/base/fake_task_runner.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/worker_info.h"
#include "lib/wire/chunk_envelope.h"
#include "lib/wire/conversions.h"

namespace neurontrace {

// For tests: an aggregator that stores chunks in order by the rules of the protocol, and keeps each
// stream's account as the store does. Outlives agents.
class FakeUploadAggregator {
 public:
  struct Stream {
    StreamCursor cursor;
    uint64_t stored = 0;                           // events
    std::map<std::pair<int, int>, uint64_t> lost;  // events, by place and reason
    std::vector<uint64_t> sequences;               // of chunks stored, stand-ins included
    std::string bytes;                             // all columns, in order
    std::vector<Loss> told;                        // by producers, in the headers

    uint64_t lost_events() const {
      uint64_t sum = 0;
      for (const auto& [where, events] : lost) sum += events;
      return sum;
    }
  };

  explicit FakeUploadAggregator(FakeTaskRunner& runner) : runner_(runner) {}

  UploadConnector connector() {
    return [this](UploadStream::Listener& listener) -> std::unique_ptr<UploadStream> {
      ++calls;
      return std::make_unique<Call>(*this, listener);
    };
  }

  // How many more chunks are stored and acknowledged; what comes after is not received.
  uint64_t budget = ~uint64_t{0};
  uint64_t received = 0;
  uint64_t received_bytes = 0;
  int calls = 0;
  std::map<std::string, Stream> streams;  // by name
  // While it returns true nothing is received.
  std::function<bool()> is_cut_off;
  // A chunk for which it returns true is refused permanently.
  std::function<bool(const ChunkHeader&)> refuses;

  std::vector<StreamCursor> Cursors() const {
    std::vector<StreamCursor> cursors;
    for (const auto& [name, stream] : streams) cursors.push_back(stream.cursor);
    return cursors;
  }

 private:
  class Call final : public UploadStream {
   public:
    Call(FakeUploadAggregator& aggregator, Listener& listener)
        : aggregator_(aggregator), listener_(listener) {}
    ~Call() override { *alive_ = false; }
    void Write(std::shared_ptr<const v1::ChunkEnvelope> envelope) override {
      aggregator_.runner_.PostTask([this, alive = alive_, envelope] {
        if (!*alive || aggregator_.budget == 0) return;
        if (aggregator_.is_cut_off && aggregator_.is_cut_off()) return;
        --aggregator_.budget;
        const v1::UploadAck ack = aggregator_.Handle(*envelope);
        listener_.OnAck(ack);
        if (*alive) listener_.OnWritten();
      });
    }

   private:
    FakeUploadAggregator& aggregator_;
    Listener& listener_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  };

  v1::UploadAck Handle(const v1::ChunkEnvelope& envelope) {
    ++received;
    received_bytes += envelope.columns().size();
    v1::UploadAck ack;
    ack.set_stream_ref(envelope.stream_ref());
    const auto header = ParseEnvelopeHeader(envelope);
    if (!header.ok()) {
      ack.set_refusal(v1::REFUSAL_CODE_MALFORMED);
      ack.set_message(std::string(header.status().message()));
      return ack;
    }
    Stream& stream = streams[header->stream.name];
    StreamCursor& cursor = stream.cursor;
    cursor.stream = header->stream;
    ack.set_refused_sequence(header->sequence);
    if (header->sequence > cursor.next_sequence && !envelope.has_gone_before()) {
      ack.set_refusal(v1::REFUSAL_CODE_GAP);
    } else if (header->sequence >= cursor.next_sequence) {
      if (refuses && !header->replaced && refuses(*header)) {
        ack.set_refusal(v1::REFUSAL_CODE_MALFORMED);
        ack.set_message("looks odd");
      } else {
        Store(*header, envelope, stream);
      }
    }
    ack.set_next_sequence(cursor.next_sequence);
    return ack;
  }

  static void Store(const ChunkHeader& header, const v1::ChunkEnvelope& envelope, Stream& stream) {
    StreamCursor& cursor = stream.cursor;
    if (header.sequence > cursor.next_sequence) {
      const auto& gone = envelope.gone_before();
      stream.lost[{gone.place(), gone.reason()}] += header.events_before - cursor.events_before;
      cursor.events_before = header.events_before;
    }
    if (header.replaced) {
      stream.lost[{static_cast<int>(header.replaced->place),
                   static_cast<int>(header.replaced->reason)}] += header.replaced->events;
    }
    stream.stored += header.event_count;
    stream.sequences.push_back(header.sequence);
    stream.bytes += envelope.columns();
    stream.told.insert(stream.told.end(), header.losses.begin(), header.losses.end());
    cursor.next_sequence = header.sequence + 1;
    cursor.source_position = header.source_position;
    cursor.ended = header.end_of_stream;
    cursor.events_before += header.events_accounted();
  }

  FakeTaskRunner& runner_;
};

}  // namespace neurontrace
