// SPDX-License-Identifier: Apache-2.0
// Any orders of an aggregator, well formed or not, to the session, the taps' source and the
// triggers of an agent, beside a tap that answers what it likes. Whatever was ordered: reports pass
// the aggregator's own admission, one at a time; finished captures are not hoarded; a capture that
// is stopped ends, and after a welcome that lists none there is none. Each step is a byte, and what
// it needs.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/control/control_observer.h"
#include "agent/control/control_session.h"
#include "agent/control_messages.h"
#include "agent/source/neuron/tap/fake_tap.h"
#include "agent/source/neuron/tap_source_fuzz_support.h"
#include "agent/source/recording_sink.h"
#include "agent/triggers/agent_triggers.h"
#include "lib/base/fake_task_runner.h"
#include "lib/base/fuzz_input.h"
#include "lib/wire/agent_hello.h"
#include "lib/wire/conversions.h"
#include "lib/wire/trigger_messages.h"

namespace neurontrace {
namespace {

constexpr uint64_t kOrderMs = 1'000'000;
constexpr uint64_t kLongestMs = 20'000;  // at once
constexpr size_t kFinishedMax = 64;
constexpr uint64_t kEndMs = 120'000;  // all patience there is, together
constexpr size_t kStepsMax = 300;

absl::Status HandleAsAggregator(const v1::AgentReport& report) {
  switch (report.report_case()) {
    case v1::AgentReport::kHello:
      return FromProto(report.hello()).status();
    case v1::AgentReport::kWorker:
      return FromProto(report.worker()).status();
    case v1::AgentReport::kWorkerGone:
      return FromProto(report.worker_gone()).status();
    case v1::AgentReport::kCaptureWorker:
      return FromProto(report.capture_worker()).status();
    case v1::AgentReport::kCaptureAgent:
      return CaptureId::FromBytes(report.capture_agent().capture_id()).status();
    case v1::AgentReport::kTriggerFired:
      return FromProto(report.trigger_fired()).status();
    default:
      return absl::OkStatus();
  }
}

// Its end of the call.
class Line {
 public:
  explicit Line(TaskRunner& runner) : runner_(runner) {}
  ControlConnector connector() {
    return [this](ControlStream::Listener& listener) -> std::unique_ptr<ControlStream> {
      listener_ = &listener;
      return std::make_unique<Call>(*this);
    };
  }
  ControlStream::Listener* listener() { return call_ == nullptr ? nullptr : listener_; }

 private:
  class Call final : public ControlStream {
   public:
    explicit Call(Line& line) : line_(line) { line.call_ = this; }
    ~Call() override {
      if (line_.call_ == this) line_.call_ = nullptr;
    }
    void Send(const AgentReport& report) override {
      CheckPromise(!std::exchange(writing_, true), "one report at a time");
      const absl::Status taken = HandleAsAggregator(ToMessage(report));
      if (!taken.ok()) fprintf(stderr, "%s\n", std::string(taken.message()).c_str());
      CheckPromise(taken.ok(), "what is told passes the aggregator's door");
      line_.runner_.PostTask([&line = line_, call = this] {
        if (line.call_ != call) return;
        call->writing_ = false;
        line.listener_->OnWritten();
      });
    }

   private:
    Line& line_;
    bool writing_ = false;
  };

  TaskRunner& runner_;
  ControlStream::Listener* listener_ = nullptr;
  Call* call_ = nullptr;
};

class World final : private ControlObserver {
 public:
  World() {
    tap_.Seal(F_SEAL_SHRINK | F_SEAL_GROW);
    tap_.SetFacts({{"runtime.visible_cores", "2"},
                   {"runtime.event_types", "nrt_execute,cc_running"},
                   {"env.SLURM_JOB_ID", "7"}});
    session_.AddSource(taps_);
    taps_.SetWatch(triggers_);
    ConnectTap();
    session_.Start();
  }

  void Step(FuzzInput& input);
  void End(bool by_stops);

 private:
  // ControlObserver
  void OnTriggers(const std::vector<TriggerRule>& rules, uint64_t) override {
    triggers_.SetRules(rules);
  }

