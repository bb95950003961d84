// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/framework_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "aggregator/timeline/device_stamp.h"
#include "lib/trace/event_filter.h"

namespace neurontrace {
namespace {

// Three kinds of chains are found in one pass, without looking ahead. Framework calls: every
// operation that is under way on a thread is kept, and a call is joined to the innermost one around
// it. Sequences: the first span with an nrta_seq_id begins a chain and the others continue it.
// Executions: a call of nrt_execute begins a chain, the preparation within it names the exec_id,
// and the device's runs with that id end it. Each record costs a few look-ups; nesting is searched
// up to kSearchMax spans.

// Each warning says what was not joined and why, because a missing arrow looks like a missing
// cause.
void AddMappingWarnings(const LinkCounts& counts, std::vector<std::string>& warnings) {
  if (counts.mapped_contradicted > 0) {
    warnings.push_back(
        fmt::format("{} of {} runtime calls in mapping files lie inside another framework "
                    "operation; their arrows start at that operation",
                    counts.mapped_contradicted, counts.calls_mapped));
  }
  if (counts.mapped_unseen > 0) {
    warnings.push_back(
        fmt::format("{} of {} runtime calls in mapping files have no earlier operation with their "
                    "sequence number in a framework trace",
                    counts.mapped_unseen, counts.calls_mapped));
  }
  if (counts.mapped_elsewhere > 0) {
    warnings.push_back(
        fmt::format("{} operations in mapping files are ignored because their worker is unknown",
                    counts.mapped_elsewhere));
  }
  if (counts.mapped_forgotten > 0) {
    warnings.push_back(
        fmt::format("{} operations in mapping files are ignored because there are too many",
                    counts.mapped_forgotten));
  }
}

// Returns whether the record names its thread.
bool HasThread(const TimelineRecord& record) {
  return (record.start().present & FieldBit(Field::kThreadId)) != 0;
}

}  // namespace

std::vector<std::string> LinkCounts::Warnings() const {
  std::vector<std::string> warnings;
  if (operations_ambiguous > 0) {
    warnings.push_back(
        fmt::format("{} framework operations are not joined to the runtime because two workers of "
                    "their instance have their process id",
                    operations_ambiguous));
  }
  if (operations_own_time > 0) {
    warnings.push_back(
        fmt::format("{} framework operations are not joined to the runtime because the times of "
                    "their file count from an unknown moment",
                    operations_own_time));
  }
  // A call within a call may be joined by its mapping without being counted in `calls`.
  const uint64_t joined = std::min(calls, calls_joined + mapped_added);
  if (operations > 0 && joined < calls) {
    std::string text = fmt::format(
        "{} of {} runtime calls on instances with framework traces are not inside a framework "
        "operation",
        calls - joined, calls);
    if (calls_crossing > 0)
      text += fmt::format("; {} end after the operation in which they start", calls_crossing);
    if (calls_without_thread > 0) text += fmt::format("; {} have no thread", calls_without_thread);
    warnings.push_back(std::move(text));
  }
  // Only if nothing at all was joined: a trace may well contain other processes, too.
  if (operations == 0 && operations_elsewhere > 0 && calls > 0) {
    warnings.push_back(fmt::format(
        "{} framework operations belong to processes that are not workers in this capture",
        operations_elsewhere));
  }
  AddMappingWarnings(*this, warnings);
  if (operations_forgotten + chains_forgotten > 0) {
    warnings.push_back(
        fmt::format("arrows of {} framework operations and {} executions or sequences end early "
                    "because there are too many at a time",
                    operations_forgotten, chains_forgotten));
  }
  return warnings;
}

// Numbers workers and instances, so that records need no comparison of names.
FrameworkLinks::FrameworkLinks(std::span<const TimelineStream> streams,
                               std::span<const FrameworkNames> names) {
  std::map<WorkerIdentity, uint32_t> workers;
  std::map<std::string_view, uint32_t> instances;
  absl::flat_hash_set<uint32_t> with_operations;
  for (const TimelineStream& stream : streams) {
    const StreamIdentity& identity = stream.description.identity;
    const auto next_worker = static_cast<uint32_t>(workers.size());
    const auto next_instance = static_cast<uint32_t>(instances.size());
    StreamAbout about{.is_core = identity.kind == StreamKind::kNeuronCore,
                      .is_framework = identity.kind == StreamKind::kFramework,
                      .has_own_time = stream.description.has_own_time(),
                      .pid = identity.worker.pid};
    about.worker = workers.try_emplace(identity.worker, next_worker).first->second;
    about.instance =
        instances.try_emplace(identity.worker.instance_id, next_instance).first->second;
    if (about.is_framework && !about.has_own_time) with_operations.insert(about.instance);
    if (about.is_core) {
      // Framework files know a process id alone, which two workers of an instance may share, in two
      // containers or one after the other.
      const auto [process, is_new] = processes_.try_emplace(
          std::pair(about.instance, uint64_t{about.pid}), Process{.worker = about.worker});
      process->second.is_ambiguous |= !is_new && process->second.worker != about.worker;
    }
    streams_.push_back(about);
  }
  for (StreamAbout& about : streams_) {
    // On other instances calls are not counted as unjoined, since there is nothing to join them to.
    about.has_operations = about.is_core && with_operations.contains(about.instance);
  }
  AddMapping(names);
}

// A file's folder tells its process. If it does not, and the instance has one worker, it is that
// one's.
std::optional<uint32_t> FrameworkLinks::MappedWorker(const StreamAbout& stream) const {
  std::optional<uint32_t> worker;
  for (const auto& [id, process] : processes_) {
    if (id.first != stream.instance || (stream.pid != 0 && id.second != stream.pid)) continue;
    if (worker || process.is_ambiguous) return std::nullopt;
    worker = process.worker;
  }
  return worker;
}

// Runs before the first record: MappedOperations requires everything mapped before questions.
void FrameworkLinks::AddMapping(std::span<const FrameworkNames> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    counts_.mapped_forgotten += names[i].mapped_beyond;
    if (names[i].mapped.empty()) continue;
    const auto worker = MappedWorker(streams_[i]);
    if (!worker) {
      counts_.mapped_elsewhere += names[i].mapped.size();
      continue;
    }
    for (const FrameworkNames::Mapped& mapped : names[i].mapped) {
      mapped_.Map(*worker, mapped.nrta_seq_id, mapped.sequence_number);
    }
  }
  mapped_.Settle();
}

