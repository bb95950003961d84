// SPDX-License-Identifier: Apache-2.0
// Any three lines as directory, session and name of an artifact: no crash, and whatever is accepted
// is a path of plain names under where it is put, which gives the same place when it is read again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "lib/trace/artifact.h"
#include "lib/trace/artifact_limits.h"

namespace {

void Check(bool good) {
  if (!good) std::abort();
}

std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view directory = TakeLine(text);
  const std::string_view session = TakeLine(text);
  const auto place = neurontrace::MakeArtifactPlace(directory, session, text);
  if (!place.ok()) return 0;
  const std::string path = place->path();
  Check(path.size() <= 3 * (neurontrace::limits::kArtifactNameBytesMax + 1));
  Check(path.front() != '/' && path.front() != '.');
  Check(path.find("//") == std::string::npos && path.find("/.") == std::string::npos);
  for (const char c : path) Check(c > ' ' && c < 0x7f && c != '\\');
  Check(neurontrace::IsInspectDirectory(place->directory));
  Check(place->session.empty() || neurontrace::IsInspectSession(place->session));
  Check(place->kind != neurontrace::ArtifactKind::kUnspecified);
  const auto again = neurontrace::MakeArtifactPlace(place->directory, place->session, place->name);
  Check(again.ok() && *again == *place);
  return 0;
}
