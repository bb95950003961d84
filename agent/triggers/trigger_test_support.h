// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "agent/triggers/agent_triggers.h"
#include "agent/triggers/trigger_sink.h"
#include "lib/base/fake_task_runner.h"

namespace neurontrace {

// For tests: keeps what is reported while an aggregator is connected.
class FakeTriggerSink final : public TriggerSink {
 public:
  bool ReportTrigger(const TriggerFired& fired) override {
    if (connected) told.push_back(fired);
    return connected;
  }

  bool connected = true;
  std::vector<TriggerFired> told;
};

// For tests: an agent's rules, fed with the JSON of workers.
class AgentTriggersWorld {
 public:
  static constexpr uint64_t kSecondNs = 1'000'000'000;
  static constexpr uint64_t kMillisecondNs = 1'000'000;

  static TriggerRule Rule(const std::string& name, TriggerKind kind) {
    TriggerRule rule{.name = name,
                     .kind = kind,
                     .cool_down_ns = 60 * kSecondNs,
                     .per_hour_max = 3,
                     .last_ns = 20 * kSecondNs};
    if (kind == TriggerKind::kSlowExecution) rule.times_median = 3;
    if (kind == TriggerKind::kSilentCore) rule.silent_ns = 4 * kSecondNs;
    return rule;
  }
  static WorkerIdentity Worker(uint32_t pid) { return {.instance_id = "i-1", .pid = pid}; }

  // A document with these events; false if nobody looked at them.
  bool Show(uint32_t pid, const std::string& events, const std::string& job = "j",
            uint64_t age_ns = 0) {
    class NullEventSink final : public NrtEventSink {
      void OnEvent(const NrtEvent&) override {}
      void OnUnfitEvent(uint32_t, const EventFields&, uint32_t, std::string_view) override {}
    } nobody;
    if (!triggers.BeginDocument(Worker(pid), job, clock.RealtimeNs() - age_ns)) return false;
    WatchedEvents sink(triggers, nobody);
    std::string text = "{\"events\":[" + events + "],\"data_version\":2}";
    const size_t size = text.size();
    text.append(NrtEventDecoder::kPaddingBytes, '\0');
    decoder.Decode(text.data(), size, clock.RealtimeNs(), sink);
    return true;
  }
  bool ShowEvent(uint32_t pid, uint32_t core, const std::string& type = "nrt_execute",
                 const std::string& job = "j") {
    return Show(pid,
                fmt::format(R"({{"event_type":"{}","phase":"instant","nc_idx":{},)"
                            R"("timestamp_ns":{},"data":{{}}}})",
                            type, core, clock.RealtimeNs()),
                job);
  }
  // Time passes, and all workers are looked at meanwhile.
  void Pass(uint64_t ns, std::vector<uint32_t> drained = {1, 2}) {
    const uint64_t end_ns = clock.MonotonicNs() + ns;
    while (clock.MonotonicNs() < end_ns) {
      for (const uint32_t pid : drained) triggers.OnPolled(Worker(pid), true);
      runner.AdvanceNs(std::min(end_ns - clock.MonotonicNs(), kSecondNs / 5));
    }
  }

  FakeClock clock;
  FakeTaskRunner runner{clock};
  FakeTriggerSink aggregator;
  NrtEventDecoder decoder;
  AgentTriggers triggers{"i-1", clock, runner, aggregator};
};

}  // namespace neurontrace
