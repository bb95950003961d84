// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/python_stacks.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/stacks_limits.h"

namespace neurontrace {
namespace {

namespace dom = simdjson::dom;

// Returns a member that is a text; empty if it is absent or something else.
std::string_view TextOf(const dom::object& object, std::string_view key) {
  std::string_view text;
  return object[key].get_string().get(text) == simdjson::SUCCESS ? text : std::string_view();
}

uint64_t NumberOf(const dom::object& object, std::string_view key) {
  uint64_t number = 0;
  return object[key].get_uint64().get(number) == simdjson::SUCCESS ? number : 0;
}

std::string CleanName(std::string_view text) { return CleanText(text, limits::kStackNameBytesMax); }

// Returns the frame, or fails if it has no name.
absl::StatusOr<StackFrame> FrameOf(const dom::element& element) {
  dom::object object;
  if (element.get_object().get(object) != simdjson::SUCCESS) {
    return InvalidArgument("a frame is not an object");
  }
  StackFrame frame;
  frame.function = CleanName(TextOf(object, "name"));
  if (frame.function.empty()) return InvalidArgument("a frame has no name");
  std::string_view path = TextOf(object, "filename");
  if (path.empty()) path = TextOf(object, "short_filename");
  // Installations differ in their directories, so that stacks would never be the same.
  frame.file = CleanName(path.substr(path.rfind('/') + 1));
  frame.line = static_cast<uint32_t>(std::min<uint64_t>(NumberOf(object, "line"), UINT32_MAX));
  return frame;
}

// Appends the frames, the outermost first. Of a deep stack those in the middle are left out, and a
// frame takes their place: both ends say more than they do.
absl::Status TakeFrames(const dom::array& frames, StackThread& thread, uint64_t& left_out) {
  std::vector<dom::element> elements(frames.begin(), frames.end());
  std::reverse(elements.begin(), elements.end());
  const size_t all = elements.size();
  const bool is_deep = all > limits::kStackFramesMax;
  const size_t outer = is_deep ? limits::kStackFramesMax - limits::kStackInnermostFrames - 1 : all;
  for (size_t i = 0; i < outer; ++i) {
    ASSIGN_OR_RETURN(thread.frames.emplace_back(), FrameOf(elements[i]));
  }
  if (!is_deep) return absl::OkStatus();
  left_out += all - outer - limits::kStackInnermostFrames;
  thread.frames.push_back({.function = "(frames left out)"});
  for (size_t i = all - limits::kStackInnermostFrames; i < all; ++i) {
    ASSIGN_OR_RETURN(thread.frames.emplace_back(), FrameOf(elements[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<StackThread> ThreadOf(const dom::element& element, uint64_t& left_out) {
  dom::object object;
  dom::array frames;
  if (element.get_object().get(object) != simdjson::SUCCESS ||
      object["frames"].get_array().get(frames) != simdjson::SUCCESS) {
    return InvalidArgument("a thread has no list of frames");
  }
  StackThread thread;
  thread.name = CleanName(TextOf(object, "thread_name"));
  thread.os_thread_id = NumberOf(object, "os_thread_id");
  bool holds_gil = false;
  thread.holds_gil = object["owns_gil"].get_bool().get(holds_gil) == simdjson::SUCCESS && holds_gil;
  RETURN_IF_ERROR(TakeFrames(frames, thread, left_out));
  return thread;
}

size_t BytesOf(const StackThread& thread) {
  size_t bytes = thread.name.size() + 16;
  for (const StackFrame& frame : thread.frames) {
    bytes += frame.function.size() + frame.file.size() + 16;
  }
  return bytes;
}

// Leaves out what is beyond the limits of threads and bytes, the last threads first.
void Limit(PythonStacks& stacks) {
  size_t bytes = 0;
  size_t kept = 0;
  for (; kept < stacks.threads.size() && kept < limits::kStackThreadsMax; ++kept) {
    bytes += BytesOf(stacks.threads[kept]);
    if (bytes > limits::kStackBytesMax) break;
  }
  stacks.left_out += stacks.threads.size() - kept;
  stacks.threads.resize(kept);
}

}  // namespace

absl::StatusOr<PythonStacks> ParsePythonStacks(std::string_view json, uint32_t pid) {
  if (json.size() > limits::kStacksProgramBytesMax) {
    return InvalidArgument("{} bytes; the limit is {}", json.size(),
                           limits::kStacksProgramBytesMax);
  }
  dom::parser parser;
  dom::array threads;
  auto error = parser.allocate(json.size(), limits::kStacksJsonDepthMax);
  const simdjson::padded_string padded(json);
  if (error == simdjson::SUCCESS) error = parser.parse(padded).get_array().get(threads);
  if (error != simdjson::SUCCESS) {
    return InvalidArgument("not a JSON array of threads: {}", simdjson::error_message(error));
  }
  PythonStacks stacks;
  for (const dom::element& element : threads) {
    ASSIGN_OR_RETURN(stacks.threads.emplace_back(), ThreadOf(element, stacks.left_out));
  }
  // The kernel gives the main thread the number of the process.
  std::stable_sort(stacks.threads.begin(), stacks.threads.end(),
                   [pid](const StackThread& a, const StackThread& b) {
                     return (a.os_thread_id == pid) > (b.os_thread_id == pid);
                   });
  Limit(stacks);
  return stacks;
}

}  // namespace neurontrace
