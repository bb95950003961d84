// SPDX-License-Identifier: Apache-2.0
// Fetch JSON to rows to compressed chunks and back to JSON: every event comes back to the letter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "agent/source/neuron/decode/nrt_event_decoder.h"
#include "agent/source/recording_sink.h"
#include "agent/source/stream_writer.h"
#include "lib/base/json_string.h"
#include "lib/base/random.h"

namespace neurontrace {
namespace {

// Sends a document through a decoder and one stream; gives the events that come out at the end.
class Pipeline final : public NrtEventSink {
 public:
  std::vector<std::string> Run(std::string json) {
    const size_t size = json.size();
    json.append(NrtEventDecoder::kPaddingBytes, '\0');
    sink_.entries.clear();
    StreamWriter writer(CaptureId(), {.kind = StreamKind::kNeuronCore, .nc_idx = 3}, clock_, sink_,
                        metrics_);
    writer_ = &writer;
    outcome = decoder_.Decode(json.data(), size, 1, *this);
    writer.End(16);
    return sink_.Events();
  }
  void OnEvent(const NrtEvent& event) override {
    writer_->Append(8, *event.shape, event.fields, event.values);
  }
  void OnUnfitEvent(uint32_t, const EventFields&, uint32_t, std::string_view why) override {
    ADD_FAILURE() << why;
  }
  NrtDecodeOutcome outcome;

 private:
  FakeClock clock_;
  RecordingSink sink_;
  AgentSourceMetrics metrics_;
  NrtEventDecoder decoder_;
  StreamWriter* writer_ = nullptr;
};

TEST(NrtRoundTripTest, RoundTripsRuntimeEvents) {
  const std::vector<std::string> events = {
      R"({"event_type":"nrt_execute","phase":"start","id":3377699720529022,"nc_idx":3,"nc_local_id":1150,"tracking_id":3377699720529023,"thread_id":1113601,"worker_gid":35,"data":{"model_id":1578576049,"model_name":"/models/file.neff"},"timestamp_ns":1755115507555000000})",
      R"({"event_type":"enc_barrier","phase":"start","id":3377699720529027,"nc_idx":3,"nc_local_id":1155,"tracking_id":3377699720529027,"thread_id":1113601,"worker_gid":35,"data":{"peer_id":-1,"exec_id":7},"timestamp_ns":1755115507555040100})",
      R"({"event_type":"nc_exec_running","phase":"stop","id":3377699720529034,"nc_idx":3,"nc_local_id":1162,"tracking_id":3377699720529028,"thread_id":1113601,"worker_gid":-1,"data":{},"timestamp_ns":1755115507555443796,"nrta_seq_id":9007199254740993})",
      R"({"event_type":"nrt_dma_mem_alloc","phase":"stop","nc_idx":3,"data":{"physical_address":"0x7f3a00000000","aligned":false,"size":"4","ratio":0.5,"unusual":1.50},"timestamp_ns":1755115507555703000})",
      R"({"event_type":"some_future_event","id":1,"nc_idx":3,"tracking_id":18446744073709551615,"data":{"nested":{"a":[1,2.5,null], "b": {}},"text":"café \"quoted\" \\ \u0001"},"timestamp_ns":1755115507555705000,"phase":"paused","new":[ 1 ]})",
      R"({"event_type":"t","nc_idx":"3","data":{},"timestamp_ns":"1755115507555706000"})",
      R"({"nc_idx":3,"data":{"a":1,"a":2},"timestamp_ns":1755115507555706001})",
  };
  std::string json = R"({"events":[)";
  for (const std::string& event : events) json += (&event == events.data() ? "" : ",") + event;
  Pipeline pipeline;
  EXPECT_EQ(pipeline.Run(json + R"(],"data_version":2})"), events);
  EXPECT_FALSE(pipeline.outcome.fault);
}

TEST(NrtRoundTripTest, OmitsSyntheticTimestamp) {
  Pipeline pipeline;
  EXPECT_EQ(pipeline.Run(R"({"events":[{"event_type":"t","data":{"a":1}}]})"),
            std::vector<std::string>{R"({"event_type":"t","data":{"a":1}})"});
}

// Events of every shape JSON allows, from a seed.
class RandomEvents {
 public:
  explicit RandomEvents(uint64_t seed) : random_(seed) {}

  // The event as it may come, and as it must come back.
  std::pair<std::string, std::string> Next() {
    std::vector<std::pair<std::string, std::string>> members = {
        {"event_type", Text(1)},
        {"phase", std::vector<std::string>{R"("start")", R"("stop")", R"("instant")"}[Below(3)]},
        {"data", Object(0)},
        {"timestamp_ns", std::to_string(++now_)}};
    for (const char* key : {"id", "nc_local_id", "tracking_id", "thread_id", "nrta_seq_id"}) {
      if (Below(4) > 0) members.emplace_back(key, MaybeQuoted(std::to_string(Number())));
    }
    if (Below(2) > 0) members.emplace_back("nc_idx", MaybeQuoted("3"));
    if (Below(2) > 0) {
      members.emplace_back("worker_gid", std::to_string(static_cast<int64_t>(Below(9)) - 1));
    }
    const uint64_t extras = Below(3);
    for (uint64_t i = 0; i < extras; ++i) {
      members.emplace_back(fmt::format("extra{}", i), Value(0));
    }
    for (size_t i = members.size() - 1; i > 0; --i) {
      std::swap(members[i], members[Below(i + 1)]);
    }
    std::string given;
    for (const auto& [key, value] : members) {
      given += given.empty() ? "{" : Space() + "," + Space();
      given += "\"" + key + "\"" + Space() + ":" + Space() + value;
    }
    return {given + Space() + "}", InOrder(members)};
  }

