// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/execution_planner.h"

#include <algorithm>
#include <cmath>

namespace neurontrace {
namespace {

// Salts of the random numbers.
enum : uint64_t { kDeviceBase = 100, kDeviceDrift, kSyncJitter, kSyncTail, kMemory };

constexpr double kDeviceDriftPpmMax = 20;
constexpr uint64_t kStepsPerModel = 50;
constexpr uint64_t kStepsPerNotify = 16;
constexpr uint64_t kStepsPerFutureEvent = 32;
constexpr uint64_t kNrtaSeqBase = 9007199254740993;  // beyond what a double can tell apart

}  // namespace

ExecutionPlanner::ExecutionPlanner(const Schedule& schedule, const WorkloadForms& forms,
                                   const PlannerOptions& options)
    : schedule_(schedule), forms_(forms), options_(options) {
  const PlacedRandom& random = schedule.random();
  for (uint64_t i = 0; i < options.physical_per_logical; ++i) {
    device_clocks_.push_back(
        {.base_ns = static_cast<int64_t>(random.Between(1e9, 2e11, {kDeviceBase, options.rank, i})),
         .drift_ppm = random.Between(-kDeviceDriftPpmMax, kDeviceDriftPpmMax,
                                     {kDeviceDrift, options.rank, i}),
         .origin_ns = schedule.StepBegin(0)});
  }
}

PlannedEvent& ExecutionPlanner::Add(const NamedForm& form, uint32_t span, int64_t true_ns,
                                    Values values) {
  PlannedEvent& event = events_.emplace_back();
  event.form = form;
  event.span = span;
  event.emit_ns = true_ns;
  event.true_ns = true_ns;
  event.timestamp_ns = options_.host_clock.Stamp(true_ns);
  std::copy(values.begin(), values.end(), event.values.begin());
  return event;
}

void ExecutionPlanner::HostSpan(const SpanForms& forms, int64_t start_ns, int64_t stop_ns,
                                Values values) {
  const uint32_t span = NewSpan();
  Add(forms.start, span, start_ns, values);
  Add(forms.stop, span, stop_ns, {});
}

void ExecutionPlanner::AddDevice(const NamedForm& form, uint32_t span, uint32_t physical,
                                 int64_t true_ns, Values values, size_t ticks_at) {
  PlannedEvent& event = Add(form, span, true_ns, values);
  const int64_t ticks = device_clocks_[physical].Read(true_ns);
  event.values[ticks_at] = static_cast<uint64_t>(ticks);
  // What the runtime does to hardware events, with all of the error that it has.
  event.timestamp_ns = sync_[physical].cpu_ns + (ticks - sync_[physical].device_ns);
  if (options_.hardware_after_sync) event.emit_ns = sync_emit_ns_;
}

void ExecutionPlanner::DeviceSpan(const SpanForms& forms, uint32_t physical, int64_t start_ns,
                                  int64_t stop_ns, Values start_values, size_t ticks_at) {
  const uint32_t span = NewSpan();
  AddDevice(forms.start, span, physical, start_ns, start_values, ticks_at);
  AddDevice(forms.stop, span, physical, stop_ns, {}, 0);
}

int64_t ExecutionPlanner::PlanSyncPairs(uint64_t step, int64_t latched_ns) {
  const PlacedRandom& random = schedule_.random();
  const double scale = static_cast<double>(schedule_.host_unit_ns()) / 10e6;
  sync_.clear();
  int64_t seen_ns = latched_ns;
  for (uint64_t i = 0; i < device_clocks_.size(); ++i) {
    // The host reads its clock after the device latched its counter: never before, now and then
    // much later.
    double jitter_ns = -2000 * std::log1p(-random.Unit({kSyncJitter, step, options_.rank, i}));
    const double tail = random.Unit({kSyncTail, step, options_.rank, i});
    if (tail < 0.02) jitter_ns += 40'000 * tail / 0.02;
    const int64_t read_ns = latched_ns + static_cast<int64_t>(jitter_ns * scale);
    sync_.push_back({.device_ns = device_clocks_[i].Read(latched_ns),
                     .cpu_ns = options_.host_clock.Stamp(read_ns)});
    if (i == 0) seen_ns = read_ns;
  }
  // The event is recorded some 10 us after the reading that it carries.
  return seen_ns + static_cast<int64_t>(10'200 * scale);
}

void ExecutionPlanner::AddMemoryEvent(const SpanForms& forms, uint64_t bits, int64_t start_ns,
                                      int64_t stop_ns) {
  const uint64_t address = 0x7f3a00000000 + (bits & 0xffffff000);
  const uint64_t bytes = 4096 << (bits % 8);
  const uint32_t span = NewSpan();
  if (&forms == &forms_.dma_alloc) {
    device_bytes_ += bytes;
    Add(forms.start, span, start_ns, {0, 1, 0, 0, forms_.tensors});
    Add(forms.stop, span, stop_ns, {bytes, device_bytes_, device_bytes_ / 2, 0, address});
  } else {
    device_bytes_ -= std::min(device_bytes_, bytes);
    Add(forms.start, span, start_ns, {0, 1, 0, forms_.tensors, address});
    Add(forms.stop, span, stop_ns, {bytes, device_bytes_, device_bytes_ / 2});
  }
}

// Calls of one kind, one after the other, with the calls inside of them spread evenly.
void ExecutionPlanner::PlanHostWork(HostKind parents, HostKind children, int64_t begin_ns,
                                    int64_t end_ns) {
  if (parents.count == 0) return;
  const int64_t room = (end_ns - begin_ns) / (parents.count * 2 + children.count);
  const int64_t length = std::max<int64_t>(1, room * 3 / 4);
  int64_t now = begin_ns;
  uint32_t child = 0;
  for (uint32_t parent = 0; parent < parents.count; ++parent) {
    const uint64_t bits =
        schedule_.random().Bits({kMemory, options_.rank, static_cast<uint64_t>(begin_ns), parent});
    const uint64_t tensor = bits >> 1;
    const uint32_t children_until =
        static_cast<uint32_t>(static_cast<uint64_t>(parent + 1) * children.count / parents.count);
    const int64_t start = now;
    const uint32_t span = NewSpan();
    Add(parents.forms->start, span, start, {tensor, bits % 4096 * 4, bits % 3});
    now += length;
    for (; child < children_until; ++child, now += room) {
      const int64_t stop = now + length;
      if (children.forms == &forms_.copyin) {
        HostSpan(*children.forms, now, stop, {bits % 3, tensor, 0, bits % 4096 * 4});
      } else if (children.forms == &forms_.copyout) {
        HostSpan(*children.forms, now, stop, {forms_.host_memory, tensor, 0, bits % 4096 * 4});
      } else {
        AddMemoryEvent(*children.forms, bits + child, now, stop);
      }
    }
    Add(parents.forms->stop, span, now, {});
    now = now + 2 * room - length;
  }
}

void ExecutionPlanner::PlanDevice(uint64_t step, const RankStep& times) {
  const uint64_t model = forms_.model_id[model_];
  for (uint32_t i = 0; i < options_.physical_per_logical; ++i) {
    const int64_t skew = i * schedule_.host_unit_ns() / 20'000;
    const uint64_t core = options_.first_physical_core + i;
    if (step % kStepsPerModel == 0) {
      const int64_t before = schedule_.host_unit_ns() / 400;
      DeviceSpan(forms_.model_switch, i, times.device_start_ns - before,
                 times.device_start_ns - before / 4, {core, model, exec_id_}, 3);
    }
    const uint64_t name = i == 0 ? forms_.empty_name : forms_.model_name[model_];
    DeviceSpan(forms_.running, i, times.device_start_ns + skew, times.device_stop_ns + skew,
               {core, exec_id_, 0, model, name}, 2);
  }
  DeviceSpan(forms_.device_barrier, 0, times.device_barrier.enter_ns, times.device_barrier.exit_ns,
             {0, model}, 0);
  for (size_t i = 0; i < times.collectives.size(); ++i) {
    DeviceSpan(forms_.collective, 0, times.collectives[i].enter_ns, times.collectives[i].exit_ns,
               {options_.rank, i, exec_id_, 0, forms_.ring}, 3);
  }
}

void ExecutionPlanner::PlanExecute(uint64_t step, const RankStep& times, int64_t sync_ns,
                                   int64_t stop_ns) {
  const uint64_t model = forms_.model_id[model_];
  const uint64_t name = forms_.model_name[model_];
  const int64_t unit = schedule_.host_unit_ns() / 1000;
  const uint32_t execute = NewSpan();
  PlannedEvent& start = Add(forms_.execute.start, execute, times.execute_ns, {model, name});
  if (step % 4 == 0) start.nrta_seq_id = kNrtaSeqBase + exec_id_;
  HostSpan(forms_.kmgr, times.execute_ns + unit, stop_ns - unit, {model});
  HostSpan(forms_.submit, times.execute_ns + 2 * unit, times.execute_ns + 6 * unit, {model, name});
  HostSpan(forms_.pre, times.execute_ns + 7 * unit, times.core_ns - unit, {exec_id_, model, name});
  HostSpan(forms_.core, times.core_ns, sync_ns + 8 * unit, {exec_id_, model});
  const uint64_t no_peer = static_cast<uint64_t>(-1);
  HostSpan(forms_.enc_barrier, times.host_barrier.enter_ns, times.host_barrier.exit_ns,
           {no_peer, exec_id_, options_.nc_idx});
  HostSpan(forms_.wait, times.host_barrier.exit_ns + unit / 2, sync_ns + 7 * unit,
           {exec_id_, model});
  HostSpan(forms_.consume_cc, sync_ns + unit, sync_ns + 2 * unit, {exec_id_, model});
  HostSpan(forms_.consume_errors, sync_ns + 3 * unit, sync_ns + 4 * unit, {exec_id_, model});
  HostSpan(forms_.consume_stdio, sync_ns + 5 * unit, sync_ns + 6 * unit, {exec_id_, model});
  HostSpan(forms_.post, sync_ns + 9 * unit, stop_ns - 2 * unit, {exec_id_, model});
  PlannedEvent& stop = Add(forms_.execute.stop, execute, stop_ns, {});
  if (step % 4 == 0) stop.nrta_seq_id = kNrtaSeqBase + exec_id_;

  PlannedEvent& sync = Add(forms_.sync_point, NewSpan(), sync_ns, {exec_id_});
  sync.values[1] = static_cast<uint64_t>(sync_[0].device_ns);
  sync.values[2] = static_cast<uint64_t>(sync_[0].cpu_ns);
}

void ExecutionPlanner::PlanOccasional(uint64_t step, const RankStep& times) {
  const int64_t middle = times.device_start_ns + (times.device_stop_ns - times.device_start_ns) / 2;
  if (step % kStepsPerNotify == 1) {
    AddDevice(forms_.notify, NewSpan(), 0, middle,
              {options_.first_physical_core, 7, step & 0xffffffff, 0, exec_id_}, 3);
  }
  if (step % kStepsPerFutureEvent == 2) {
    Add(forms_.future, NewSpan(), times.begin_ns + 1,
        {forms_.nested, forms_.extreme_text, exec_id_});
  }
}

std::span<const PlannedEvent> ExecutionPlanner::Plan(uint64_t step, const StepDelay& delay) {
  ++exec_id_;
  model_ = step / kStepsPerModel % forms_.model_id.size();
  tracking_ids_.clear();
  device_bytes_before_ = device_bytes_;
  return LayOut(step, delay);
}

std::span<const PlannedEvent> ExecutionPlanner::Replan(uint64_t step, const StepDelay& delay) {
  device_bytes_ = device_bytes_before_;
  return LayOut(step, delay);
}

std::span<const PlannedEvent> ExecutionPlanner::LayOut(uint64_t step, const StepDelay& delay) {
  events_.clear();
  next_span_ = 0;
  const RankStep times = Delayed(schedule_.Rank(step, options_.rank), delay);
  const int64_t unit = schedule_.host_unit_ns() / 1000;
  const int64_t latched =
      std::max(times.device_stop_ns, times.host_barrier.exit_ns + unit) + 2 * unit;
  sync_emit_ns_ = PlanSyncPairs(step, latched);
  const int64_t stop = sync_emit_ns_ + 13 * unit;

  const WorkloadMix& mix = options_.mix;
  const int64_t begin = times.begin_ns + 10 * unit;
  PlanHostWork({&forms_.tensor_allocate, mix.tensor_allocate},
               {&forms_.dma_alloc, mix.dma_mem_alloc}, begin, begin + 70 * unit);
  PlanHostWork({&forms_.tensor_write, mix.tensor_write}, {&forms_.copyin, mix.copyin},
               begin + 70 * unit, begin + 140 * unit);
  PlanExecute(step, times, sync_emit_ns_, stop);
  PlanDevice(step, times);
  const int64_t after = stop + 5 * unit;
  PlanHostWork({&forms_.tensor_read, mix.tensor_read}, {&forms_.copyout, mix.copyout}, after,
               after + 40 * unit);
  PlanHostWork({&forms_.tensor_free, mix.tensor_free}, {&forms_.dma_dealloc, mix.dma_mem_dealloc},
               after + 40 * unit, after + 140 * unit);
  PlanOccasional(step, times);
  Finish();
  return events_;
}

std::span<const PlannedEvent> ExecutionPlanner::PlanLoad(int64_t true_ns) {
  events_.clear();
  tracking_ids_.clear();
  next_span_ = 0;
  const uint32_t span = NewSpan();
  Add(forms_.load.start, span, true_ns, {});
  Add(forms_.load.stop, span, true_ns + 1000, {forms_.model_id[0], forms_.model_name[0]});
  Finish();
  return events_;
}

void ExecutionPlanner::Finish() {
  std::stable_sort(
      events_.begin(), events_.end(),
      [](const PlannedEvent& a, const PlannedEvent& b) { return a.emit_ns < b.emit_ns; });
  // The runtime numbers spans as they begin. A step that is laid out again keeps its numbers.
  tracking_ids_.resize(next_span_, 0);
  for (PlannedEvent& event : events_) {
    uint64_t& id = tracking_ids_[event.span];
    if (id == 0) id = fake_nrt_next_tracking_id(options_.nc_idx);
    event.tracking_id = event.form.form == forms_.future.form ? UINT64_MAX : id;
  }
}

}  // namespace neurontrace
