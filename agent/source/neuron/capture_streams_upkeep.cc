// SPDX-License-Identifier: Apache-2.0
// The part of CaptureStreams that happens between records: what is told of the whole, and asked.
#include <algorithm>

#include "agent/source/neuron/capture_streams.h"
#include "trace/fidelity.h"

namespace neurontrace {
namespace {

// The tap looks at every core several times within half of this.
constexpr uint64_t kSilenceNs = 1'000'000'000;
// What a budget leaves out is told so often while it goes on.
constexpr uint64_t kTellLeftOutNs = 10'000'000'000;

}  // namespace

void CaptureStreams::SetFidelity(FidelityNote note) {
  if (ended_) return;
  TellLeftOut(note.at_ns);
  left_out_since_ns_ = note.level > 0 ? note.at_ns : 0;
  shape_notes_.clear();
  fidelity_ = std::move(note);
  ++fidelity_changes_;
  AgentSourceMetrics::Add(surroundings_.metrics.fidelity_changes);
  TellFidelity();
}

// Of each core that has not been told yet. One that is new, or not begun, is told when it is there.
void CaptureStreams::TellFidelity() {
  if (fidelity_changes_ == 0 || !told_position_ || ended_) return;
  for (size_t slot = 0; slot + 1 < cores_.size(); ++slot) {
    Core* const core = cores_[slot].get();
    if (core == nullptr || core->fidelity_told == fidelity_changes_) continue;
    if (!core->gate.opened() || !core->of_ranks) continue;
    core->fidelity_told = fidelity_changes_;
    AppendFidelity(*told_position_, fidelity_, *core->writer);
  }
}

void CaptureStreams::TellLeftOut(uint64_t now_ns) {
  if (left_out_since_ns_ == 0 || !told_position_ || now_ns <= left_out_since_ns_) return;
  for (size_t slot = 0; slot + 1 < cores_.size(); ++slot) {
    Core* const core = cores_[slot].get();
    if (core == nullptr || core->fidelity_told == 0) continue;
    core->writer->AddLoss(*told_position_,
                          LeftOutFromTo(left_out_since_ns_, now_ns, fidelity_.words));
  }
  left_out_since_ns_ = now_ns;
}

void CaptureStreams::ObserveRings(uint64_t now_ns, bool drained) {
  if (!drained || now_ns < kSilenceNs) return;
  for (const auto& core : cores_) {
    if (core == nullptr || !core->fill || now_ns - kSilenceNs < core->fetched_ns) continue;
    // A document that is on its way was fetched later than this.
    core->fill->Took(now_ns - kSilenceNs / 2, 0, true);
  }
}

void CaptureStreams::Tick(uint64_t position) {
  TellFidelity();
  const uint64_t now_ns = surroundings_.clock.RealtimeNs();
  if (left_out_since_ns_ != 0 && now_ns >= left_out_since_ns_ + kTellLeftOutNs) TellLeftOut(now_ns);
  for (const auto& core : cores_) {
    if (core != nullptr) core->writer->Tick(position);
  }
}

void CaptureStreams::Flush(uint64_t position) {
  for (const auto& core : cores_) {
    if (core != nullptr) core->writer->Flush(position);
  }
}

void CaptureStreams::End(uint64_t position) {
  TellLeftOut(surroundings_.clock.RealtimeNs());
  ended_ = true;
  end_position_ = position;
  // What is said of all cores goes before their ends: an agent that is killed between the two
  // leaves streams that the next one ends, and not ended ones of which nobody knows that more was
  // lost.
  if (cores_.back() != nullptr) cores_.back()->writer->End(position);
  for (size_t slot = 0; slot + 1 < cores_.size(); ++slot) {
    if (cores_[slot] != nullptr) cores_[slot]->writer->End(position);
  }
}

bool CaptureStreams::finished() const {
  return std::all_of(cores_.begin(), cores_.end(),
                     [](const auto& core) { return core == nullptr || core->writer->finished(); });
}

StreamWriter::Counts CaptureStreams::counts() const {
  StreamWriter::Counts sum;
  for (const auto& core : cores_) {
    if (core == nullptr) continue;
    const StreamWriter::Counts& one = core->writer->counts();
    sum.read += one.read;
    sum.stored += one.stored;
    sum.bytes += one.bytes;
    sum.lost += one.lost;
    sum.lost_unknown = sum.lost_unknown || one.lost_unknown;
    sum.given_up = sum.given_up || one.given_up;
  }
  return sum;
}

std::optional<uint64_t> CaptureStreams::first_undurable_position() const {
  std::optional<uint64_t> first;
  for (const auto& core : cores_) {
    if (core == nullptr) continue;
    const std::optional<uint64_t> one = core->writer->first_undurable_position();
    if (one && (!first || *one < *first)) first = one;
  }
  return first;
}

std::optional<uint64_t> CaptureStreams::first_unexplained_position() const {
  if (ended_ || refused_of_any_ == 0) return std::nullopt;
  return refused_of_any_position_;
}

}  // namespace neurontrace