// The phases tell frameworks from the runtime; the event type tells the rest.
FrameworkLinks::ShapeAbout FrameworkLinks::Examine(const Shape& shape) {
  ShapeAbout about{.is_known = true};
  if (shape.phase == Phase::kComplete || shape.phase == Phase::kBegin) {
    about.kind = ShapeKind::kOperation;
    for (uint16_t i = 0; i < shape.keys.size(); ++i) {
      const ShapeKey& key = shape.keys[i];
      if (key.scope == KeyScope::kTop && key.name == "pid") about.pid_key = i;
      // The name that PyTorch's Kineto gives it.
      if (key.scope == KeyScope::kData && key.name == "Sequence number") about.number_key = i;
    }
    return about;
  }
  for (uint16_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    if (key.scope == KeyScope::kData && key.name == "exec_id") about.exec_key = i;
  }
  const std::string_view type = shape.event_type;
  if (type == "nc_exec_running" || type == "device_exec") {
    about.kind = ShapeKind::kRunning;
    // What the device stamped is not a call on a host's thread, whatever its thread id.
  } else if (IsHardwareEventType(type) || DeviceStampKey(shape)) {
    about.kind = ShapeKind::kNone;
  } else if (type == "nrt_execute") {
    about.kind = ShapeKind::kExecute;
  } else if (type == "kbl_exec_pre") {
    about.kind = ShapeKind::kPrepare;
  } else {
    about.kind = ShapeKind::kCall;
  }
  return about;
}

// Shapes with high numbers are examined each time, which keeps the table small.
const FrameworkLinks::ShapeAbout& FrameworkLinks::AboutOf(const TimelineRecord& record) {
  const uint64_t number = record.shape->number;
  if (number >= ShapeFieldTable::kShapesMax) return other_shape_ = Examine(record.start());
  if (number >= shapes_.size()) shapes_.resize(number + 1);
  if (!shapes_[number].is_known) shapes_[number] = Examine(record.start());
  return shapes_[number];
}

// One record may be part of several chains, such as an nrt_execute with an nrta_seq_id.
const std::vector<LinkPoint>& FrameworkLinks::Of(const TimelineRecord& record) {
  points_.clear();
  if (record.kind != RecordKind::kSpan || (record.flags & kStartLost) != 0) return points_;
  const StreamAbout& stream = streams_[record.stream];
  if (!stream.is_core && !stream.is_framework) return points_;
  const ShapeAbout& about = AboutOf(record);
  if (stream.is_framework) {
    if (about.kind == ShapeKind::kOperation) AddOperation(record, about);
    return points_;
  }
  const bool is_hosts = about.kind == ShapeKind::kCall || about.kind == ShapeKind::kExecute ||
                        about.kind == ShapeKind::kPrepare;
  if (stream.has_operations && is_hosts) AddCall(record);
  if (about.kind == ShapeKind::kExecute) AddExecute(record);
  if (about.kind == ShapeKind::kPrepare) AddPreparation(record, about);
  if (about.kind == ShapeKind::kRunning) HandleRunning(record, about);
  if ((record.flags & kHasNrtaSeqId) != 0) AddSequence(record);
  return points_;
}

