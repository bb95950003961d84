// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/event_mix.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Index of each start shape; the stop of it is the next one.
enum ShapeIndex : uint32_t {
  kExecute = 0,
  kExecCore = 2,
  kBlockPre = 4,
  kBlockCore = 6,
  kBarrier = 8,
  kBlockWait = 10,
  kBlockPost = 12,
  kTensorWrite = 14,
  kTensorRead = 16,
  kCopyIn = 18,
  kCopyOut = 20,
  kCoreRunning = 22,
  kCollective = 24,
  kDeviceBarrier = 26,
  kTensorFree = 28,
  kTensorAllocate = 30,
  kDeviceAlloc = 32,
  kDeviceFree = 34,
  kSyncPoint = 36,
};

constexpr auto kU = ValueType::kUint;
constexpr auto kS = ValueType::kString;
constexpr auto kB = ValueType::kBool;

std::vector<ShapeKey> Keys(std::initializer_list<std::pair<std::string_view, ValueType>> keys) {
  std::vector<ShapeKey> list;
  for (const auto& [name, type] : keys) list.push_back({name, type, KeyScope::kData});
  return list;
}

std::vector<Shape> MakeShapes() {
  std::vector<Shape> shapes;
  constexpr uint32_t kPresent = ((1u << kFieldCount) - 1) & ~FieldBit(Field::kNrtaSeqId);
  const auto add = [&shapes](std::string_view type, std::vector<ShapeKey> start,
                             std::vector<ShapeKey> stop = {}) {
    shapes.push_back({type, Phase::kStart, kPresent, 0, std::move(start)});
    shapes.push_back({type, Phase::kStop, kPresent, 0, std::move(stop)});
  };
  const auto model = Keys({{"model_id", kU}, {"model_name", kS}});
  const auto block = Keys({{"exec_id", kU}, {"model_id", kU}, {"model_name", kS}});
  const auto device_time = Keys({{"nc_timestamp_ns", kU}});
  const auto copy = Keys({{"mem_type", kS}, {"mem_handle", kU}, {"offset", kU}, {"size", kU}});
  const auto tensor = Keys({{"tensor_id", kU}, {"size", kU}});
  add("nrt_execute", model);
  add("kmgr_exec_core", model);
  add("kbl_exec_pre", block);
  add("kbl_exec_core", block);
  add("enc_barrier", Keys({{"peer_id", kU}, {"exec_id", kU}, {"nec_dev_id", kU}}));
  add("kbl_exec_wait", block);
  add("kbl_exec_post", block);
  add("nrt_tensor_write", tensor);
  add("nrt_tensor_read", tensor);
  add("dmem_buf_copyin", copy);
  add("dmem_buf_copyout", copy);
  add("nc_exec_running",
      Keys({{"device_core_idx", kU}, {"exec_id", kU}, {"nc_timestamp_ns", kU}, {"model_id", kU}}),
      device_time);
  add("cc_running",
      Keys({{"gid", kU},
            {"op_id", kU},
            {"exec_id", kU},
            {"nc_timestamp_ns", kU},
            {"algorithm", kS}}),
      device_time);
  add("cc_exec_barrier", Keys({{"nc_timestamp_ns", kU}, {"model_id", kU}}), device_time);
  add("nrt_tensor_free", Keys({{"tensor_id", kU}, {"size", kU}, {"ref_count", kU}}));
  add("nrt_tensor_allocate", tensor);
  add("nrt_dma_mem_alloc",
      Keys({{"hbm_idx", kU}, {"is_nc_hbm", kB}, {"is_aligned", kB}, {"usage_type", kS}}),
      Keys({{"allocated_bytes", kU}, {"total_bytes", kU}, {"physical_address", kS}}));
  add("nrt_dma_mem_dealloc",
      Keys({{"hbm_idx", kU}, {"is_nc_hbm", kB}, {"usage_type", kS}, {"physical_address", kS}}),
      Keys({{"freed_bytes", kU}, {"total_bytes", kU}}));
  shapes.push_back({"timestamp_sync_point", Phase::kInstant, kPresent, 0,
                    Keys({{"exec_id", kU}, {"nc_timestamp_ns", kU}, {"cpu_timestamp_ns", kU}})});
  return shapes;
}

constexpr uint64_t kModel = 10'007;
constexpr std::string_view kModelName = "model_8b_tp4_decode_bs16.neff";
constexpr uint64_t kThreads[] = {1'113'579, 1'113'601, 1'113'602};
constexpr uint64_t kFirstTime = 1'752'016'143'399'937'378;

