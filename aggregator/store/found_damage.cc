// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/found_damage.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <string_view>

#include "aggregator/store/store_errors.h"
#include "aggregator/store/store_files.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/trace/store_limits.h"

namespace neurontrace {
namespace {

// Written for damage that concerns the stream and not one chunk.
constexpr char kNoSequence[] = "-";

std::string FoundDamagePath(const std::string& path) {
  return fmt::format("{}/{}", path, kFoundDamageFile);
}

// Text lines, so that an operator can read them: "01J… 3 17 60 its checksum is wrong".
std::string LineOf(const FoundDamage& found) {
  return fmt::format("{} {} {} {} {}\n", found.capture.ToString(), found.stream,
                     found.sequence ? std::to_string(*found.sequence) : kNoSequence,
                     static_cast<int>(found.kind),
                     CleanText(found.what, limits::kRemarkDetailBytesMax));
}

template <typename Number>
// Parses a number and removes it and the blank behind it; false if the line does not begin with
// one.
bool TakeNumber(std::string_view& line, Number& number) {
  const size_t end = std::min(line.find(' '), line.size());
  const auto [stop, error] = std::from_chars(line.data(), line.data() + end, number);
  if (error != std::errc() || stop != line.data() + end) return false;
  line.remove_prefix(std::min(end + 1, line.size()));
  return true;
}

// A crash can leave the last line torn, so anything may follow.
std::optional<FoundDamage> ParseFoundDamage(std::string_view line) {
  FoundDamage found;
  const auto capture = CaptureId::Parse(line.substr(0, line.find(' ')));
  if (!capture.ok()) return std::nullopt;
  found.capture = *capture;
  line.remove_prefix(std::min(line.find(' '), line.size() - 1) + 1);
  if (!TakeNumber(line, found.stream)) return std::nullopt;
  uint64_t sequence = 0;
  if (line.starts_with("- ")) {
    line.remove_prefix(2);
  } else if (TakeNumber(line, sequence)) {
    found.sequence = sequence;
  } else {
    return std::nullopt;
  }
  uint8_t kind = 0;
  if (!TakeNumber(line, kind)) return std::nullopt;
  found.kind = static_cast<RemarkKind>(kind);
  if (FindRemarkKind(found.kind) == nullptr) return std::nullopt;
  found.what = CleanText(line, limits::kRemarkDetailBytesMax);
  return found;
}

}  // namespace

// Synced: a reader calls it while the database takes no writes, and the process may then be
// restarted soon.
absl::Status AppendFoundDamage(const std::string& path, rocksdb::Env& env,
                               std::span<const FoundDamage> found) {
  const std::string file = FoundDamagePath(path);
  // A link with this name could make the append change a file outside of the store.
  RETURN_IF_ERROR(CheckStoreFiles(path, {std::string(kFoundDamageFile)}));
  constexpr char kDoing[] = "recording damage";
  uint64_t bytes = 0;
  if (!env.GetFileSize(file, &bytes).ok()) bytes = 0;
  std::string lines;
  for (const FoundDamage& each : found) {
    if (bytes + lines.size() >= limits::kFoundDamageBytesMax) break;
    lines += LineOf(each);
  }
  if (lines.empty()) return absl::OkStatus();
  std::unique_ptr<rocksdb::WritableFile> out;
  RETURN_IF_ERROR(FromRocksDb(env.ReopenWritableFile(file, &out, {}), kDoing));
  RETURN_IF_ERROR(FromRocksDb(out->Append(lines), kDoing));
  RETURN_IF_ERROR(FromRocksDb(out->Sync(), kDoing));
  return FromRocksDb(out->Close(), kDoing);
}

absl::StatusOr<std::vector<FoundDamage>> ReadFoundDamage(const std::string& path,
                                                         rocksdb::Env& env) {
  std::vector<FoundDamage> found;
  const std::string file = FoundDamagePath(path);
  if (!env.FileExists(file).ok()) return found;
  constexpr char kDoing[] = "reading recorded damage";
  RETURN_IF_ERROR(CheckStoreFiles(path, {std::string(kFoundDamageFile)}));
  uint64_t bytes = 0;
  RETURN_IF_ERROR(FromRocksDb(env.GetFileSize(file, &bytes), kDoing));
  // Twice the limit, since the last line may exceed it. More is not ours, and is not read into
  // memory.
  if (bytes > 2 * limits::kFoundDamageBytesMax) {
    return FailedPrecondition("{} has {} bytes, more than a store check writes; move it elsewhere",
                              file, bytes);
  }
  std::string text;
  RETURN_IF_ERROR(FromRocksDb(rocksdb::ReadFileToString(&env, file, &text), kDoing));
  for (std::string_view left = text; !left.empty();) {
    const size_t end = std::min(left.find('\n'), left.size());
    if (auto each = ParseFoundDamage(left.substr(0, end))) found.push_back(*std::move(each));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return found;
}

absl::Status RemoveFoundDamage(const std::string& path, rocksdb::Env& env) {
  return FromRocksDb(env.DeleteFile(FoundDamagePath(path)), "removing recorded damage");
}

}  // namespace neurontrace
