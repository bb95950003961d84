// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/source/neuron/capture/overhead_governor.h"
#include "agent/source/stream_writer.h"

namespace neurontrace {

// A change of the level of detail of a worker, as its streams record it.
struct FidelityNote {
  uint32_t level = 0;
  // One of the constants below.
  std::string_view reason;
  // The cost that led to the change.
  OverheadCost cost;
  // How long no trace ran because of the change.
  uint64_t unrecorded_ns = 0;
  // When it takes effect, realtime.
  uint64_t at_ns = 0;
  // What is left out and why, for the certificate; empty at level 0.
  std::string words;
};

// Reasons of a note: over the budget of processor time, over that of bytes, below both for long, or
// the agent cannot know what the running trace omits and restarted it.
inline constexpr std::string_view kFidelityCoreBudget = "core_budget";
inline constexpr std::string_view kFidelityBytesBudget = "bytes_budget";
inline constexpr std::string_view kFidelityRoom = "room";
inline constexpr std::string_view kFidelityTakenOver = "taken_over";

// Writes the note as an instant, as a row after those of the record at `position`: an agent that
// reads the record again, and knows nothing of notes, still numbers its rows alike.
void AppendFidelity(uint64_t position, const FidelityNote& note, StreamWriter& writer);

}  // namespace neurontrace
