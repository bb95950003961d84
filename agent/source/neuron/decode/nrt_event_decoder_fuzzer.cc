// SPDX-License-Identifier: Apache-2.0
// Any bytes as a fetch document. What comes out must be well-formed: written as JSON again, it
// gives the same events.
#include <cstdlib>

#include "agent/source/neuron/decode/nrt_event_decoder.h"
#include "agent/source/recording_sink.h"
#include "agent/source/stream_writer.h"

namespace neurontrace {
namespace {

class Writing final : public NrtEventSink {
 public:
  NrtDecodeOutcome Run(std::string json, std::vector<std::string>& events) {
    const size_t size = json.size();
    json.append(NrtEventDecoder::kPaddingBytes, '\0');
    sink_.entries.clear();
    StreamWriter writer(CaptureId(), {.kind = StreamKind::kNeuronCore}, clock_, sink_, metrics_);
    writer_ = &writer;
    const NrtDecodeOutcome outcome = decoder_.Decode(json.data(), size, 1, *this);
    writer.End(16);
    events = sink_.Events();
    return outcome;
  }
  void OnEvent(const NrtEvent& event) override {
    writer_->Append(8, *event.shape, event.fields, event.values);
  }
  void OnUnfitEvent(uint32_t, const EventFields&, uint32_t, std::string_view) override {}

 private:
  FakeClock clock_;
  RecordingSink sink_;
  AgentSourceMetrics metrics_;
  NrtEventDecoder decoder_;
  StreamWriter* writer_ = nullptr;
};

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static neurontrace::Writing writing;
  std::vector<std::string> events;
  writing.Run({reinterpret_cast<const char*>(data), size}, events);
  std::string again = R"({"events":[)";
  for (const std::string& event : events) again += (again.back() == '[' ? "" : ",") + event;
  std::vector<std::string> events_again;
  const auto outcome = writing.Run(again + "]}", events_again);
  if (outcome.fault || events_again.size() != events.size()) std::abort();
  return 0;
}
