// SPDX-License-Identifier: Apache-2.0
#include "simulate/stream_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "cli/capture_view.h"
#include "cli/capture_watch.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/interrupt_watcher.h"
#include "cli/progress_line.h"
#include "lib/base/address.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/ids.h"
#include "lib/wire/grpc_channel.h"
#include "lib/wire/grpc_set_up.h"
#include "lib/wire/grpc_status.h"
#include "simulate/fleet_model.h"
#include "simulate/golden.h"
#include "simulate/replay_batches.h"
#include "simulate/replay_fleet.h"

namespace neurontrace {
namespace {

// How often the progress is drawn and the agents are asked.
constexpr uint64_t kLookNs = 250'000'000;
// How often agents learn that time passes while nothing happens.
constexpr uint64_t kIdleNs = 50'000'000;
// Beyond so many events that agents have not taken, the run waits for them: about 200 MB.
constexpr uint64_t kWaitingEventsMax = 2'000'000;
// Without any progress for so long, a step of the replay has failed.
constexpr uint64_t kPatienceNs = 60'000'000'000;

bool CanStop(const FleetPlan& plan) {
  return std::any_of(plan.faults.begin(), plan.faults.end(),
                     [](const PlannedFault& fault) { return StopsFleet(fault.kind); });
}

// One replay, from the connections to the result. Its functions are called on one thread.
class StreamRun {
 public:
  explicit StreamRun(const StreamOptions& options)
      : options_(options),
        run_(fmt::format("{:08x}", static_cast<uint32_t>(SystemRandom().Next64()))),
        progress_(!options.is_quiet && isatty(STDERR_FILENO) == 1) {
    context_.aggregator = options.aggregator;
    context_.security = options.security;
    context_.quiet = options.is_quiet;
    context_.make_stub = [](const cli::Context& chosen) {
      return v1::OperatorService::NewStub(MakeChannel(chosen.aggregator, chosen.security));
    };
    // First of all, before there are threads.
    watch_.emplace(context_);
    watch_->interrupts().Redirect([this](int count) {
      interrupt_.Set();
      if (count > 1) is_abandoned_ = true;
    });
  }

  int Run() {
    const absl::Status status = Work();
    progress_.Clear();
    if (status.ok()) return Conclude();
    // What was begun ends in any case.
    StopCapture();
    CloseFleet();
    return Fail(status);
  }

 private:
  static int Fail(const absl::Status& status) {
    fmt::print(stderr, "neurontrace-simulate: {}\n", std::string(status.message()));
    return cli::kExitFailed;
  }

  absl::Status Work() {
    ASSIGN_OR_RETURN(const ReplayNeeds available, AvailableForReplay());
    RETURN_IF_ERROR(CheckReplayNeeds(NeedsOfReplay(options_.plan), available));
    const std::string spools = options_.out + "/spool";
    std::error_code error;
    std::filesystem::create_directories(spools, error);
    if (error) return Unavailable("{}: {}", spools, error.message());
    fleet_.emplace(ReplayFleet::Options{.plan = options_.plan,
                                        .aggregator = options_.aggregator,
                                        .security = options_.security,
                                        .spool_directory = spools,
                                        .run = run_});
    progress_.Draw(-1, "connecting");
    RETURN_IF_ERROR(fleet_->Start());
    RETURN_IF_ERROR(Await("connected", [](const ReplayFleet::State& state) {
      return std::pair(state.welcome, state.agents);
    }));
    RETURN_IF_ERROR(AwaitCapture());
    if (!interrupt_.is_set()) RETURN_IF_ERROR(Play());
    // A capture of ours ends when all of it is delivered; somebody else's continues.
    RETURN_IF_ERROR(AwaitDelivery());
    if (capture_.capture_id().empty()) return absl::OkStatus();
    StopCapture();
    return AwaitEnd();
  }