// Begins the operation's chain whether or not a call follows: later records are not known yet.
void FrameworkLinks::AddOperation(const TimelineRecord& record, const ShapeAbout& about) {
  const StreamAbout& stream = streams_[record.stream];
  if (stream.has_own_time) {
    ++counts_.operations_own_time;
    return;
  }
  auto pid = NumberAt(record, about.pid_key);
  // The event's own process id has precedence: a file may contain several processes.
  if (about.pid_key == ShapeFields::kNone && stream.pid != 0) pid = stream.pid;
  if (!pid || !HasThread(record)) {
    ++counts_.operations_unnamed;
    return;
  }
  const auto process = processes_.find({stream.instance, *pid});
  if (process == processes_.end()) {
    ++counts_.operations_elsewhere;
    return;
  }
  if (process->second.is_ambiguous) {
    ++counts_.operations_ambiguous;
    return;
  }
  ++counts_.operations;
  const uint32_t worker = process->second.worker;
  const auto number = mapped_.empty() ? std::nullopt : NumberAt(record, about.number_key);
  const bool is_named = number && mapped_.Names(worker, *number);
  // It is not known which calls an operation without an end contains.
  const bool has_length = record.end_ns > record.start_ns && (record.flags & kOpen) == 0;
  if (!has_length && !is_named) return;
  const uint64_t chain = next_chain_++;
  if (has_length) {
    open_.Add({worker, record.thread_id}, record.start_ns, {record.end_ns, chain});
  }
  if (is_named) {
    mapped_.Observe(worker, *number, {chain, record.start_ns, record.end_ns, record.thread_id});
  }
  Add(chain, LinkRole::kStart, LinkKind::kFrameworkCall);
}

// Only the outermost of nested calls is joined by time: the inner ones are its work.
void FrameworkLinks::AddCall(const TimelineRecord& record) {
  const bool has_sequence = (record.flags & kHasNrtaSeqId) != 0;
  // It is not known how long a call without a stop took: it counts where it begins.
  const uint64_t end_ns = (record.flags & kOpen) != 0 ? record.start_ns : record.end_ns;
  if (!HasThread(record)) {
    ++counts_.calls;
    ++counts_.calls_without_thread;
    if (has_sequence) AddMapped(record, end_ns, nullptr);
    return;
  }
  const OpenSpans::Thread thread{streams_[record.stream].worker, record.thread_id};
  const OpenSpans::Place place = open_.Find(thread, record.start_ns, end_ns);
  const bool is_within_call = place.innermost != nullptr && place.innermost->chain == 0;
  if (!is_within_call) {
    ++counts_.calls;
    // The innermost operation alone: those around it are its ancestors and would only repeat the
    // arrow.
    if (place.innermost != nullptr) {
      ++counts_.calls_joined;
      Add(place.innermost->chain, LinkRole::kStep, LinkKind::kFrameworkCall);
    } else {
      ++(place.crosses ? counts_.calls_crossing : counts_.calls_outside);
    }
  }
  OpenSpans::Span call{.end_ns = record.end_ns};
  if (has_sequence) {
    call.nrta_seq_id = record.nrta_seq_id();
    // A call within a call of the same sequence is a part of it, and would be mapped twice.
    const bool is_part = is_within_call && place.innermost->nrta_seq_id == call.nrta_seq_id;
    if (!is_part) AddMapped(record, end_ns, place.operation);
  }
  if (record.end_ns > record.start_ns) open_.Add(thread, record.start_ns, call);
}

// An operation that holds the call on its thread was certainly there. That result stays, even if a
// mapping file lists another one.
void FrameworkLinks::AddMapped(const TimelineRecord& record, uint64_t end_ns,
                               const OpenSpans::Span* operation) {
  if (mapped_.empty()) return;
  MappedOperations::Call call{.start_ns = record.start_ns, .end_ns = end_ns};
  if (HasThread(record)) call.thread_id = record.thread_id;
  const uint32_t worker = streams_[record.stream].worker;
  if (!mapped_.Find(worker, record.nrta_seq_id(), call, causes_)) return;
  ++counts_.calls_mapped;
  if (causes_.empty()) {
    ++counts_.mapped_unseen;
    return;
  }
  // An operation within or around the one that holds the call is what the times would give as well.
  const auto agrees = [operation](const MappedOperations::Cause& cause) {
    return cause.encloses || (cause.is_on_thread && cause.start_ns >= operation->start_ns);
  };
  const bool is_timed = operation != nullptr;
  if (is_timed && std::none_of(causes_.begin(), causes_.end(), agrees)) {
    ++counts_.mapped_contradicted;
    return;
  }
  ++(is_timed ? counts_.mapped_confirmed : counts_.mapped_added);
  for (const MappedOperations::Cause& cause : causes_) {
    // Those around the call share the chain of the innermost of them.
    if (is_timed && cause.encloses) continue;
    Add(cause.chain, LinkRole::kStep, LinkKind::kFrameworkCall);
  }
}

