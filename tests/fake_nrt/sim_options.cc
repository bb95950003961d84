// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/sim_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

namespace neurontrace {
namespace {

constexpr double kExecutionsPerSecondMax = 10'000;

void AddWorkload(CLI::App& app, SimOptions& options) {
  app.add_option("--seed", options.seed,
                 "Seed of all random choices; the same for all workers of a job");
  app.add_option("--rank-start", options.rank_start, "Global rank of this worker's core 0");
  app.add_option("--world-size", options.world_size,
                 "Number of ranks of the job (default: --rank-start plus --cores)");
  app.add_option("--cores", options.cores, "Logical cores of this worker")
      ->check(CLI::Range(1u, 128u));
  app.add_option("--lnc", options.lnc, "Physical cores per logical core")
      ->check(CLI::Range(1u, 2u));
  app.add_option("--mix", options.mix_name, "eager: 482 spans per execution; graph: 110; bare: 19")
      ->check(CLI::IsMember({"eager", "graph", "bare"}));
  app.add_option("--collectives", options.collectives,
                 "Collectives per execution, instead of the mix's")
      ->check(CLI::Range(0, 1000));
  app.add_option("--executions-per-second", options.executions_per_second,
                 "Executions per second and core")
      ->check(CLI::Range(0.01, kExecutionsPerSecondMax));
  app.add_option("--events-per-second", options.events_per_second,
                 "Events per second and core, instead of --executions-per-second, for load tests")
      ->check(CLI::Range(1.0, 1e7));
  app.add_option("--duration", options.duration_s, "Seconds of work; 0: until SIGTERM");
  app.add_option("--executions", options.executions, "Executions per core; 0: until SIGTERM");
  app.add_option(
         "--host-work-us", options.host_work_us,
         "Host work before each nrt_execute, in microseconds of processor time; the same for "
         "all workers of a job")
      ->check(CLI::Range(0, 1'000'000));
  CLI::Option* const meeting =
      app.add_option("--meeting-file", options.meeting_file,
                     "File through which all workers of a job wait for each other in each step; a "
                     "new one for each run");
  app.add_flag("--do-host-work", options.does_host_work,
               "Use a processor for --host-work-us, and be as late as that takes longer")
      ->needs(meeting);
  app.add_option("--straggler-rank", options.straggler_rank, "This rank enters every barrier late");
  app.add_option("--straggler-extra-us", options.straggler_extra_us,
                 "Delay of --straggler-rank in microseconds")
      ->check(CLI::Range(0, 10'000'000));
  app.add_option("--straggler-after", options.straggler_after_s,
                 "Seconds from the first execution on in which --straggler-rank is not late")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--stall-rank", options.stall_rank,
                 "This rank stops forever in the middle of an execution");
  app.add_option("--stall-file", options.stall_file, "Start the stall when this file exists");
  app.add_option("--wait-file", options.wait_file,
                 "When this file exists, it has the number of an execution, in whose host barrier "
                 "every core waits forever");
  app.add_flag("--hardware-after-sync", options.hardware_after_sync,
               "Put hardware events into the ring after their sync point instead of in time order");
}

void AddClock(CLI::App& app, SimOptions& options, HostClock::Step& step) {
  app.add_option_function<std::string>(
         "--host-clock",
         [&options](const std::string& text) {
           const std::optional<HostClock> clock = HostClock::Parse(text);
           if (!clock) {
             throw CLI::ValidationError("--host-clock", "does not have the format in host_clock.h");
           }
           options.host_clock = *clock;
         },
         "The clocks of this instance, in the format of host_clock.h")
      ->envname("NEURONTRACE_HOST_CLOCK");
  app.add_option("--start-at", options.start_at_ns,
                 "Epoch nanoseconds at which the job's schedule begins; the same for all workers");
  app.add_option("--clock-offset-ns", options.host_clock.offset_ns,
                 "Error of this instance's wall clock at --start-at");
  app.add_option("--clock-drift-ppm", options.host_clock.drift_ppm, "Growth of that error")
      ->check(CLI::Range(-1000.0, 1000.0));
  app.add_option("--clock-step-ns", step.by_ns, "Step of the wall clock");
  app.add_option("--clock-step-at", step.at_ns,
                 "Epoch nanoseconds at which --clock-step-ns happens");
  app.add_option("--ground-truth", options.ground_truth,
                 "File for one line per event that entered a ring");
}

void AddLifeCycle(CLI::App& app, SimOptions& options) {
  static const std::map<std::string, CommunicatorTime> kTimes = {
      {"none", CommunicatorTime::kNone},
      {"early", CommunicatorTime::kEarly},
      {"late", CommunicatorTime::kLate}};
  static const std::map<std::string, CommunicatorCall> kCalls = {
      {"build", CommunicatorCall::kBuild},
      {"init", CommunicatorCall::kInit},
      {"load", CommunicatorCall::kLoad}};
  static const std::map<std::string, OwnProfilerOptions::Kind> kProfilers = {
      {"none", OwnProfilerOptions::Kind::kNone},
      {"sys-trace", OwnProfilerOptions::Kind::kSysTrace},
      {"inspect", OwnProfilerOptions::Kind::kInspect}};
  app.add_option("--communicator", options.communicator,
                 "When each core gets its global rank: none, early (before work) or late")
      ->transform(CLI::CheckedTransformer(kTimes));
  app.add_option("--communicator-call", options.communicator_call,
                 "build: nrt_build_global_comm, init: nrt_cc_global_comm_init, load: "
                 "nrt_load_collectives")
      ->transform(CLI::CheckedTransformer(kCalls));
  app.add_option("--communicator-after", options.communicator_after,
                 "Executions of a core before its late communicator is built");
  app.add_flag("--no-init", options.no_init, "Never call nrt_init, and do no work");
  app.add_flag("--no-close", options.no_close, "Exit without nrt_close");
  app.add_option("--close-delay", options.close_delay_s,
                 "Seconds between the end of the work and nrt_close");
  app.add_flag("--print-ready", options.print_ready, "Print \"ready pid=N\" when work begins");
  app.add_option("--profiler", options.profiler.kind,
                 "A profiler of the worker's own: none, sys-trace or inspect")
      ->transform(CLI::CheckedTransformer(kProfilers));
  app.add_option("--profiler-max-events", options.profiler.max_events_per_nc,
                 "Capacity of each core's ring, which the runtime makes at least 1024");
  app.add_option("--profiler-documents", options.profiler.documents,
                 "File for the documents that --profiler sys-trace fetches, one per line");
  app.add_option("--profiler-output-dir", options.profiler.output_dir,
                 "Output directory of --profiler inspect");
}

}  // namespace

