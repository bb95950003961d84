// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/sim_worker.h"

#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "tests/fake_nrt/fake_nrt.h"
#include "tests/fake_nrt/nrt_api.h"
#include "tests/fake_nrt/workload_forms.h"

namespace neurontrace {
namespace {

constexpr std::string_view kHeader =
    "capture\trank\tnc_idx\tnc_local_id\tevent_type\tphase\ttrue_ns\ttimestamp_ns\ttracking_id\t"
    "exec_id\n";
constexpr size_t kBufferBytes = 64 << 10;

template <typename Integer>
void AppendNumber(std::string& out, Integer value) {
  char text[24];
  char* end = std::to_chars(text, text + sizeof(text), value).ptr;
  out.append(text, static_cast<size_t>(end - text));
}

// Events that are due within this time of each other are emitted in one wake-up.
constexpr int64_t kQuantumNs = 1'000'000;

SimOptions WithStart(SimOptions options) {
  if (options.start_at_ns == 0) options.start_at_ns = TrueNow();
  if (options.host_clock.origin_ns == 0) options.host_clock.origin_ns = options.start_at_ns;
  return options;
}

ScheduleOptions ScheduleOf(const SimOptions& options) {
  return {.seed = options.seed,
          .world_size = options.world_size,
          .start_at_ns = options.start_at_ns,
          .period_ns = options.period_ns(),
          .collectives = options.mix.collectives,
          .host_work_ns = options.host_work_us * 1000,
          .straggler_rank = options.straggler_rank,
          .straggler_extra_ns = options.straggler_extra_us * 1000,
          .straggler_after_ns = static_cast<int64_t>(options.straggler_after_s * 1e9)};
}

const WorkloadForms& Forms() {
  static const WorkloadForms* forms = new WorkloadForms();
  return *forms;
}

int64_t ThreadCpuNow() {
  timespec used = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

// Waits for a signal, for the cores or for the deadline.
void WaitForSignal(int signal_fd, const StopSignal& done, int64_t timeout_ms) {
  pollfd wait[2] = {{.fd = signal_fd, .events = POLLIN}, {.fd = done.fd(), .events = POLLIN}};
  poll(wait, 2, static_cast<int>(std::min<int64_t>(timeout_ms, INT32_MAX)));
}

}  // namespace

GroundTruth::GroundTruth(const std::string& path) {
  if (path.empty()) return;
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    ok_.store(false);
    return;
  }
  Append(kHeader);
}

GroundTruth::~GroundTruth() {
  if (fd_ >= 0) close(fd_);
}

void GroundTruth::Append(std::string_view lines) {
  if (fd_ < 0 || lines.empty()) return;
  // O_APPEND: one write is one piece, whichever threads write beside.
  if (write(fd_, lines.data(), lines.size()) != static_cast<ssize_t>(lines.size())) {
    ok_.store(false);
  }
}

void TruthWriter::Accepted(const PlannedEvent& event, const fake_nrt_receipt& receipt,
                           uint64_t exec_id) {
  if (!truth_.wanted()) return;
  AppendNumber(lines_, receipt.capture);
  lines_ += '\t';
  AppendNumber(lines_, rank_);
  lines_ += '\t';
  AppendNumber(lines_, nc_idx_);
  lines_ += '\t';
  AppendNumber(lines_, receipt.nc_local_id);
  lines_ += '\t';
  lines_ += event.form.event_type;
  lines_ += '\t';
  lines_ += event.form.phase;
  lines_ += '\t';
  AppendNumber(lines_, event.true_ns);
  lines_ += '\t';
  AppendNumber(lines_, event.timestamp_ns);
  lines_ += '\t';
  AppendNumber(lines_, event.tracking_id);
  lines_ += '\t';
  AppendNumber(lines_, exec_id);
  lines_ += '\n';
  if (lines_.size() >= kBufferBytes) Flush();
}

void TruthWriter::Flush() {
  truth_.Append(lines_);
  lines_.clear();
}

SimCore::SimCore(const Schedule& schedule, const WorkloadForms& forms, GroundTruth& truth,
                 const StopSignal& stop, const SimCoreOptions& options)
    : schedule_(schedule),
      stop_(stop),
      options_(options),
      planner_(schedule, forms, options.planner),
      truth_(truth, options.planner.rank, options.planner.nc_idx) {}

void SimCore::Run() {
  thread_id_ = static_cast<uint64_t>(gettid());
  EmitAll(planner_.PlanLoad(TrueNow()));
  // The others wait in a meeting for whoever comes late.
  uint64_t step = options_.meeting == nullptr ? schedule_.FirstStepFrom(TrueNow()) : 0;
  while (planner_.exec_id() < options_.executions) {
    // A workload that cannot keep up with its schedule ends in time too.
    if (schedule_.StepBegin(step) + delay_ns_ >= options_.end_ns) break;
    if (TrueNow() - schedule_.period_ns() >= options_.end_ns) break;
    if (planner_.exec_id() == options_.communicator_after) options_.join_communicator();
    if (stop_.WaitUntil(schedule_.StepBegin(step) + delay_ns_)) break;
    const std::string& stall_file = options_.stall_file;
    if (!stall_file.empty() && access(stall_file.c_str(), F_OK) == 0)
      return Stall(planner_.Plan(step, {.begin_ns = delay_ns_}), "nc_exec_running");
    if (MustWait()) return Stall(planner_.Plan(step, {.begin_ns = delay_ns_}), "enc_barrier");
    const bool can_continue = Execute(step++);
    truth_.Flush();
    if (!can_continue) break;
  }
  truth_.Flush();
}

bool SimCore::Execute(uint64_t step) {
  return options_.meeting == nullptr ? EmitAll(planner_.Plan(step)) : ExecuteWithOthers(step);
}

bool SimCore::ExecuteWithOthers(uint64_t step) {
  const uint32_t rank = options_.planner.rank;
  const RankStep computed = schedule_.Rank(step, rank);
  const auto count_until = [](std::span<const PlannedEvent> events, int64_t last_ns) {
    const auto end = std::partition_point(
        events.begin(), events.end(),
        [last_ns](const PlannedEvent& event) { return event.emit_ns <= last_ns; });
    return static_cast<size_t>(end - events.begin());
  };
  StepDelay delay = {.begin_ns = delay_ns_};
  const int64_t work_end_ns = computed.execute_ns + delay.begin_ns;
  std::span<const PlannedEvent> events = planner_.Plan(step, delay);
  const size_t prepared = count_until(events, work_end_ns - options_.measured_work_ns - 1);
  if (!EmitAll(events.first(prepared))) return false;

  if (options_.measured_work_ns > 0) {
    if (stop_.WaitUntil(work_end_ns - options_.measured_work_ns)) return false;
    delay.own_ns = Work(work_end_ns);
  }
  options_.meeting->Arrive(step, rank, delay.own_ns);
  delay.job_ns = delay.own_ns;
  events = planner_.Replan(step, delay);
  const size_t entered = count_until(events, Delayed(computed, delay).host_barrier.enter_ns);
  if (!EmitAll(events.subspan(prepared, entered - prepared))) return false;

  const std::optional<int64_t> latest_ns = options_.meeting->WaitForAll(step, stop_);
  if (!latest_ns) return false;
  delay.job_ns = *latest_ns;
  delay_ns_ += *latest_ns;
  return EmitAll(planner_.Replan(step, delay).subspan(entered));
}

int64_t SimCore::Work(int64_t planned_end_ns) const {
  const int64_t end_ns = ThreadCpuNow() + options_.measured_work_ns;
  volatile uint64_t sum = 0;
  while (ThreadCpuNow() < end_ns) {
    for (uint64_t i = 0; i < 1000; ++i) sum = sum + i;
  }
  return std::max<int64_t>(0, TrueNow() - planned_end_ns);
}

// Executions have the same numbers on all cores of a job that began together.
bool SimCore::MustWait() const {
  if (options_.wait_file.empty()) return false;
  uint64_t execution = 0;
  std::ifstream file(options_.wait_file);
  return static_cast<bool>(file >> execution) && planner_.exec_id() >= execution;
}

void SimCore::Stall(std::span<const PlannedEvent> events, std::string_view type) {
  const auto end = std::find_if(events.begin(), events.end(), [type](const PlannedEvent& event) {
    return event.form.event_type == type && event.form.phase == std::string_view("stop");
  });
  EmitAll({events.begin(), end});
  truth_.Flush();
  stop_.WaitUntil(INT64_MAX);
}

bool SimCore::EmitAll(std::span<const PlannedEvent> events) {
  int64_t now = TrueNow();
  for (const PlannedEvent& event : events) {
    if (event.emit_ns > now) {
      if (stop_.WaitUntil(std::max(event.emit_ns, now + kQuantumNs))) return false;
      now = TrueNow();
    }
    Emit(event);
  }
  return true;
}

void SimCore::Emit(const PlannedEvent& event) {
  fake_nrt_event out = {.form = event.form.form,
                        .nc_idx = options_.planner.nc_idx,
                        .has_nrta_seq_id = event.nrta_seq_id != 0,
                        .thread_id = thread_id_,
                        .tracking_id = event.tracking_id,
                        .timestamp_ns = static_cast<uint64_t>(event.timestamp_ns),
                        .nrta_seq_id = event.nrta_seq_id};
  std::copy(event.values.begin(), event.values.end(), out.values);
  ++emitted_;
  fake_nrt_receipt receipt = {};
  if (!fake_nrt_emit(&out, &receipt)) return;
  ++accepted_;
  truth_.Accepted(event, receipt, planner_.exec_id());
}

NrtWorker::NrtWorker(const SimOptions& options)
    : options_(WithStart(options)),
      schedule_(ScheduleOf(options_)),
      truth_(options.ground_truth),
      meeting_(options.meeting_file.empty()
                   ? nullptr
                   : std::make_unique<StepMeeting>(options.meeting_file, options.world_size)),
      profiler_(options.profiler) {}

int NrtWorker::Run(int signal_fd) {
  if (!truth_.ok()) {
    std::fprintf(stderr, "sim_worker: cannot write %s\n", options_.ground_truth.c_str());
    return 1;
  }
  if (meeting_ != nullptr && !meeting_->ok()) {
    std::fprintf(stderr, "sim_worker: cannot map %s\n", options_.meeting_file.c_str());
    return 1;
  }
  if (options_.no_init) {
    if (options_.print_ready) std::printf("ready pid=%d\n", getpid());
    std::fflush(stdout);
    const StopSignal never;
    WaitForSignal(
        signal_fd, never,
        options_.duration_s > 0 ? static_cast<int64_t>(options_.duration_s * 1e3) : INT64_MAX);
    return 0;
  }
  if (!OpenRuntime()) return 1;
  BuildCores();
  RunCores(signal_fd);
  if (options_.close_delay_s > 0) {
    const StopSignal never;
    WaitForSignal(signal_fd, never, static_cast<int64_t>(options_.close_delay_s * 1e3));
  }
  if (!options_.no_close) nrt_close();
  return Report();
}

bool NrtWorker::OpenRuntime() {
  setenv("NEURON_RT_VIRTUAL_CORE_SIZE", std::to_string(options_.lnc).c_str(), 1);
  // What the job set wins, as long as the cores suffice.
  setenv("NEURON_RT_NUM_CORES", std::to_string(options_.cores).c_str(), 0);
  const NRT_STATUS status = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
  if (status != NRT_SUCCESS) {
    std::fprintf(stderr, "sim_worker: nrt_init: %s\n", nrt_get_status_as_str(status));
    return false;
  }
  uint32_t visible = 0;
  nrt_get_visible_vnc_count(&visible);
  if (visible < options_.cores) {
    std::fprintf(stderr, "sim_worker: %u cores wanted, %u visible\n", options_.cores, visible);
    return false;
  }
  for (uint32_t nc = 0; nc < options_.cores; ++nc) {
    if (options_.communicator == CommunicatorTime::kEarly) JoinCommunicator(nc);
  }
  return true;
}

void NrtWorker::JoinCommunicator(uint32_t nc_idx) const {
  const uint32_t rank = options_.rank_start + nc_idx;
  const int32_t vnc = static_cast<int32_t>(nc_idx);
  nrt_model_t* model = nullptr;
  switch (options_.communicator_call) {
    case CommunicatorCall::kBuild:
      nrt_build_global_comm(vnc, rank, options_.world_size);
      return;
    case CommunicatorCall::kInit:
      nrt_cc_global_comm_init(nc_idx, rank, options_.world_size);
      return;
    case CommunicatorCall::kLoad:
      nrt_load_collectives("neff", 4, vnc, 1, rank, options_.world_size, &model);
      return;
  }
}

void NrtWorker::BuildCores() {
  for (uint32_t nc = 0; nc < options_.cores; ++nc) {
    SimCoreOptions core;
    core.planner = {.mix = options_.mix,
                    .host_clock = options_.host_clock,
                    .rank = options_.rank_start + nc,
                    .nc_idx = nc,
                    .physical_per_logical = options_.lnc,
                    .first_physical_core = fake_nrt_first_physical_core() + nc * options_.lnc,
                    .hardware_after_sync = options_.hardware_after_sync};
    if (options_.duration_s > 0) {
      core.end_ns = std::max(TrueNow(), options_.start_at_ns) +
                    static_cast<int64_t>(options_.duration_s * 1e9);
    }
    if (options_.executions > 0) core.executions = options_.executions;
    core.wait_file = options_.wait_file;
    core.meeting = meeting_.get();
    if (options_.does_host_work) core.measured_work_ns = options_.host_work_us * 1000;
    if (options_.stall_rank == static_cast<int64_t>(options_.rank_start + nc)) {
      core.stall_file = options_.stall_file;
    }
    if (options_.communicator == CommunicatorTime::kLate) {
      core.communicator_after = options_.communicator_after;
      core.join_communicator = [this, nc] { JoinCommunicator(nc); };
    }
    cores_.push_back(std::make_unique<SimCore>(schedule_, Forms(), truth_, stop_, core));
  }
}

void NrtWorker::RunCores(int signal_fd) {
  StopSignal done;
  std::atomic<size_t> left = cores_.size();
  std::vector<std::thread> threads;
  profiler_.Start();
  for (const auto& core : cores_) {
    threads.emplace_back([&core, &left, &done] {
      core->Run();
      if (left.fetch_sub(1) == 1) done.Raise();
    });
  }
  if (options_.print_ready) {
    std::printf("ready pid=%d\n", getpid());
    std::fflush(stdout);
  }
  WaitForSignal(signal_fd, done, INT64_MAX);
  stop_.Raise();
  for (std::thread& thread : threads) thread.join();
  profiler_.Finish();
}

int NrtWorker::Report() const {
  uint64_t emitted = 0;
  uint64_t accepted = 0;
  uint64_t executions = 0;
  for (const auto& core : cores_) {
    emitted += core->emitted();
    accepted += core->accepted();
    executions += core->executions();
  }
  const uint64_t misuse = fake_nrt_misuse_count();
  std::printf("{\"executions\":%" PRIu64 ",\"emitted\":%" PRIu64 ",\"accepted\":%" PRIu64
              ",\"profiler_refused\":%s,\"profiler_fetched\":%" PRIu64 ",\"misuse\":%" PRIu64 "}\n",
              executions, emitted, accepted, profiler_.refused() ? "true" : "false",
              profiler_.fetched(), misuse);
  std::fflush(stdout);
  if (!truth_.ok()) {
    std::fprintf(stderr, "sim_worker: writing %s failed\n", options_.ground_truth.c_str());
    return 1;
  }
  return misuse == 0 ? 0 : 3;
}

}  // namespace neurontrace
