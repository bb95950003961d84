// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/source/neuron/decode/json_cursor.h"
#include "agent/source/neuron/decode/json_index.h"
#include "agent/source/neuron/decode/layout_predictor.h"
#include "agent/source/neuron/decode/nrt_event.h"
#include "agent/source/shape_cache.h"
#include "lib/trace/event.h"
#include "lib/trace/limits.h"

namespace neurontrace {

// Receives what a decoder finds, in the order of the document. Called on the decoder's thread.
class NrtEventSink {
 public:
  virtual ~NrtEventSink() = default;
  virtual void OnEvent(const NrtEvent& event) = 0;
  // An event that exceeds a limit of lib/trace/limits.h, or an element of the list that is not an
  // event. `fields` has what could be read of it; `present` says which fields those are.
  virtual void OnUnfitEvent(uint32_t nc_idx, const EventFields& fields, uint32_t present,
                            std::string_view why) = 0;
};

// The result of decoding one document.
struct NrtDecodeOutcome {
  uint64_t events = 0;
  uint64_t predicted_events = 0;  // of these, the ones read by LayoutPredictor
  uint64_t unfit_events = 0;
  uint64_t repaired_bytes = 0;  // that were not UTF-8, replaced by '?'
  // Where the document stops being valid. Events before that place were handed over; what follows
  // is lost, in unknown number.
  std::optional<JsonIndex::Fault> fault;
};

// Turns the documents of nrt_sys_trace_fetch_events into events, without a table of event types or
// keys, in any order of keys, and without loss, as lib/trace/event.h has it:
//   - the standard fields become columns when they are canonical numbers (in quotes or not),
//     anything else in their place becomes a top-level attribute, and so does every unknown key;
//   - a repeated key: the first is the field, further ones are top-level attributes; of repeated
//     keys in "data", and of keys in a repeated "data", all are kept;
//   - an `nc_idx` of limits::kCoresPerWorkerMax or more is an attribute, and its event has no core;
//   - an event without a usable timestamp gets that of the fetch, and the attribute
//     kTimestampMadeUpKey.
// Beside "events", keys of the envelope are checked and ignored.
//
// Events written like earlier ones are read by LayoutPredictor, with the same result.
//
// The cost of an event does not depend on how many shapes there are. Reused from document to
// document and worker to worker; one thread at a time.
class NrtEventDecoder {
 public:
  static constexpr size_t kPaddingBytes = JsonIndex::kPaddingBytes;

  // Tests and benchmarks compare both.
  enum class Prediction : uint8_t { kOff, kOn };
  NrtEventDecoder() = default;
  explicit NrtEventDecoder(Prediction prediction) : prediction_(prediction) {}

  // Decodes `size` bytes at `document`, which are followed by kPaddingBytes zero bytes; bytes that
  // are not UTF-8 are changed in place. `fetched_ns` is the realtime of the fetch. Never fails as a
  // whole: see the outcome's `fault`.
  NrtDecodeOutcome Decode(char* document, size_t size, uint64_t fetched_ns, NrtEventSink& sink);

 private:
  // Each takes one construct of the document. They return false after a fault of the grammar, which
  // ends the decoding; anything that is only unexpected becomes an attribute or an unfit event.
  bool ReadEnvelope(JsonCursor& cursor, NrtEventSink& sink);
  bool ReadEvents(JsonCursor& cursor, NrtEventSink& sink);
  bool ReadEvent(JsonCursor& cursor, NrtEventSink& sink);
  // Takes the event if it has a known layout. Otherwise returns false, without a fault.
  bool ReadPredictedEvent(JsonCursor& cursor, NrtEventSink& sink);
  // Takes a member of an event: a field, the "data" object, or a top-level attribute.
  bool ReadTopMember(JsonCursor& cursor, std::string_view key);
  bool ReadData(JsonCursor& cursor);
  bool ReadCore(JsonCursor& cursor, std::string_view key);
  bool ReadPhase(JsonCursor& cursor, std::string_view key);
  bool ReadEventType(JsonCursor& cursor, std::string_view key);
  // Take one field each; anything but the field's canonical form becomes an attribute.
  bool ReadUnsigned(JsonCursor& cursor, std::string_view key, Field field,
                    uint64_t EventFields::*member);
  bool ReadWorkerGid(JsonCursor& cursor, std::string_view key);
  bool ReadAttribute(JsonCursor& cursor, std::string_view key, KeyScope scope);
  // Takes the value of a standard key that is not the field. As this depends on the value, or on
  // the keys before it, the event's layout says nothing about other events.
  bool ReadMisfit(JsonCursor& cursor, std::string_view key);
  // Notes where a value is, for the event's layout.
  void AddPlace(const char* at, LayoutPredictor::ValueKind kind, size_t slot);
  // Adds an attribute to the current event, or marks the event as unfit if it exceeds a limit.
  void AddAttribute(std::string_view key, KeyScope scope, ValueType type,
                    const AttributeValue& value);
  void BeginEvent();
  // Passes the event, or the reason why it is unfit, to the sink. Its text has so many tokens.
  void EmitEvent(std::string_view text, uint32_t tokens, NrtEventSink& sink);

  const Prediction prediction_ = Prediction::kOn;
  JsonIndex index_;
  ShapeCache shapes_;
  LayoutPredictor layouts_;
  std::string unescaped_;

  // The document at hand.
  NrtDecodeOutcome outcome_;
  uint64_t fetched_ns_ = 0;

  // The event at hand.
  EventFields fields_;
  std::string_view event_type_;
  Phase phase_ = Phase::kOther;
  bool phase_seen_ = false;
  uint32_t present_ = 0;
  uint32_t quoted_ = 0;
  uint32_t nc_idx_ = limits::kNoNcIdx;
  std::string_view unfit_;  // why, or empty
  uint32_t key_count_ = 0;
  std::array<ShapeKey, limits::kAttributesPerEventMax> keys_;
  std::array<AttributeValue, limits::kAttributesPerEventMax> values_;
  // Where its values are, unless it cannot be a layout.
  bool has_layout_ = true;
  uint32_t place_count_ = 0;
  std::array<LayoutPredictor::Place, limits::kAttributesPerEventMax + kFieldCount> places_;
};

}  // namespace neurontrace