 private:
  uint64_t Below(uint64_t bound) { return random_.Next64() % bound; }
  uint64_t Number() { return random_.Next64() >> Below(64); }
  std::string Space() { return Below(8) == 0 ? std::string(1 + Below(3), " \n\t"[Below(3)]) : ""; }
  std::string MaybeQuoted(const std::string& number) {
    return Below(5) == 0 ? "\"" + number + "\"" : number;
  }

  std::string Text(uint64_t at_least) {
    static const char* const kPieces[] = {"a",  "model", "é",  "€", "😀",   "\\",
                                          "\"", "\n",    "\t", "/", "\x01", "\x7f"};
    std::string text;
    const uint64_t pieces = at_least + Below(12);
    for (uint64_t i = 0; i < pieces; ++i) text += kPieces[Below(std::size(kPieces))];
    std::string json;
    AppendJsonString(text, json);
    return json;
  }
  std::string Double() {
    char text[32];
    const double value = static_cast<double>(static_cast<int64_t>(random_.Next64())) /
                         static_cast<double>(1 + Below(1'000'000));
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
  }
  std::string Value(int depth) {
    static const char* const kExtreme[] = {"true",
                                           "false",
                                           "null",
                                           "1.0",
                                           "-0",
                                           "1e5",
                                           "2E-3",
                                           "0.10",
                                           "[]",
                                           "{}",
                                           "1e9999",
                                           "-0.0",
                                           "123456789012345678901234567890"};
    switch (Below(depth < 3 ? 8 : 6)) {
      case 0:
        return std::to_string(Number());
      case 1:
        return fmt::format("-{}", 1 + Number() / 2);
      case 2:
        return Double();
      case 3:
        return MaybeQuoted(std::to_string(Number()));
      case 4:
        return kExtreme[Below(std::size(kExtreme))];
      case 5:
        return Text(0);
      case 6:
        return Nested(depth, '[', ']');
      default:
        return Nested(depth, '{', '}');
    }
  }
  std::string Nested(int depth, char open, char close) {
    std::string text(1, open);
    const uint64_t count = Below(4);
    for (uint64_t i = 0; i < count; ++i) {
      text += (i > 0 ? "," : "") + Space();
      if (open == '{') text += fmt::format("\"k{}\":", i);
      text += Value(depth + 1) + Space();
    }
    return text + close;
  }
  // Comes back without white space of its own, unlike what is nested in it.
  std::string Object(int depth) {
    std::string text = "{";
    const uint64_t count = Below(7);
    for (uint64_t i = 0; i < count; ++i) {
      std::string key;
      AppendJsonString(fmt::format("k{}{}", i % 5, Below(8) == 0 ? "\"é" : ""), key);
      text += (i > 0 ? "," : "") + key + ":" + Value(depth);
    }
    return text + "}";
  }
  static std::string InOrder(const std::vector<std::pair<std::string, std::string>>& members) {
    static const std::vector<std::string> kOrder = {
        "event_type", "phase",      "id",   "nc_idx",       "nc_local_id", "tracking_id",
        "thread_id",  "worker_gid", "data", "timestamp_ns", "nrta_seq_id"};
    std::string text;
    const auto add = [&text](const auto& member) {
      text += (text.empty() ? "{\"" : ",\"") + member.first + "\":" + member.second;
    };
    for (const std::string& key : kOrder) {
      for (const auto& member : members) {
        if (member.first == key) add(member);
      }
    }
    for (const auto& member : members) {
      if (std::find(kOrder.begin(), kOrder.end(), member.first) == kOrder.end()) add(member);
    }
    return text + "}";
  }

  SeededRandom random_;
  uint64_t now_ = 1'755'115'507'555'000'000;
};

TEST(NrtRoundTripTest, RoundTripsRandomEvents) {
  Pipeline pipeline;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    RandomEvents random(seed);
    std::string json = R"({"events":[)";
    std::vector<std::string> expected;
    for (int i = 0; i < 50; ++i) {
      auto [given, back] = random.Next();
      json += (i > 0 ? "," : "") + given;
      expected.push_back(std::move(back));
    }
    ASSERT_EQ(pipeline.Run(json + "]}"), expected) << "seed " << seed;
    ASSERT_FALSE(pipeline.outcome.fault) << "seed " << seed << ": " << pipeline.outcome.fault->what;
  }
}

}  // namespace
}  // namespace neurontrace