SimOptions SimOptions::FromCommandLine(int argc, char** argv) {
  SimOptions options;
  HostClock::Step step;
  double profiler_delay_s = 0;
  double profiler_duration_s = 0;
  CLI::App app(
      "Runs a seeded, distributed workload on the simulated Neuron Runtime, in real time.\n"
      "Example: sim_worker --cores 4 --rank-start 4 --world-size 8 --duration 5 --print-ready");
  AddWorkload(app, options);
  AddClock(app, options, step);
  AddLifeCycle(app, options);
  app.add_option("--profiler-delay", profiler_delay_s,
                 "Seconds of work before the profiler starts");
  app.add_option("--profiler-duration", profiler_duration_s,
                 "Seconds that the profiler runs; 0: until the end");
  try {
    app.parse(argc, argv);
    options.mix = *WorkloadMix::Named(options.mix_name);
    if (options.collectives >= 0) {
      options.mix.collectives = static_cast<uint32_t>(options.collectives);
    }
    const uint32_t end = options.rank_start + options.cores;
    if (options.world_size == 0) options.world_size = end;
    if (options.world_size < end) {
      throw CLI::ValidationError("--world-size", "must be at least --rank-start plus --cores");
    }
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (options.events_per_second > 0) {
    const double rate = options.events_per_second / options.mix.EventsPerExecution(options.lnc);
    options.executions_per_second = std::clamp(rate, 0.01, kExecutionsPerSecondMax);
  }
  if (step.by_ns != 0) options.host_clock.steps.push_back(step);
  options.profiler.delay_ns = static_cast<int64_t>(profiler_delay_s * 1e9);
  if (profiler_duration_s > 0) {
    options.profiler.duration_ns = static_cast<int64_t>(profiler_duration_s * 1e9);
  }
  return options;
}

}  // namespace neurontrace