AttributeValue Number(uint64_t bits) { return {bits, {}}; }
AttributeValue Name(std::string_view text) { return {0, text}; }

}  // namespace

EventMix::EventMix(uint64_t seed, uint32_t nc_idx, Memory memory)
    : random_(seed), nc_idx_(nc_idx), memory_(memory), shapes_(MakeShapes()), clock_(kFirstTime) {}

AttributeValue EventMix::Text(std::string text) {
  return {0, texts_.emplace_back(std::move(text))};
}

// The device's own clock: another origin, 20 parts in a million fast.
AttributeValue EventMix::DeviceTime(uint64_t host_ns) const {
  const uint64_t elapsed = host_ns - kFirstTime;
  return Number(1'543'032'702 + elapsed + elapsed / 50'000);
}

void EventMix::Start(uint32_t shape, Values values, uint64_t mean_ns) {
  Planned start{After(mean_ns), shape, spans_++, thread_, std::move(values)};
  open_.push_back({0, shape + 1, start.span, thread_, {}});
  planned_.push_back(std::move(start));
}

void EventMix::Stop(Values values, uint64_t mean_ns) {
  Planned stop = std::move(open_.back());
  open_.pop_back();
  stop.time_ns = After(mean_ns);
  stop.values = std::move(values);
  planned_.push_back(std::move(stop));
}

