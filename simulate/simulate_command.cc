// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate_command.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/progress_line.h"
#include "lib/base/build_facts.h"
#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/trace/chunk_format.h"
#include "lib/wire/channel_security.h"
#include "simulate/answers.h"
#include "simulate/fleet_model.h"
#include "simulate/golden.h"
#include "simulate/kineto_writer.h"
#include "simulate/score.h"
#include "simulate/store_writer.h"
#include "simulate/stream_command.h"

namespace neurontrace {
namespace {

constexpr int kExitWrong = 1;
constexpr int kExitUsage = 2;
constexpr int kExitPart = 3;

constexpr char kFooter[] =
    "Examples:\n"
    "  neurontrace-simulate plan --out run --fault slow-core@17:50\n"
    "  neurontrace why ID --store run/store --json > answers.json\n"
    "  neurontrace-simulate score run/golden.json answers.json\n"
    "\n"
    "docs/user/replay_kit.md describes the files.";
constexpr char kKindsHelp[] =
    "KIND of a fault: slow-core, slow-host, slow-process, input-stall, memory-stall, host-code,\n"
    "slow-collective, uneven-role, uneven-data, hang-not-entered, hang-inside, dead-worker,\n"
    "device-error. KIND of a hole: losses, unknown-losses, missing, late-agent, wrong-ids.\n";
constexpr char kPlanExamples[] =
    "\n"
    "Examples:\n"
    "  neurontrace-simulate plan --out run --fault slow-core@17:50+25-100\n"
    "  neurontrace-simulate plan --out run --dp 32 --pp 4 --tp 8 --fault slow-host@3:20 \\\n"
    "      --fault hang-not-entered@600+90-100\n"
    "  neurontrace-simulate plan --out run --hole losses@0-31+50-60 --clock 1:250,20,-40000@50\n"
    "  neurontrace-simulate plan --out run --kineto --fault input-stall@5:100";
constexpr char kStreamExamples[] =
    "\n"
    "Exit code: 0 everything was acknowledged; 1 it failed; 2 wrong usage; 3 it was interrupted, "
    "or\n"
    "a part was not acknowledged.\n"
    "\n"
    "Examples:\n"
    "  neurontrace-simulate stream --out run --fault slow-core@17:50\n"
    "  neurontrace why ID --json > answers.json\n"
    "  neurontrace-simulate score run/golden.json answers.json\n"
    "  neurontrace-simulate stream --out run --speed 20 --dp 32 --pp 4 --tp 8 \\\n"
    "      --hole losses@0-31+50-60 --clock 1:250,20,-40000@50 --aggregator collector:9400 \\\n"
    "      --tls-ca ca.pem --tls-cert agent.pem --tls-key agent.key --wait-for-capture";
constexpr char kScoreFooter[] =
    "Exit code: 0 every fault is named exactly and nobody else; 1 an innocent is named, or a file\n"
    "cannot be read; 3 a fault is missed, refused or not named exactly.\n"
    "\n"
    "Examples:\n"
    "  neurontrace-simulate score run/golden.json answers.json\n"
    "  neurontrace-simulate score run/golden.json other_tool.csv";

// Options of the fleet, shared by `plan` and `stream`.
struct FleetOptions {
  FleetPlan plan;
  std::string out;
  bool is_quiet = false;
  double step_ms = 500;
  double hang_s = 20;
  double noise = 1;
  double noise_to = -1;
  double data_spread = 0;
  double clock_offset_us = 5'000;
  std::vector<std::string> faults;
  std::vector<std::string> holes;
  std::vector<std::string> clocks;
};

struct PlanOptions {
  FleetOptions fleet;
  bool has_kineto = false;
};

// Canaries, which show that a stream is alive, come every minute: a hang has to last longer to be
// seen.
constexpr double kStreamedHangSeconds = 75;

struct StreamOptionTexts {
  FleetOptions fleet{.hang_s = kStreamedHangSeconds};
  StreamOptions stream;
};

struct ScoreOptions {
  std::string golden;
  std::string answers;
};

void AddFleetOptions(CLI::App& app, FleetOptions& options) {
  FleetPlan& plan = options.plan;
  app.add_option("--dp", plan.dp, "Data-parallel replicas")->capture_default_str();
  app.add_option("--pp", plan.pp, "Pipeline stages")->capture_default_str();
  app.add_option("--tp", plan.tp, "Tensor-parallel ranks")->capture_default_str();
  app.add_option("--cores-per-process", plan.cores_per_process, "Cores of a process")
      ->capture_default_str();
  app.add_option("--processes-per-instance", plan.processes_per_instance,
                 "Processes of an instance")
      ->capture_default_str();
  app.add_option("--seed", plan.seed, "Equal seeds give equal events")->capture_default_str();
  app.add_option("--steps", plan.steps, "Training steps")->capture_default_str();
  app.add_option("--microbatches", plan.microbatches, "Microbatches of a step")
      ->capture_default_str();
  app.add_option("--step-ms", options.step_ms, "Length of a step without faults, about")
      ->capture_default_str();
  app.add_option("--noise", options.noise, "Deviation of each execution's work, in percent")
      ->capture_default_str();
  app.add_option("--noise-to", options.noise_to,
                 "Draw each rank's noise from --noise to this, in percent");
  app.add_option("--stage-weights", plan.stage_weights,
                 "Relative work of each stage, such as 1,1,1,1.4")
      ->delimiter(',');
  app.add_option("--data-spread", options.data_spread,
                 "Deviation of the lengths of sequences between replicas, in percent")
      ->capture_default_str();
  app.add_option("--clock-offset-us", options.clock_offset_us,
                 "Clocks of instances are wrong by up to this")
      ->capture_default_str();
  app.add_option("--clock-drift-ppm", plan.clock_drift_max_ppm, "And drift by up to this")
      ->capture_default_str();
  app.add_option("--hang-s", options.hang_s, "Seconds that the capture continues after a hang")
      ->capture_default_str();
  app.add_option("--fault", options.faults, "KIND@TARGET:PERCENT+BEGIN-END; several times");
  app.add_option("--hole", options.holes, "KIND@FIRST-LAST+BEGIN-END; several times");
  app.add_option("--clock", options.clocks,
                 "INSTANCE:OFFSET_US,DRIFT_PPM[,STEP_US@PERCENT]; several times");
  app.add_flag("--quiet", options.is_quiet, "No progress");
}

void AddPlanOptions(CLI::App& app, PlanOptions& options) {
  app.add_option("--out", options.fleet.out,
                 "New directory for store/ (or kineto/) and golden.json")
      ->required();
  app.add_flag("--kineto", options.has_kineto, "Write Kineto-style JSON files instead of a store");
  AddFleetOptions(app, options.fleet);
  app.footer(fmt::format("{}{}", kKindsHelp, kPlanExamples));
}

void AddStreamOptions(CLI::App& app, StreamOptionTexts& options) {
  StreamOptions& stream = options.stream;
  app.add_option("--out", options.fleet.out, "New directory for golden.json; spools while it runs")
      ->required();
  app.add_option("--aggregator", stream.aggregator, "Address of the aggregator, HOST:PORT")
      ->envname("NEURONTRACE_AGGREGATOR")
      ->capture_default_str();
  app.add_option("--speed", stream.speed, "How much faster than real time, 0.1 to 100")
      ->capture_default_str();
  app.add_flag("--wait-for-capture", stream.waits_for_capture,
               "Begin with a capture that somebody else starts, instead of one of its own");
  AddFleetOptions(app, options.fleet);
  AddSecurityOptions(app, stream.security, ChannelSide::kClient);
  app.footer(fmt::format("{}{}", kKindsHelp, kStreamExamples));
}

absl::StatusOr<FleetPlan> MakePlan(const FleetOptions& options) {
  FleetPlan plan = options.plan;
  // Out of range values become what CheckFleetPlan refuses.
  const auto scaled = [](double value, double factor) {
    return value < 0 || value > 1e9 ? UINT64_MAX : static_cast<uint64_t>(value * factor);
  };
  plan.step_ns = scaled(options.step_ms, 1e6);
  plan.hang_ns = scaled(options.hang_s, 1e9);
  plan.clock_offset_max_ns = scaled(options.clock_offset_us, 1e3);
  plan.noise_low = options.noise / 100;
  plan.noise_high = options.noise_to < 0 ? plan.noise_low : options.noise_to / 100;
  plan.data_spread = options.data_spread / 100;
  for (const std::string& text : options.faults) {
    ASSIGN_OR_RETURN(const PlannedFault fault, ParsePlannedFault(text));
    plan.faults.push_back(fault);
  }
  for (const std::string& text : options.holes) {
    ASSIGN_OR_RETURN(PlannedHole hole, ParsePlannedHole(text));
    plan.holes.push_back(std::move(hole));
  }
  for (const std::string& text : options.clocks) {
    ASSIGN_OR_RETURN(const PlannedClock clock, ParsePlannedClock(text));
    plan.clocks.push_back(clock);
  }
  RETURN_IF_ERROR(CheckFleetPlan(plan));
  return plan;
}

void RunModel(FleetModel& model, FleetSink& sink, bool is_quiet) {
  cli::ProgressLine progress(!is_quiet && isatty(STDERR_FILENO) == 1);
  const uint32_t steps = model.plan().steps;
  while (model.RunStep(sink)) {
    progress.Draw(1.0 * model.steps_run() / steps,
                  fmt::format("step {} of {}", model.steps_run(), steps));
  }
  model.Finish(sink);
}

absl::Status WriteRun(const FleetPlan& plan, const PlanOptions& options) {
  const std::string& out = options.fleet.out;
  const bool is_quiet = options.fleet.is_quiet;
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) return absl::UnavailableError(fmt::format("{}: {}", out, error.message()));
  FleetModel model(plan);
  if (options.has_kineto) {
    const std::string directory = out + "/kineto";
    if (!std::filesystem::create_directory(directory, error)) {
      return absl::AlreadyExistsError(fmt::format("{}: {}; name a new directory with --out",
                                                  directory,
                                                  error ? error.message() : "it exists"));
    }
    KinetoWriter writer(directory, model);
    RunModel(model, writer, is_quiet);
    RETURN_IF_ERROR(writer.Finish());
    fmt::print("files:    {}\n", directory);
  } else {
    const std::string directory = out + "/store";
    ASSIGN_OR_RETURN(const auto writer, StoreWriter::Create(directory, model));
    RunModel(model, *writer, is_quiet);
    RETURN_IF_ERROR(writer->Finish());
    fmt::print("store:    {}\ncapture:  {}\nevents:   {} in {:.1f} MB\n", directory,
               writer->capture_id().ToString(), writer->events_written(),
               static_cast<double>(writer->bytes_written()) / 1e6);
  }
  const std::string golden = out + "/golden.json";
  RETURN_IF_ERROR(WriteGolden(golden, plan));
  fmt::print("truth:    {}\n", golden);
  return absl::OkStatus();
}

int ReportError(const absl::Status& status, int code) {
  fmt::print(stderr, "neurontrace-simulate: {}\n", std::string(status.message()));
  return code;
}

int RunPlanCommand(const PlanOptions& options) {
  const auto plan = MakePlan(options.fleet);
  if (!plan.ok()) return ReportError(plan.status(), kExitUsage);
  const absl::Status status = WriteRun(*plan, options);
  return status.ok() ? 0 : ReportError(status, kExitWrong);
}

int RunStreamCommand(StreamOptionTexts& options) {
  auto plan = MakePlan(options.fleet);
  if (!plan.ok()) return ReportError(plan.status(), kExitUsage);
  options.stream.plan = *std::move(plan);
  options.stream.out = options.fleet.out;
  options.stream.is_quiet = options.fleet.is_quiet;
  const absl::Status status = CheckStreamOptions(options.stream);
  return status.ok() ? RunStream(options.stream) : ReportError(status, kExitUsage);
}

absl::StatusOr<Score> ScoreFiles(const ScoreOptions& options, Golden& golden) {
  ASSIGN_OR_RETURN(const std::string truth, ReadSmallFile(options.golden, Golden::kBytesMax));
  ASSIGN_OR_RETURN(golden, ParseGolden(truth));
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(options.answers, Answers::kBytesMax));
  ASSIGN_OR_RETURN(const Answers answers, ParseAnswers(text));
  if (answers.ranks_left_out > 0) {
    fmt::print(stderr,
               "neurontrace-simulate: {} ranks of verdicts are not in {}; they are not judged\n",
               answers.ranks_left_out, options.answers);
  }
  return ScoreAnswers(golden, answers);
}