  // Waits until a part of the agents is all of them, as `count` returns both. Returns early if
  // interrupted. Fails with DEADLINE_EXCEEDED after kPatienceNs without progress.
  template <typename Count>
  absl::Status Await(std::string_view what, Count count) {
    uint32_t best = 0;
    uint64_t progress_ns = clock_.MonotonicNs();
    while (!interrupt_.is_set()) {
      ASSIGN_OR_RETURN(state_, fleet_->GetState(capture_id_));
      if (!state_.problem.empty()) return Unavailable("spool: {}", state_.problem);
      const auto [done, all] = count(state_);
      if (done >= all) return absl::OkStatus();
      const uint64_t now_ns = clock_.MonotonicNs();
      if (done > best) progress_ns = now_ns;
      best = std::max(best, done);
      if (now_ns - progress_ns > kPatienceNs) {
        return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                          "{} of {} simulated agents {} within {} of the last; see the log of the "
                          "aggregator at {}",
                          done, all, what, FormatSeconds(kPatienceNs), options_.aggregator);
      }
      progress_.Draw(1.0 * done / all, fmt::format("{} of {} agents {}", done, all, what));
      Pause(kLookNs);
    }
    return absl::OkStatus();
  }

  // Starts a capture of the simulated workers, or waits for somebody's. Returns early if
  // interrupted.
  absl::Status AwaitCapture() {
    if (interrupt_.is_set()) return absl::OkStatus();
    if (options_.waits_for_capture) {
      progress_.Clear();
      fmt::print("job:      {}\n", fleet_->job());
      std::fflush(stdout);  // for whoever starts the capture
      while (!interrupt_.is_set()) {
        ASSIGN_OR_RETURN(state_, fleet_->GetState({}));
        if (state_.recording > 0) break;
        progress_.Draw(-1, fmt::format("{} agents wait for a capture of job {}", state_.agents,
                                       fleet_->job()));
        Pause(kLookNs);
      }
      return absl::OkStatus();
    }
    v1::CaptureSpec spec;
    spec.set_name(
        fmt::format("simulated {} ranks, seed {}", options_.plan.ranks(), options_.plan.seed));
    spec.set_job(fleet_->job());
    spec.set_include_neuron(true);
    spec.set_all_events(true);
    const grpc::Status status = watch_->Start(spec, capture_);
    if (!status.ok()) {
      const absl::Status reason = ToAbslStatus(status);
      return MakeStatus(reason.code(),
                        "the aggregator starts no capture: {}; with --wait-for-capture the run "
                        "begins with a capture that somebody else starts",
                        std::string(reason.message()));
    }
    ASSIGN_OR_RETURN(capture_id_, CaptureId::Parse(capture_.capture_id()));
    return Await("record", [](const ReplayFleet::State& state) {
      return std::pair(state.recording, state.agents);
    });
  }

  absl::Status Play() {
    FleetPlan plan = options_.plan;
    plan.start_ns = ReplayStartNs(plan, options_.speed, clock_.RealtimeNs());
    fleet_->SetStart(plan.start_ns);
    played_plan_ = plan;
    FleetModel model(plan);
    ReplayBatches batches(model);
    pace_ = {clock_.MonotonicNs(), plan.start_ns, options_.speed};
    fleet_->Deliver(batches.TakeBatches(plan.start_ns, false));
    while (model.RunStep(batches)) {
      const uint64_t reached_ns = model.true_ns();
      RETURN_IF_ERROR(AwaitTime(model, reached_ns, nullptr));
      if (interrupt_.is_set()) return absl::OkStatus();
      fleet_->Deliver(batches.TakeBatches(reached_ns, false));
      steps_played_ = model.steps_run();
    }
    const uint64_t reached_ns = model.true_ns();
    model.Finish(batches);
    // What is open is seen now, and stays open until the end.
    fleet_->Deliver(batches.TakeBatches(reached_ns, false));
    RETURN_IF_ERROR(AwaitTime(model, model.true_ns(), &batches));
    if (interrupt_.is_set()) return absl::OkStatus();
    fleet_->Deliver(batches.TakeBatches(model.true_ns(), true));
    is_complete_ = true;
    return absl::OkStatus();
  }

  // Waits until the run has come to a true time, and agents have taken most of what they were
  // given. With `batches`, agents learn meanwhile how far it is. Fails if the capture of the run
  // ends.
  absl::Status AwaitTime(const FleetModel& model, uint64_t true_ns, ReplayBatches* batches) {
    while (!interrupt_.is_set()) {
      const uint64_t now_ns = clock_.MonotonicNs();
      const uint64_t run_ns = pace_.TrueAt(now_ns);
      if (now_ns - looked_ns_ >= kLookNs) RETURN_IF_ERROR(Look(model, run_ns));
      const bool is_full = fleet_->waiting() > kWaitingEventsMax;
      if (run_ns >= true_ns && !is_full) {
        behind_ns_ = run_ns - true_ns;
        return absl::OkStatus();
      }
      if (batches != nullptr)
        fleet_->Deliver(batches->TakeBatches(std::min(run_ns, true_ns), false));
      const auto rest_ns = static_cast<uint64_t>(
          static_cast<double>(SubtractSaturating(true_ns, run_ns)) / options_.speed);
      Pause(std::clamp<uint64_t>(rest_ns, 1'000'000, kIdleNs));
    }
    return absl::OkStatus();
  }

