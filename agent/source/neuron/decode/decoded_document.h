// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/source/neuron/decode/nrt_event_decoder.h"

namespace neurontrace {

// For tests: copies everything that a decoder hands over, so that it can be examined afterwards.
// One thread.
class DecodedDocument final : public NrtEventSink {
 public:
  // An attribute with its key.
  struct Value {
    std::string key;
    ValueType type = ValueType::kNull;
    KeyScope scope = KeyScope::kData;
    uint64_t bits = 0;
    std::string text;
    friend bool operator==(const Value&, const Value&) = default;
  };
  // One event, with everything copied.
  struct Event {
    uint32_t nc_idx = 0;
    uint32_t shape_number = 0;
    uint32_t shape_generation = 0;
    std::string type;
    Phase phase = Phase::kOther;
    uint32_t present = 0;
    uint32_t quoted = 0;
    EventFields fields;
    std::vector<Value> values;
    friend bool operator==(const Event&, const Event&) = default;
  };
  // One that was unfit.
  struct Unfit {
    uint32_t nc_idx = 0;
    EventFields fields;
    uint32_t present = 0;
    std::string why;
    friend bool operator==(const Unfit&, const Unfit&) = default;
  };

  // The time of the fetch, which events without a time get.
  static constexpr uint64_t kFetchedNs = 1'700'000'000'000'000'007;

  // Decodes one document with a decoder of its own.
  explicit DecodedDocument(std::string_view json) {
    NrtEventDecoder decoder;
    Decode(decoder, json);
  }
  DecodedDocument() = default;

  // Decodes with a decoder that a test reuses; adds to what is here.
  void Decode(NrtEventDecoder& decoder, std::string_view json) {
    std::string padded(json);
    padded.append(NrtEventDecoder::kPaddingBytes, '\0');
    outcome = decoder.Decode(padded.data(), json.size(), kFetchedNs, *this);
  }

  void OnEvent(const NrtEvent& event) override {
    const Shape& shape = event.shape->shape;
    Event copy{event.nc_idx,
               event.shape->number,
               event.shape->generation,
               std::string(shape.event_type),
               shape.phase,
               shape.present,
               shape.quoted,
               event.fields,
               {}};
    for (size_t i = 0; i < event.values.size(); ++i) {
      copy.values.push_back({std::string(shape.keys[i].name), shape.keys[i].type,
                             shape.keys[i].scope, event.values[i].bits,
                             std::string(event.values[i].text)});
    }
    events.push_back(std::move(copy));
  }
  void OnUnfitEvent(uint32_t nc_idx, const EventFields& fields, uint32_t present,
                    std::string_view why) override {
    unfit.push_back({nc_idx, fields, present, std::string(why)});
  }

  NrtDecodeOutcome outcome;
  std::vector<Event> events;
  std::vector<Unfit> unfit;
};

}  // namespace neurontrace