int RunScoreCommand(const ScoreOptions& options) {
  Golden golden;
  const auto score = ScoreFiles(options, golden);
  if (!score.ok()) return ReportError(score.status(), kExitWrong);
  for (size_t i = 0; i < golden.faults.size(); ++i) {
    const GoldenFault& fault = golden.faults[i];
    fmt::print("{:<8} {}", FaultScoreName(score->faults[i]), VerdictKindName(fault.kind));
    if (!fault.ranks.empty()) fmt::print(" of rank {}", fault.ranks.front());
    if (fault.ranks.size() > 1) fmt::print(" and {} more", fault.ranks.size() - 1);
    fmt::print("\n");
  }
  for (const std::string& text : score->wrong_texts) fmt::print("wrong    {}\n", text);
  fmt::print("{} exact, {} inexact, {} refused, {} missed of {} faults; {} wrong of {} verdicts\n",
             score->exact, score->inexact, score->refused, score->missed, golden.faults.size(),
             score->wrong, score->verdicts);
  if (score->wrong > 0) return kExitWrong;
  return score->exact == golden.faults.size() ? 0 : kExitPart;
}

}  // namespace

int RunSimulateCommand(int argc, char** argv) {
  // The store warns of files that a new one does not have yet; its errors come as statuses.
  spdlog::set_level(spdlog::level::err);
  CLI::App app(
      "Writes traces of a simulated training fleet with planted faults, or streams them to an "
      "aggregator, beside the truth, and scores the answers of a tool.",
      "neurontrace-simulate");
  app.set_version_flag("--version",
                       BuildFacts("neurontrace-simulate", {{"chunk", chunk_format::kVersion}}));
  app.require_subcommand(1);
  app.footer(kFooter);
  PlanOptions plan;
  CLI::App& plan_command =
      *app.add_subcommand("plan", "Write a run with planted faults, and its truth");
  AddPlanOptions(plan_command, plan);
  StreamOptionTexts stream;
  CLI::App& stream_command = *app.add_subcommand(
      "stream", "Play a run with planted faults to a running aggregator, as agents would");
  AddStreamOptions(stream_command, stream);
  ScoreOptions score;
  CLI::App& score_command =
      *app.add_subcommand("score", "Compare a tool's answers with the truth of a run");
  score_command.add_option("golden", score.golden, "golden.json of the run")->required();
  score_command
      .add_option("answers", score.answers,
                  "JSON of `neurontrace why --json`, or CSV kind,rank,phase")
      ->required();
  score_command.footer(kScoreFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (plan_command.parsed()) return RunPlanCommand(plan);
  return stream_command.parsed() ? RunStreamCommand(stream) : RunScoreCommand(score);
}

}  // namespace neurontrace