  absl::Status Look(const FleetModel& model, uint64_t run_ns) {
    looked_ns_ = clock_.MonotonicNs();
    ASSIGN_OR_RETURN(state_, fleet_->GetState(capture_id_));
    if (!state_.problem.empty()) return Unavailable("spool: {}", state_.problem);
    if (!options_.waits_for_capture && state_.recording == 0 && !CanStop(options_.plan)) {
      return FailedPrecondition("capture {} ended before the run did, at step {} of {}",
                                capture_.capture_id(), steps_played_, options_.plan.steps);
    }
    std::string text = fmt::format("step {} of {}, {}, {} events acknowledged", model.steps_run(),
                                   options_.plan.steps, FormatSeconds(run_ns - pace_.start_ns),
                                   state_.events_stored);
    if (behind_ns_ > kNsPerSecond) text += ", behind by " + FormatSeconds(behind_ns_);
    progress_.Draw(1.0 * model.steps_run() / options_.plan.steps, text);
    return absl::OkStatus();
  }

  // Waits until everything is acknowledged. Returns early after a second interrupt, or when nothing
  // was acknowledged for kPatienceNs: the result then says what is missing.
  absl::Status AwaitDelivery() {
    uint64_t best = 0;
    uint64_t progress_ns = clock_.MonotonicNs();
    while (!is_abandoned_) {
      const bool is_taken = fleet_->waiting() == 0;
      fleet_->Flush();
      ASSIGN_OR_RETURN(state_, fleet_->GetState(capture_id_));
      if (is_taken && state_.unsent == 0) return absl::OkStatus();
      const uint64_t now_ns = clock_.MonotonicNs();
      const uint64_t settled = state_.events_stored + state_.events_lost + state_.events_refused;
      if (settled > best) progress_ns = now_ns;
      best = std::max(best, settled);
      if (now_ns - progress_ns > kPatienceNs) return absl::OkStatus();
      progress_.Draw(
          -1, fmt::format("{} events acknowledged, {} agents have more", settled, state_.unsent));
      Pause(kLookNs);
    }
    return absl::OkStatus();
  }

  void StopCapture() {
    if (capture_.capture_id().empty()) return;
    v1::Capture stopped;
    const grpc::Status status = cli::StopCapture(context_, capture_.capture_id(), stopped);
    if (status.ok()) return;
    fmt::print(stderr, "neurontrace-simulate: capture {} is not stopped: {}\n",
               capture_.capture_id(), status.error_message());
  }

  // Waits until the agents, but for silent ones, and the capture have ended.
  absl::Status AwaitEnd() {
    const uint64_t deadline_ns = clock_.MonotonicNs() + kPatienceNs;
    while (!is_abandoned_ && clock_.MonotonicNs() < deadline_ns) {
      ASSIGN_OR_RETURN(state_, fleet_->GetState(capture_id_));
      if (state_.waiting == 0 && state_.silent > 0) return absl::OkStatus();
      v1::Capture capture;
      const bool is_known = cli::GetCapture(context_, capture_.capture_id(), capture).ok();
      if (is_known && cli::HasEnded(capture)) {
        has_ended_ = true;
        return absl::OkStatus();
      }
      progress_.Draw(-1, fmt::format("{} agents finish the capture", state_.waiting));
      Pause(kLookNs);
    }
    return absl::OkStatus();
  }

  // Nobody needs the spools any more: what is in them has been counted.
  void CloseFleet() {
    fleet_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(options_.out + "/spool", ignored);
  }