// 54 copies in, 14 of them inside a tensor write.
void EventMix::PlanInputs() {
  static constexpr uint64_t kSizes[] = {4, 64, 256, 4096, 65'536, 2'097'152};
  for (int i = 0; i < 54; ++i) {
    const uint64_t size = kSizes[Below(std::size(kSizes))];
    thread_ = i % 5 == 0 ? 1 : 0;
    const bool write = i < 14;
    if (write)
      Start(kTensorWrite, {Number(0x7f3a'4000'0000 + Below(300) * 192), Number(size)}, 20'000);
    Start(kCopyIn,
          {Name("device"), Number(0x7f3a'1000'0000 + Below(200) * 320), Number(Below(16) * 4096),
           Number(size)},
          3'000);
    Stop({}, 9'000);
    if (write) Stop({}, 1'500);
  }
}

// 19 copies out, 15 of them inside a tensor read.
void EventMix::PlanOutputs() {
  for (int i = 0; i < 19; ++i) {
    const uint64_t size = uint64_t{64} << Below(8);
    thread_ = i % 5 == 0 ? 2 : 0;
    const bool read = i < 15;
    if (read)
      Start(kTensorRead, {Number(0x7f3a'4000'0000 + Below(300) * 192), Number(size)}, 15'000);
    Start(kCopyOut,
          {Name("device"), Number(0x7f3a'1000'0000 + Below(200) * 320), Number(0), Number(size)},
          2'000);
    Stop({}, 8'000);
    if (read) Stop({}, 1'500);
  }
}

void EventMix::PlanMemory() {
  static constexpr std::string_view kUsages[] = {"tensors", "io", "scratchpad", "dma_rings_io"};
  thread_ = 0;
  const auto address = [this] {
    return Text(fmt::format("0x{:x}", 0x10'0000'0000 + Below(1 << 24) * 4096));
  };
  for (int i = 0; i < 240; ++i) {
    Start(kTensorFree,
          {Number(0x7f3a'4000'0000 + Below(4000) * 192), Number(256 << Below(8)), Number(Below(2))},
          2'500);
    Stop({}, 700);
  }
  for (int i = 0; i < 17; ++i) {
    Start(kTensorAllocate, {Number(0x7f3a'4000'0000 + Below(4000) * 192), Number(256 << Below(8))},
          5'000);
    Stop({}, 2'000);
  }
  for (int i = 0; i < 49; ++i) {
    Start(kDeviceAlloc, {Number(Below(4)), Number(1), Number(Below(2)), Name(kUsages[Below(4)])},
          4'000);
    Stop({Number(4096 << Below(8)), Number((1u << 30) + Below(1000) * 4096), address()}, 3'000);
  }
  for (int i = 0; i < 23; ++i) {
    Start(kDeviceFree, {Number(Below(4)), Number(1), Name(kUsages[Below(4)]), address()}, 4'000);
    Stop({Number(4096 << Below(8)), Number((1u << 30) + Below(1000) * 4096)}, 3'000);
  }
}

void EventMix::AddHardware(uint32_t shape, uint64_t from_ns, uint64_t to_ns, Values values) {
  planned_.push_back({from_ns, shape, spans_, thread_, std::move(values)});
  planned_.push_back({to_ns, shape + 1, spans_++, thread_, {DeviceTime(to_ns)}});
}

void EventMix::PlanHardware(uint64_t from_ns, uint64_t to_ns) {
  const size_t first = planned_.size();
  for (const uint64_t core : {4, 5}) {
    const uint64_t begin = from_ns + Below(3'000);
    AddHardware(kCoreRunning, begin, to_ns - Below(3'000),
                {Number(core), Number(execution_), DeviceTime(begin), Number(kModel)});
  }
  AddHardware(kDeviceBarrier, from_ns + 4'000, from_ns + 9'000 + Below(2'000),
              {DeviceTime(from_ns + 4'000), Number(kModel)});
  const uint64_t step = (to_ns - from_ns - 20'000) / 36;
  for (uint64_t i = 0; i < 36; ++i) {
    const uint64_t begin = from_ns + 12'000 + i * step + Below(step / 3);
    AddHardware(kCollective, begin, begin + step / 4 + Below(step / 3),
                {Number(nc_idx_ % 4), Number(i), Number(execution_), DeviceTime(begin),
                 Name(i % 2 == 0 ? "ring" : "mesh")});
  }
  std::stable_sort(planned_.begin() + static_cast<ptrdiff_t>(first), planned_.end(),
                   [](const Planned& a, const Planned& b) { return a.time_ns < b.time_ns; });
}

void EventMix::PlanRun() {
  thread_ = 0;
  const Values model = {Number(kModel), Name(kModelName)};
  const Values block = {Number(execution_), Number(kModel), Name(kModelName)};
  Start(kExecute, model, 30'000);
  Start(kExecCore, model, 6'000);
  Start(kBlockPre, block, 2'000);
  Stop({}, 25'000);
  Start(kBlockCore, block, 1'000);
  Start(kBarrier, {Number(Below(4)), Number(execution_), Number(nc_idx_)}, 3'000);
  Stop({}, 40'000);
  Start(kBlockWait, block, 1'500);
  const uint64_t from_ns = clock_ + 5'000;
  const uint64_t to_ns = After(7'000'000);
  PlanHardware(from_ns, to_ns);
  const uint64_t sync_ns = After(10'000);
  planned_.push_back({sync_ns + 10'251,
                      kSyncPoint,
                      spans_++,
                      thread_,
                      {Number(execution_), DeviceTime(sync_ns), Number(sync_ns)}});
  Stop({}, 12'000);
  Stop({}, 1'000);
  Start(kBlockPost, block, 1'500);
  Stop({}, 9'000);
  Stop({}, 1'000);
  Stop({}, 3'000);
}

void EventMix::PlanExecution() {
  PlanInputs();
  PlanRun();
  PlanOutputs();
  if (memory_ == Memory::kAll) PlanMemory();
  ++execution_;
}

MixEvent EventMix::Emit(Planned&& planned) {
  const uint64_t core = uint64_t{nc_idx_} << 50;
  MixEvent event;
  event.shape = planned.shape;
  event.fields.timestamp_ns = planned.time_ns;
  event.fields.id = core | sequence_;
  event.fields.nc_local_id = sequence_++;
  event.fields.tracking_id = core | planned.span;
  event.fields.thread_id = kThreads[planned.thread];
  event.fields.worker_gid = 32 + nc_idx_;
  event.values = std::move(planned.values);
  return event;
}

std::vector<MixEvent> EventMix::Take(size_t count) {
  std::vector<MixEvent> events;
  events.reserve(count);
  while (events.size() < count) {
    if (planned_.empty()) PlanExecution();
    events.push_back(Emit(std::move(planned_.front())));
    planned_.pop_front();
  }
  return events;
}

absl::Status AppendMix(const EventMix& mix, std::span<const MixEvent> events,
                       std::vector<EventChunkBuilder::ShapeId>& shape_ids,
                       EventChunkBuilder& builder) {
  if (shape_ids.empty()) {
    for (const Shape& shape : mix.shapes()) {
      ASSIGN_OR_RETURN(shape_ids.emplace_back(), builder.InternShape(shape));
    }
  }
  for (const MixEvent& event : events) {
    RETURN_IF_ERROR(builder.Append(shape_ids[event.shape], event.fields, event.values));
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