// Forgets the oldest chains at the limit.
void FrameworkLinks::Remember(const Key& key, uint64_t chain) {
  while (in_order_.size() >= kChainsMax) {
    const auto [oldest, id] = in_order_.front();
    in_order_.pop_front();
    const auto found = chains_.find(oldest);
    // The key was used again since: its newer chain is further back in the queue.
    if (found == chains_.end() || found->second != id) continue;
    chains_.erase(found);
    ++chains_forgotten_;
  }
  chains_[key] = chain;
  in_order_.emplace_back(key, chain);
}

// The first span with a number begins the chain, whichever it is.
void FrameworkLinks::AddSequence(const TimelineRecord& record) {
  const Key key{streams_[record.stream].worker, LinkKind::kSequence, record.nrta_seq_id()};
  const auto known = chains_.find(key);
  if (known != chains_.end()) {
    Add(known->second, LinkRole::kStep, LinkKind::kSequence);
    return;
  }
  const uint64_t chain = next_chain_++;
  Remember(key, chain);
  Add(chain, LinkRole::kStart, LinkKind::kSequence);
}

// The chain waits for its preparation under the thread, as the call does not name an exec_id.
void FrameworkLinks::AddExecute(const TimelineRecord& record) {
  const uint64_t chain = next_chain_++;
  Add(chain, LinkRole::kStart, LinkKind::kExecution);
  if (!HasThread(record)) return;
  if (calls_.size() >= kCallsMax) {
    chains_forgotten_ += calls_.size();
    calls_.clear();
  }
  // A thread has one such call at a time: a newer one replaces it.
  calls_[{record.stream, record.thread_id}] = {record.end_ns, chain};
}

// Makes the chain of the call findable by exec_id, or begins one if there is no call around it.
void FrameworkLinks::AddPreparation(const TimelineRecord& record, const ShapeAbout& about) {
  const auto exec_id = NumberAt(record, about.exec_key);
  if (!exec_id) return;
  const Key key{record.stream, LinkKind::kExecution, *exec_id};
  const auto call =
      HasThread(record) ? calls_.find({record.stream, record.thread_id}) : calls_.end();
  // The preparation must lie within the call: the same thread and host clock leave no doubt.
  const bool is_within = call != calls_.end() && call->second.chain != 0 &&
                         record.start_ns < call->second.end_ns &&
                         record.end_ns <= call->second.end_ns;
  if (!is_within) {
    const uint64_t chain = next_chain_++;
    Remember(key, chain);
    Add(chain, LinkRole::kStart, LinkKind::kExecution);
    return;
  }
  // A further preparation in the same call is another execution, whose chain begins with itself.
  Remember(key, call->second.chain);
  Add(call->second.chain, LinkRole::kStep, LinkKind::kExecution);
  call->second.chain = 0;
}

// An exec_id that was prepared again since leads to the later chain.
void FrameworkLinks::HandleRunning(const TimelineRecord& record, const ShapeAbout& about) {
  ++counts_.executions;
  const auto exec_id = NumberAt(record, about.exec_key);
  const auto known =
      exec_id ? chains_.find(Key{record.stream, LinkKind::kExecution, *exec_id}) : chains_.end();
  if (known == chains_.end()) {
    ++counts_.executions_unprepared;
  } else {
    Add(known->second, LinkRole::kEnd, LinkKind::kExecution);
  }
}

// Combines the counts of the parts.
LinkCounts FrameworkLinks::counts() const {
  LinkCounts counts = counts_;
  counts.operations_forgotten = open_.forgotten();
  counts.mapped_forgotten += mapped_.forgotten();
  counts.chains_forgotten = chains_forgotten_;
  return counts;
}

std::string_view FrameworkLinks::NameOf(LinkKind kind) {
  switch (kind) {
    case LinkKind::kFrameworkCall:
      return "framework_call";
    case LinkKind::kSequence:
      return "nrta_seq_id";
    case LinkKind::kExecution:
      break;
  }
  return "exec_id";
}

}  // namespace neurontrace