  // Prints the result and writes the truth. Returns the exit code.
  int Conclude() {
    if (const auto state = fleet_->GetState(capture_id_); state.ok()) state_ = *state;
    CloseFleet();
    const uint64_t settled = state_.events_stored + state_.events_lost + state_.events_refused;
    const uint64_t open = SubtractSaturating(state_.played.rows, settled);
    if (!capture_.capture_id().empty()) fmt::print("capture:  {}\n", capture_.capture_id());
    if (!is_complete_)
      fmt::print("run:      interrupted at step {} of {}\n", steps_played_, options_.plan.steps);
    if (state_.silent > 0) {
      fmt::print(
          "silent:   {} agents, as planned; their captures end when the aggregator gives them "
          "up, after 10 minutes\n",
          state_.silent);
    }
    fmt::print(
        "events:   {} played by {} agents; {} acknowledged, {} refused, {} lost on the way, "
        "{} not acknowledged\n",
        state_.played.rows, state_.agents, state_.events_stored, state_.events_refused,
        state_.events_lost, open);
    fmt::print("losses:   {} events as planned{}\n", state_.played.losses,
               state_.played.unknown_losses == 0 ? "" : ", and an unknown number");
    if (is_complete_) {
      const std::string golden = options_.out + "/golden.json";
      progress_.Draw(-1, "measuring the truth");
      const absl::Status status = WriteGolden(golden, played_plan_);
      progress_.Clear();
      if (!status.ok()) return Fail(status);
      fmt::print("truth:    {}\n", golden);
    }
    const bool is_delivered = state_.events_refused + state_.events_lost + open == 0;
    const bool is_ended = options_.waits_for_capture || has_ended_ || state_.silent > 0;
    return is_complete_ && is_delivered && is_ended ? cli::kExitDone : cli::kExitIncomplete;
  }

  // Waits, but no longer than until an interrupt that nobody has noticed yet.
  void Pause(uint64_t ns) {
    if (!interrupt_.is_set()) {
      interrupt_.WaitFor(std::chrono::nanoseconds(ns));
    } else {
      std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    }
  }

  const StreamOptions& options_;
  const std::string run_;  // its name
  const SystemClock clock_;
  cli::ProgressLine progress_;
  cli::Interrupt interrupt_;                // the first: the run ends and what it has is sent
  std::atomic<bool> is_abandoned_ = false;  // the second: it ends at once
  cli::Context context_;
  std::optional<cli::CaptureWatch> watch_;
  std::optional<ReplayFleet> fleet_;
  v1::Capture capture_;  // of this run; without an id: none
  CaptureId capture_id_;
  FleetPlan played_plan_;
  ReplayPace pace_;
  ReplayFleet::State state_;
  uint64_t looked_ns_ = 0;
  uint64_t behind_ns_ = 0;  // by which the last step was late, in true time
  uint32_t steps_played_ = 0;
  bool is_complete_ = false;
  bool has_ended_ = false;  // the capture
};

}  // namespace

uint64_t ReplayStartNs(const FleetPlan& plan, double speed, uint64_t now_ns) {
  double length_ns = static_cast<double>(plan.step_ns) * plan.steps;
  if (CanStop(plan)) length_ns += static_cast<double>(plan.hang_ns);
  // What a fast run gains on the present; a slow one falls behind it.
  const double gained_ns = length_ns * std::max(0.0, 1 - 1 / speed);
  return now_ns - static_cast<uint64_t>(gained_ns);
}

absl::Status CheckStreamOptions(const StreamOptions& options) {
  RETURN_IF_ERROR(CheckFleetPlan(options.plan));
  if (!(options.speed >= StreamOptions::kSpeedMin && options.speed <= StreamOptions::kSpeedMax)) {
    return InvalidArgument("--speed is {:g}; it must be from {:g} to {:g}", options.speed,
                           StreamOptions::kSpeedMin, StreamOptions::kSpeedMax);
  }
  const bool has_role = options.security.has_tls() || !options.security.token_file.empty();
  if (has_role && !options.waits_for_capture) {
    return InvalidArgument(
        "an agent's certificate or token may not start captures; add --wait-for-capture, and start "
        "the capture as an operator");
  }
  const std::string problem = CheckPeerAddress(options.aggregator);
  if (!problem.empty()) return InvalidArgument("--aggregator {}", problem);
  RETURN_IF_ERROR(CheckSecurity(options.security, options.aggregator, ChannelSide::kClient));
  std::error_code ignored;
  for (const char* const name : {"/golden.json", "/spool"}) {
    if (std::filesystem::exists(options.out + name, ignored)) {
      return AlreadyExists("{}{} exists; name a new directory with --out", options.out, name);
    }
  }
  return absl::OkStatus();
}

int RunStream(const StreamOptions& options) {
  SetUpGrpc(nullptr);
  return StreamRun(options).Run();
}

}  // namespace neurontrace