  HostInstant Now() const {
    return {clock_.MonotonicNs() - 400 * kOrderMs, clock_.MonotonicNs(), clock_.RealtimeNs()};
  }
  static std::string IdOf(uint8_t number) { return std::string(15, 'c') + char('a' + number % 24); }
  void Dispatch(const v1::AgentOrder& order) {
    if (ControlStream::Listener* const listener = line_.listener()) {
      DispatchOrder(order, *listener).IgnoreError();
    }
  }
  bool tap_is_connected() const { return runner_.watches() > 0; }
  void ConnectTap() {
    tap_.HangUp();
    taps_.AddConnection(tap_.Connect(recorded_));
    Pass(0);
  }
  void Pass(uint64_t ms) {
    runner_.FireAllWatches();
    runner_.AdvanceNs(ms * kOrderMs);
  }
  void Fill(FuzzInput& input, v1::StartCaptureOrder* order);
  void Fill(FuzzInput& input, v1::CaptureBegin* begin);
  void AddCursor(FuzzInput& input, v1::CaptureResume* resume);
  void Order(FuzzInput& input, uint8_t kind);
  void ObeyTap();
  void Document(FuzzInput& input);

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  SeededRandom random_{1};
  RecordingSink sink_;
  AgentSourceMetrics metrics_;
  FakeTap tap_;
  CaptureId recorded_;  // by the tap
  Line line_{runner_};
  ControlSession session_{{.agent_id = "agent", .instance_id = "i-1", .boot_id = "boot"},
                          line_.connector(),
                          clock_,
                          runner_,
                          random_,
                          *this};
  AgentTriggers triggers_{"i-1", clock_, runner_, session_};
  TapSource taps_{FuzzedTapOptions([this] { return Now(); }),
                  runner_,
                  clock_,
                  sink_,
                  session_,
                  [](std::span<const RankFacts> workers) {
                    std::vector<RankResolution> all(workers.size());
                    for (size_t w = 0; w < workers.size(); ++w) {
                      for (uint32_t i = 0; i < workers[w].visible_cores; ++i) {
                        all[w].cores.push_back({i, {}});
                      }
                    }
                    return all;
                  },
                  metrics_};
};

void World::Fill(FuzzInput& input, v1::CaptureBegin* begin) {
  begin->set_reference_ns(clock_.RealtimeNs() + input.Number());
  const uint8_t kind = input.Byte();
  if (kind % 4 == 1) begin->set_host_raw_ns(Now().raw_ns + kind * kOrderMs);
  if (kind % 4 == 2) begin->set_host_raw_ns(input.Number());
  if (kind % 4 == 3) begin->set_first_execution(kind / 4);
  if (kind >= 128) begin->set_last_execution(input.Number());
}

void World::Fill(FuzzInput& input, v1::StartCaptureOrder* order) {
  order->set_capture_id(IdOf(input.Byte()));
  const uint8_t kind = input.Byte();
  v1::CaptureSpec& spec = *order->mutable_spec();
  spec.set_mode(static_cast<v1::CaptureMode>(kind % 5));
  spec.set_include_neuron(true);
  spec.set_include_framework(true);
  const uint8_t more = input.Byte();
  if ((more & 1) != 0) spec.set_executions(input.Number());
  if ((more & 2) != 0) spec.set_ring_events_per_core(input.Number());
  if ((more & 4) != 0) spec.set_last_ns(input.Number());
  if ((more & 8) != 0) spec.set_flight_recorder(IdOf(input.Byte()));
  if ((more & 16) != 0) spec.set_budget_core_ppm(1 + input.Byte());
  if ((more & 32) != 0) spec.add_event_types(std::string(input.Text(input.Byte() % 32)));
  if ((more & 64) != 0) spec.set_at_next_execution(true);
  if ((more & 128) != 0) spec.set_duration_ns(input.Number());
  order->set_arm(kind >= 128);
  if ((kind & 64) != 0) Fill(input, order->mutable_begin());
}

void World::AddCursor(FuzzInput& input, v1::CaptureResume* resume) {
  const uint8_t kind = input.Byte();
  StreamCursor cursor;
  cursor.stream.agent_id = "agent";
  cursor.stream.kind = StreamKind::kNeuronCore;
  cursor.stream.nc_idx = kind % 3;
  if (kind < 128 && !session_.workers().empty()) {
    cursor.stream.worker = session_.workers().begin()->first;
  } else {
    cursor.stream.worker = {.instance_id = "i-1", .boot_id = "boot", .pid = kind + 1u};
  }
  cursor.next_sequence = input.Number();
  cursor.source_position = input.Number();
  cursor.source_skip = input.Byte();
  cursor.events_before = input.Number();
  ToProto(cursor, resume->add_cursors());
}

void World::Order(FuzzInput& input, uint8_t kind) {
  v1::AgentOrder order;
  switch (kind) {
    case 0: {
      const std::string_view bytes = input.Text(input.Byte());
      if (!order.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
      break;
    }
    case 1:
      Fill(input, order.mutable_start_capture());
      break;
    case 2:
      order.mutable_begin_capture()->set_capture_id(IdOf(input.Byte()));
      Fill(input, order.mutable_begin_capture()->mutable_begin());
      break;
    case 3: {
      v1::StopCaptureOrder& stop = *order.mutable_stop_capture();
      stop.set_capture_id(IdOf(input.Byte()));
      if (const uint8_t when = input.Byte(); when % 2 == 1) {
        stop.set_host_raw_ns(Now().raw_ns + (when < 128 ? when * kOrderMs : input.Number()));
      }
      break;
    }
    case 4: {
      v1::Welcome& welcome = *order.mutable_welcome();
      const uint8_t captures = input.Byte();
      welcome.set_aggregator_id("a");
      for (int i = 0; i < captures % 4; ++i) {
        v1::CaptureResume& resume = *welcome.add_captures();
        Fill(input, resume.mutable_start());
        const uint8_t cursors = input.Byte();
        resume.set_stopping(cursors >= 128);
        for (int k = 0; k < cursors % 4; ++k) AddCursor(input, &resume);
      }
      break;
    }
    default: {
      v1::TriggerRule& rule = *order.mutable_set_triggers()->add_rules();
      const uint8_t what = input.Byte();
      rule.set_name(std::string(1, char('a' + what / 8)));
      rule.set_kind(static_cast<v1::TriggerKind>(1 + what % 4));
      if (what % 4 == 0) rule.set_times_median(1 + input.Byte());
      if (what % 4 == 1) rule.set_silent_ns(input.Number());
      rule.set_cool_down_ns(input.Number());
      rule.set_per_hour_max(1 + input.Byte());
      rule.set_last_ns(input.Number());
    }
  }
  Dispatch(order);
}

// Carries out all orders, as a tap does.
void World::ObeyTap() {
  while (tap_is_connected()) {
    const auto command = tap_.ReadCommand();
    if (!command) return;
    TapResult result = TapResult::kOk;
    if (command->type == TapMessageType::kStart) {
      if (recorded_.empty()) {
        recorded_ = command->capture_id;
        tap_.SetState(TapState::kStreaming);
        tap_.WriteStarted(recorded_);
      } else if (recorded_ != command->capture_id) {
        result = TapResult::kAnotherCapture;
      }
    } else if (command->type == TapMessageType::kCollect) {
      result = TapResult::kNothingHeld;
    } else if (recorded_ == command->capture_id) {
      tap_.WriteStopped(recorded_, TapStopReason::kCommand);
      recorded_ = CaptureId();
      tap_.SetState(TapState::kIdle);
    } else {
      result = TapResult::kNotRunning;
    }
    tap_.Answer(command->type, result,
                result == TapResult::kAnotherCapture ? recorded_ : command->capture_id);
    Pass(0);
  }
}

void World::Document(FuzzInput& input) {
  if (tap_.write_pos() - tap_.read_pos() > FakeTap::kRingBytes / 2) return;
  const uint8_t kind = input.Byte();
  const uint64_t at = clock_.RealtimeNs();
  tap_.realtime_ns = at;
  tap_.WriteDocument(
      fmt::format(R"({{"events":[{{"event_type":"nrt_execute","phase":"{}","nc_idx":{},)"
                  R"("nc_local_id":{},"timestamp_ns":{},"data":{{"exec_id":{}}}}}],)"
                  R"("data_version":2}})",
                  kind % 2 == 0 ? "start" : "stop", kind / 2 % 2, kind, at, input.Byte()),
      recorded_.empty() ? *CaptureId::FromBytes(IdOf(kind)) : recorded_, kind / 2 % 2);
}

void World::Step(FuzzInput& input) {
  const uint8_t step = input.Byte();
  switch (step % 13) {
    case 6:
      ObeyTap();
      break;
    case 7: {
      if (!tap_is_connected()) break;
      const uint8_t kind = input.Byte();
      tap_.Answer(static_cast<TapMessageType>(2 + kind % 4), static_cast<TapResult>(kind / 4 % 10),
                  *CaptureId::FromBytes(IdOf(input.Byte())), "odd");
      break;
    }
    case 8:
      Document(input);
      break;
    case 9:
      if (step >= 128 && !sink_.entries.empty()) sink_.Answer(0, false, "gone");
      if (step < 128) sink_.StoreAll();
      break;
    case 10:
      Pass(std::min(input.Number(), kLongestMs));
      break;
    case 11:
      if (line_.listener() != nullptr) line_.listener()->OnClosed(absl::UnavailableError("line"));
      break;
    case 12:
      ConnectTap();
      break;
    default:
      Order(input, step % 13);
      break;
  }
  Pass(0);
}

void World::End(bool by_stops) {
  while (line_.listener() == nullptr) Pass(1'000);
  v1::AgentOrder order;
  order.mutable_welcome();
  if (by_stops) {
    for (const ControlSession::CaptureState& capture : session_.CaptureStates()) {
      order.mutable_stop_capture()->set_capture_id(std::string(capture.id.bytes()));
      Dispatch(order);
    }
  } else {
    Dispatch(order);
    CheckPromise(session_.captures() == 0, "after a welcome that lists none there is none");
  }
  const auto all_have_ended = [this] {
    return std::ranges::all_of(session_.CaptureStates(), [this](const auto& capture) {
      return capture.finished && taps_.IsFinished(capture.id);
    });
  };
  for (uint64_t ms = 0; ms < kEndMs && !all_have_ended(); ms += 2'000) {
    Pass(2'000);
    ObeyTap();
    sink_.StoreAll();
  }
  CheckPromise(all_have_ended(), "a capture that is stopped ends");
  Pass(100);
  CheckPromise(session_.captures() <= kFinishedMax, "finished captures are not hoarded");
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spdlog::set_level(spdlog::level::off);
  neurontrace::FuzzInput input(data, size);
  neurontrace::World world;
  for (size_t i = 0; i < neurontrace::kStepsMax && !input.empty(); ++i) world.Step(input);
  world.End(size % 2 == 0);
  return 0;
}
