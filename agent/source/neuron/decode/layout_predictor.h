// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/neuron/decode/nrt_event.h"

namespace neurontrace {

// Reads events that look like earlier ones. The runtime writes every event of a kind in the same
// way, so the bytes between the values repeat: they and the place of each value are the event's
// layout. An event is compared with the layouts that followed the previous event's layout, then
// with those that begin like it; one that matches to the byte is read without looking at its keys.
//
// A layout is learned from an event that the full decoder has read, and only if it gives the same
// event again. What the full decoder decides by a value (such as a core's number that is too high)
// is part of the match, so that a prediction is always what the full decoder would have read.
//
// Holds at most kLayoutsMax layouts of kTextBytesMax bytes and kLearnedPerDocumentMax new ones from
// a document, so that hostile events cost neither memory nor much time; when it is full, it forgets
// all. Layouts point to shapes of the decoder's ShapeCache. Used by one thread at a time.
class LayoutPredictor {
 public:
  static constexpr size_t kLayoutsMax = 1'024;
  static constexpr size_t kTextBytesMax = 4'096;
  static constexpr uint32_t kLearnedPerDocumentMax = 64;

  // Where a value of an event goes, and which spellings it may have there: those for which the full
  // decoder would not decide otherwise.
  enum class ValueKind : uint8_t {
    kField,      // a canonical unsigned number, into the field that Place::slot names
    kWorkerGid,  // a canonical signed number
    kNcIdx,      // a canonical number below limits::kCoresPerWorkerMax
    kUint,       // these into the attribute Place::slot
    kInt,
    kDouble,
    kBool,
    kString,
    kEnd,  // no value: the end of the event
  };
  // One value of an event that the full decoder has read.
  struct Place {
    const char* at = nullptr;  // its first character, behind the quote if it is in quotes
    ValueKind kind = ValueKind::kEnd;
    uint8_t slot = 0;  // the number of its Field or of its attribute
  };

  struct Prediction {
    NrtEvent event;
    uint32_t bytes = 0;   // of its text
    uint32_t tokens = 0;  // of its text in a JsonIndex
  };

  // Allows to learn from a further document.
  void BeginDocument() { learned_left_ = kLearnedPerDocumentMax; }

  // Reads the event at `at`, an opening brace; nullptr if no known layout matches. Reads up to 64
  // bytes behind the text, which ends with a zero byte. The result and its values
  // are valid until the next call of any function.
  const Prediction* Predict(const char* at);

  // Learns from an event whose text begins with `{` and ends with `}`. `places` has every value
  // except null and texts that the event's shape contains, in the order of the text. Same readable
  // bytes as for Predict. Learns nothing if a value has a spelling that is never predicted.
  void Learn(std::string_view text, uint32_t tokens, std::span<const Place> places,
             const NrtEvent& event);

  // Must be called with the generation of every shape that the cache hands out, before the next
  // prediction: a new one means that all shapes before it are gone, and so all layouts.
  void SetGeneration(uint32_t generation) {
    if (generation != generation_) Forget();
    generation_ = generation;
  }

  size_t layouts() const { return layouts_.size(); }

 private:
  static constexpr size_t kHeads = 256;  // a power of two
  static constexpr size_t kWays = 4;
  static constexpr size_t kLastTextBytesMax = 63;

  // The bytes before one value, which follow those of the step before, and the value.
  struct Step {
    uint16_t literal_bytes = 0;
    ValueKind kind = ValueKind::kEnd;
    uint8_t slot = 0;
    uint8_t last_text = 0;  // kString: which of Layout::last_texts
  };
  // A string that is often the same in the next event. No bytes: unknown.
  struct LastText {
    uint32_t bytes = 0;
    std::array<char, kLastTextBytesMax + 1> text;
  };
  struct Layout {
    const CachedShape* shape = nullptr;
    uint32_t tokens = 0;
    uint64_t head = 0;                     // HeadHash of its events
    std::array<Layout*, 2> followed_by{};  // the layouts after it, most recent first
    std::vector<Step> steps;
    std::string literals;  // with padding for SameBytes
    std::vector<LastText> last_texts;
    std::vector<AttributeValue> values;  // of the event at hand
  };

  // Return the end of what they read, nullptr if it is spelled in another way. Values go to
  // prediction_.event and layout.values.
  const char* ReadEvent(Layout& layout, const char* at);
  const char* ReadValue(Layout& layout, const Step& step, const char* at);
  static const char* ReadString(LastText& last, const char* at, std::string_view& text);

  // A hash of what distinguishes most layouts: the text before the eighth quote or the first
  // number, which in the runtime's order of keys contains the type and the phase. Of at most 64
  // bytes.
  static uint64_t HeadHash(const char* at);

  // Completes the prediction with an event of this layout that ends at `end`.
  const Prediction* Take(Layout& layout, const char* at, const char* end);
  // Makes the layout the previous one, and the first guess after the one before it.
  void Follow(Layout& layout);
  void Forget();

  uint32_t generation_ = 0;
  uint32_t learned_left_ = kLearnedPerDocumentMax;
  std::vector<std::unique_ptr<Layout>> layouts_;
  // The layouts whose heads have this hash, most recent first. One that drops out may still be
  // guessed from its predecessor.
  std::array<std::array<Layout*, kWays>, kHeads> by_head_{};
  Layout* previous_ = nullptr;
  Prediction prediction_;
};

}  // namespace neurontrace
