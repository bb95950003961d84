// SPDX-License-Identifier: Apache-2.0
// Records of a tap with right checksums and any contents: documents, losses, begins and ends of
// traces, of any core, capture and time, through the real source to a sink that stores, loses or
// lets wait what it gets. Every chunk passes the aggregator's own door, those of a stream follow
// each other, nothing is let go of in the ring beyond what was written, and the capture ends when
// it is stopped.
//
// Each step is a byte, and what it needs.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "agent/source/neuron/tap/fake_tap.h"
#include "agent/source/neuron/tap_source_fuzz_support.h"
#include "agent/source/recording_sink.h"
#include "lib/base/fake_task_runner.h"
#include "lib/base/fuzz_input.h"
#include "lib/wire/chunk_envelope.h"
#include "lib/wire/conversions.h"

namespace neurontrace {
namespace {

constexpr uint64_t kRecordMs = 1'000'000;
constexpr size_t kRecordsMax = 200;
constexpr uint64_t kRecordsEndMs = 60'000;

class Nobody final : public SourceListener {
 public:
  void OnWorker(const WorkerInfo& worker) override {
    v1::WorkerInventory message;
    ToProto(worker, &message);
    CheckPromise(FromProto(message).ok(), "a worker passes the aggregator's door");
  }
  void OnWorkerGone(const WorkerIdentity&) override {}
  void OnCaptureWorker(const CaptureWorkerStatus& status) override {
    v1::CaptureWorkerStatus message;
    ToProto(status, &message);
    CheckPromise(FromProto(message).ok(), "a status passes the aggregator's door");
  }
};

std::string_view BytesOf(const auto& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

class Records {
 public:
  Records() {
    tap_.Seal(F_SEAL_SHRINK | F_SEAL_GROW);
    tap_.SetFacts({{"runtime.visible_cores", "2"}, {"runtime.event_types", "nrt_execute"}});
    taps_.AddConnection(tap_.Connect());
    Pass(0);
    taps_.ApplyOrder(SourceOrder::Start(capture_, {}, {}));
    tap_.SetState(TapState::kStreaming);
    tap_.WriteStarted(capture_);
    tap_.Answer(TapMessageType::kStart, TapResult::kOk, capture_);
    Pass(0);
  }
  void Step(FuzzInput& input);
  void End();

 private:
  HostInstant Now() const {
    return {clock_.MonotonicNs(), clock_.MonotonicNs(), clock_.RealtimeNs()};
  }
  void Pass(uint64_t ms) {
    runner_.FireAllWatches();
    runner_.AdvanceNs(ms * kRecordMs);
    CheckChunks();
  }
  void CheckChunks();
  void Write(FuzzInput& input, TapRecordType type, std::string_view payload);
  void WriteDocument(FuzzInput& input);

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  RecordingSink sink_;
  size_t checked_ = 0;
  ChunkValidator door_;
  std::map<StreamIdentity, ChunkHeader> last_;
  Nobody listener_;
  AgentSourceMetrics metrics_;
  FakeTap tap_;
  uint64_t number_ = 0;  // of the next event
  const CaptureId capture_ = *CaptureId::FromBytes("0123456789abcdef");
  const CaptureId other_ = *CaptureId::FromBytes("fedcba9876543210");
  TapSource taps_{FuzzedTapOptions([this] { return Now(); }),
                  runner_,
                  clock_,
                  sink_,
                  listener_,
                  [](std::span<const RankFacts> workers) {
                    return std::vector<RankResolution>(workers.size());
                  },
                  metrics_};
};

void Records::CheckChunks() {
  for (; checked_ < sink_.entries.size(); ++checked_) {
    const Chunk& chunk = sink_.entries[checked_].chunk;
    v1::ChunkEnvelope envelope;
    ToEnvelope(chunk, 1, &envelope);
    const auto header = door_.Validate(envelope);
    if (!header.ok()) std::fprintf(stderr, "%s\n", std::string(header.status().message()).c_str());
    CheckPromise(header.ok() && *header == chunk.header, "a chunk passes the aggregator's door");
    const auto [at, is_first] = last_.try_emplace(header->stream, *header);
    if (is_first) continue;
    CheckPromise(header->sequence == at->second.sequence + 1 && !at->second.end_of_stream,
                 "chunks of a stream follow each other");
    CheckPromise(header->source_position >= at->second.source_position,
                 "a stream never goes back in its source");
    CheckPromise(header->events_before == at->second.events_before + at->second.events_accounted(),
                 "no event is counted twice, and none is left out");
    at->second = *header;
  }
  CheckPromise(tap_.read_pos() <= tap_.write_pos(), "nothing is let go of that was not written");
}

void Records::Write(FuzzInput& input, TapRecordType type, std::string_view payload) {
  if (tap_.write_pos() - tap_.read_pos() + payload.size() + 64 > FakeTap::kRingBytes) return;
  const uint8_t how = input.Byte();
  const uint32_t core = how % 4 == 3 ? kTapNoCore : how % 4 == 2 ? input.Byte() * 16u : how % 4;
  if ((how & 128) != 0) tap_.realtime_ns = input.Number();
  tap_.Write(type, payload, (how & 64) != 0 ? other_ : capture_, core, how / 4 % 16);
}

// Of one event, as a runtime writes it but for numbers that may be anything.
void Records::WriteDocument(FuzzInput& input) {
  const uint8_t kind = input.Byte();
  number_ += kind % 4 == 3 ? input.Number() : kind % 4;
  const uint64_t tracking = kind / 64;
  const uint64_t time_ns = (kind & 4) != 0 ? input.Number() : clock_.RealtimeNs();
  Write(input, TapRecordType::kFetchDocument,
        fmt::format(R"({{"events":[{{"event_type":"nrt_execute","phase":"{}","nc_idx":{},)"
                    R"("nc_local_id":{},"timestamp_ns":{},"tracking_id":{},)"
                    R"("data":{{"exec_id":{}}}}}],"data_version":2}})",
                    (kind & 8) != 0 ? "start" : "stop", kind / 16 % 2, number_, time_ns, tracking,
                    input.Number()));
}

void Records::Step(FuzzInput& input) {
  const uint8_t step = input.Byte();
  switch (step % 9) {
    case 0:
    case 1:
      WriteDocument(input);
      break;
    case 2: {
      TapLoss loss = {};
      for (uint64_t* const field :
           {&loss.refused_documents, &loss.refused_bytes, &loss.refused_events,
            &loss.first_realtime_ns, &loss.last_realtime_ns, &loss.refused_ids_end}) {
        *field = input.Number();
      }
      Write(input, TapRecordType::kLoss, BytesOf(loss));
      break;
    }
    case 3: {
      TapTraceStarted started = {.max_events_per_nc = input.Number()};
      started.nc_bitmap[0] = input.Byte();
      started.event_rule = input.Byte() % 4;
      started.name_count = input.Byte();
      std::string payload(BytesOf(started));
      payload += input.Text(step / 9);
      Write(input, TapRecordType::kTraceStarted, payload);
      break;
    }
    case 4: {
      const TapTraceStopped stopped = {.reason = input.Byte() % 9u,
                                       .documents = input.Number(),
                                       .refused_documents = input.Number(),
                                       .final_drain_complete = step / 128u};
      Write(input, TapRecordType::kTraceStopped, BytesOf(stopped));
      break;
    }
    case 5: {
      const auto type = static_cast<TapRecordType>(input.Byte() % 7);
      const std::string payload(input.Text(input.Byte()));
      Write(input, type, payload);
      break;
    }
    case 6:
      if (!sink_.entries.empty()) sink_.Answer(input.Byte() % sink_.entries.size(), step < 128);
      break;
    case 7:
      sink_.has_room = step < 128;
      if (sink_.has_room) sink_.StoreAll();
      break;
    default:
      Pass(step * 4u);
      break;
  }
  Pass(0);
}

void Records::End() {
  sink_.has_room = true;
  taps_.Stop(capture_, Source::kStopNow);
  for (uint64_t ms = 0; ms < kRecordsEndMs && !taps_.IsFinished(capture_); ms += 1'000) {
    Pass(1'000);
    sink_.StoreAll();
  }
  CheckPromise(taps_.IsFinished(capture_), "a capture that is stopped ends");
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spdlog::set_level(spdlog::level::off);
  neurontrace::FuzzInput input(data, size);
  neurontrace::Records records;
  for (size_t i = 0; i < neurontrace::kRecordsMax && !input.empty(); ++i) records.Step(input);
  records.End();
  return 0;
}
