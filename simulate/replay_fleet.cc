// SPDX-License-Identifier: Apache-2.0
#include "simulate/replay_fleet.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "agent/clock/probe_stream.h"
#include "agent/grpc_streams.h"
#include "agent/source/host/proc_files.h"
#include "lib/base/post_and_wait.h"
#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/clock/host_clocks.h"
#include "lib/daemon/daemon_main.h"
#include "lib/wire/grpc_channel.h"

namespace neurontrace {
namespace {

// Three connections, and the spool's lock and segments.
constexpr uint64_t kDescriptorsPerInstance = 8;
constexpr uint64_t kDescriptorsOfProcess = 128;
// Buffers of gRPC, the queue and the spool; and of a rank's stream: the open chunk, and those on
// their way. About twice of what was measured with 10,000 ranks on 313 instances.
constexpr uint64_t kBytesPerInstance = uint64_t{1} << 20;
constexpr uint64_t kBytesPerRank = uint64_t{48} << 10;
constexpr uint64_t kBytesOfProcess = uint64_t{128} << 20;
// The events of a step are in the model, on their way, and in the agents.
constexpr uint64_t kStepsInMemory = 3;
constexpr uint64_t kEventsPerExecution = 10;

constexpr uint32_t kLanesMax = 4;
constexpr std::chrono::milliseconds kLaneTimeout(60'000);
constexpr uint64_t kReferenceTimeoutNs = 10'000'000'000;
constexpr std::chrono::milliseconds kReferencePause(20);

double Mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Asks the aggregator a few times what its timescale shows, and keeps the answer that was quickest.
// Made, used and destroyed on the sequence of its connector.
class ReferenceProbe final : private ProbeStream::Listener {
 public:
  static constexpr uint64_t kQuestions = 8;

  ReferenceProbe(const ProbeConnector& connector, const Clock& clock, const HostClocks& clocks)
      : clock_(clock), clocks_(clocks), stream_(connector(*this)) {
    Ask();
  }

  // Returns the reference once it is known, an error if the call has failed, and nothing before.
  std::optional<absl::StatusOr<ReplayReference>> result() const {
    if (asked_ == kQuestions && has_reply_) return reference_;
    if (!closed_.ok()) return closed_;
    return std::nullopt;
  }

 private:
  void Ask() {
    is_written_ = has_reply_ = false;
    sent_raw_ns_ = clocks_.RawNs();
    stream_->Send(++asked_);
  }
  void Continue() {
    if (is_written_ && has_reply_ && asked_ < kQuestions) Ask();
  }
  void OnWritten() override {
    is_written_ = true;
    Continue();
  }
  void OnReply(const ProbeReply& reply) override {
    if (reply.sequence != asked_) return;
    has_reply_ = true;
    const uint64_t took_ns = reply.receive_raw_ns - sent_raw_ns_;
    if (took_ns < best_ns_) {
      best_ns_ = took_ns;
      // In the middle of the exchange, by both.
      const uint64_t age_ns = clocks_.RawNs() - (sent_raw_ns_ + took_ns / 2);
      const uint64_t held_ns = reply.reference_send_ns - reply.reference_receive_ns;
      reference_ = {.epoch = reply.reference_epoch,
                    .true_ns = clock_.RealtimeNs() - age_ns,
                    .reference_ns = reply.reference_receive_ns + held_ns / 2};
    }
    Continue();
  }
  void OnClosed(const absl::Status& status) override {
    closed_ = status.ok() ? Unavailable("it ended the call") : status;
  }

  const Clock& clock_;
  const HostClocks& clocks_;
  uint64_t asked_ = 0;
  uint64_t sent_raw_ns_ = 0;
  bool is_written_ = false;
  bool has_reply_ = false;
  uint64_t best_ns_ = UINT64_MAX;
  ReplayReference reference_;
  absl::Status closed_;
  std::unique_ptr<ProbeStream> stream_;  // the last: it ends before what it tells
};

// Returns the ranks of each instance that are in the capture.
std::vector<std::vector<uint32_t>> PresentRanks(const FleetPlan& plan) {
  std::vector<bool> is_missing(plan.ranks());
  for (const PlannedHole& hole : plan.holes) {
    if (hole.kind != HoleKind::kMissing) continue;
    for (const uint32_t rank : hole.ranks) is_missing[rank] = true;
  }
  std::vector<std::vector<uint32_t>> ranks(plan.instances());
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    if (!is_missing[rank]) ranks[plan.instance_of(rank)].push_back(rank);
  }
  return ranks;
}

}  // namespace

ReplayNeeds NeedsOfReplay(const FleetPlan& plan) {
  const uint64_t events = uint64_t{plan.executions_per_step()} * kEventsPerExecution;
  const uint64_t rank_bytes = kBytesPerRank + events * kStepsInMemory * sizeof(FleetEvent);
  return {.descriptors = kDescriptorsOfProcess + plan.instances() * kDescriptorsPerInstance,
          .memory_bytes =
              kBytesOfProcess + plan.instances() * kBytesPerInstance + plan.ranks() * rank_bytes};
}

absl::Status CheckReplayNeeds(const ReplayNeeds& needs, const ReplayNeeds& available) {
  if (needs.descriptors > available.descriptors) {
    return ResourceExhausted(
        "this fleet needs {} open files and connections, and the process may have {}; raise the "
        "hard limit (ulimit -Hn), or simulate fewer instances with --processes-per-instance or "
        "--cores-per-process",
        needs.descriptors, available.descriptors);
  }
  if (needs.memory_bytes > available.memory_bytes) {
    return ResourceExhausted(
        "this fleet needs about {:.0f} MiB of memory, and the machine can give {:.0f} MiB; "
        "simulate fewer ranks or microbatches, or more ranks per instance",
        Mib(needs.memory_bytes), Mib(available.memory_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<ReplayNeeds> AvailableForReplay() {
  RETURN_IF_ERROR(RaiseDescriptorLimit());
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  constexpr size_t kMemInfoBytesMax = 64 << 10;
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile("/proc/meminfo", kMemInfoBytesMax));
  ASSIGN_OR_RETURN(const MemoryReading memory, ParseMemory(text));
  return ReplayNeeds{.descriptors = limit.rlim_cur,
                     .memory_bytes = memory.total_bytes - memory.used_bytes};
}

struct ReplayFleet::Lane {
  explicit Lane(const FleetPlan& plan) : rows(plan), shapes(MakeReplayShapes(rows)) {}

  // Runs a function with the agents of this lane, on its thread.
  template <typename Function>
  auto Run(Function function) {
    return PostAndWait(loop, "a thread of simulated agents", kLaneTimeout, std::move(function));
  }

  EventLoop loop;
  std::thread thread;
  // On the sequence of `loop`.
  FleetRows rows;
  const std::vector<CachedShape> shapes;
  std::vector<uint32_t> instances;
  std::vector<std::unique_ptr<ReplayAgent>> agents;  // as `instances`
};

ReplayFleet::ReplayFleet(Options options)
    : options_(std::move(options)), ranks_(PresentRanks(options_.plan)) {
  io_thread_ = std::thread([this] { io_loop_.Run(); });
  const uint32_t processors = std::max(1u, std::thread::hardware_concurrency());
  const uint32_t lanes = std::min({processors, kLanesMax, options_.plan.instances()});
  for (uint32_t i = 0; i < lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>(options_.plan));
    Lane& lane = *lanes_.back();
    for (uint32_t instance = i; instance < ranks_.size(); instance += lanes) {
      if (!ranks_[instance].empty()) lane.instances.push_back(instance);
    }
    lane.thread = std::thread([&lane] { lane.loop.Run(); });
  }
}

ReplayFleet::~ReplayFleet() {
  for (const auto& lane : lanes_) {
    lane->loop.PostTask([&lane = *lane] {
      lane.agents.clear();
      lane.loop.Quit();
    });
  }
  for (const auto& lane : lanes_) lane->thread.join();
  io_loop_.PostTask([this] { io_loop_.Quit(); });
  io_thread_.join();
}

absl::Status ReplayFleet::Start() {
  ASSIGN_OR_RETURN(const ReplayReference reference, AskReference());
  for (const auto& lane : lanes_) {
    RETURN_IF_ERROR(lane->Run([&] { return StartAgents(*lane, reference); }));
  }
  return absl::OkStatus();
}

absl::StatusOr<ReplayReference> ReplayFleet::AskReference() {
  const SystemHostClocks host_clocks;
  std::unique_ptr<ReferenceProbe> probe;
  Lane& lane = *lanes_.front();
  RETURN_IF_ERROR(lane.Run([&] {
    probe = std::make_unique<ReferenceProbe>(
        MakeGrpcProbeConnector(MakeChannel(options_.aggregator, options_.security), lane.loop,
                               host_clocks),
        clock_, host_clocks);
  }));
  const uint64_t deadline_ns = clock_.MonotonicNs() + kReferenceTimeoutNs;
  absl::StatusOr<ReplayReference> found = Unavailable("no answer within 10 s");
  while (clock_.MonotonicNs() < deadline_ns) {
    std::optional<absl::StatusOr<ReplayReference>> result;
    RETURN_IF_ERROR(lane.Run([&] { result = probe->result(); }));
    if (result) {
      found = *std::move(result);
      break;
    }
    std::this_thread::sleep_for(kReferencePause);
  }
  RETURN_IF_ERROR(lane.Run([&] { probe.reset(); }));
  if (found.ok()) return found;
  return Unavailable("the aggregator at {} does not answer: {}", options_.aggregator,
                     std::string(found.status().message()));
}

absl::Status ReplayFleet::StartAgents(Lane& lane, const ReplayReference& reference) {
  for (const uint32_t instance : lane.instances) {
    lane.agents.push_back(MakeAgent(lane, instance, reference));
    RETURN_IF_ERROR(lane.agents.back()->Start());
  }
  return absl::OkStatus();
}

std::unique_ptr<ReplayAgent> ReplayFleet::MakeAgent(Lane& lane, uint32_t instance,
                                                    const ReplayReference& reference) {
  const std::vector<uint32_t>& ranks = ranks_[instance];
  const std::string boot_id = "simulated-" + options_.run;
  const AgentInfo info{
      .protocol_version = kProtocolVersion,
      .agent_id = fmt::format("simulated-{}-{}", options_.run, instance),
      .agent_version = NEURONTRACE_VERSION,
      .instance_id = FleetWorker(options_.plan, ranks.front(), boot_id).instance_id,
      .instance_id_source = "flag",
      .boot_id = boot_id,
      .host_name = fmt::format("simulated-{}", instance),
      .instance_type = "simulated"};
  // A connection each, as neurontrace-agent has.
  const auto channel = [this] { return MakeChannel(options_.aggregator, options_.security); };
  return std::make_unique<ReplayAgent>(
      ReplayAgent::Shared{.plan = options_.plan,
                          .rows = lane.rows,
                          .shapes = lane.shapes,
                          .clock = clock_,
                          .random = random_,
                          .files = unsynced_files_,
                          .io = io_loop_,
                          .runner = lane.loop,
                          .waiting = waiting_},
      ReplayAgent::Connectors{
          .upload = MakeGrpcUploadConnector(channel(), info.agent_id, lane.loop),
          .control = MakeGrpcControlConnector(channel(), lane.loop),
          .evidence = MakeGrpcEvidenceConnector(channel(), info, lane.loop)},
      ReplayAgent::Options{
          .info = info,
          .job = job(),
          .instance = instance,
          .ranks = ranks,
          .spool_directory = fmt::format("{}/{}", options_.spool_directory, info.instance_id),
          .reference = reference});
}

void ReplayFleet::Deliver(std::vector<ReplayBatch> batches) {
  for (const ReplayBatch& batch : batches) waiting_ += batch.events.size();
  // Shared, as tasks are copied.
  const auto shared = std::make_shared<std::vector<ReplayBatch>>(std::move(batches));
  for (const auto& lane : lanes_) {
    lane->loop.PostTask([&lane = *lane, shared] {
      for (size_t i = 0; i < lane.agents.size(); ++i)
        lane.agents[i]->Take(std::move((*shared)[lane.instances[i]]));
    });
  }
}

void ReplayFleet::Flush() {
  for (const auto& lane : lanes_) {
    lane->loop.PostTask([&lane = *lane] {
      for (const auto& agent : lane.agents) agent->Flush();
    });
  }
}

absl::StatusOr<ReplayFleet::State> ReplayFleet::GetState(const CaptureId& capture_id) {
  State sum;
  for (const auto& lane : lanes_) {
    RETURN_IF_ERROR(lane->Run([&] {
      for (const auto& agent : lane->agents) {
        const ReplayAgent::State state = agent->state();
        ++sum.agents;
        sum.welcome += state.is_welcome ? 1 : 0;
        sum.recording += agent->Records(capture_id) ? 1 : 0;
        sum.waiting += state.is_silent || agent->IsFinished(capture_id) ? 0 : 1;
        sum.silent += state.is_silent ? 1 : 0;
        sum.unsent += state.has_sent_all ? 0 : 1;
        if (!state.problem.empty()) sum.problem = state.problem;
        sum.played.rows += state.played.rows;
        sum.played.losses += state.played.losses;
        sum.played.unknown_losses += state.played.unknown_losses;
        sum.events_stored += state.events_stored;
        sum.events_refused += state.events_refused;
        sum.events_lost += state.events_lost;
      }
    }));
  }
  return sum;
}

}  // namespace neurontrace
